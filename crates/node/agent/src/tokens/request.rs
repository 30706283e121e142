//! One request for a token (`authentication.k8s.io/v1`, `TokenRequest`), bound to its pod.

use std::{fmt, future::Future, time::Duration};

use bytes::Bytes;
use hotmap_client::{Client, ResourcePath, WriteParams};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::TokenRef;
use crate::worker::printed;

/// A token as the API issued it. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Issued {
    pub(crate) token: Bytes,
    /// How long it lives from the moment it is issued; the server may give less than was asked for.
    pub(crate) lifetime: Duration,
    pub(crate) expires_at: Timestamp,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token until {}", self.expires_at)
    }
}

/// Who issues tokens: the API, or a test.
pub(crate) trait Ask: Send + Sync + 'static {
    /// Asks once; a failure comes as text for an event.
    fn ask(&self, token: &TokenRef) -> impl Future<Output = Result<Issued, String>> + Send;
}

impl Ask for Client {
    async fn ask(&self, token: &TokenRef) -> Result<Issued, String> {
        let path = ResourcePath::new("", "v1", "serviceaccounts")
            .in_namespace(token.namespace.as_str())
            .name(token.service_account.as_str())
            .subresource("token");
        let answer = self
            .create(&path, &request(token), &WriteParams::default())
            .await
            .map_err(|error| printed(&error))?;
        // The text of a parse error may quote what it stumbled over.
        let answer = answer
            .parse::<Answer>()
            .map_err(|_| "the answer is no TokenRequest".to_owned())?;
        issued(token, answer)
    }
}

fn request(token: &TokenRef) -> Value {
    let audiences: Vec<&str> = Some(token.audience.as_str())
        .filter(|audience| !audience.is_empty())
        .into_iter()
        .collect();
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
        "audiences": audiences, "expirationSeconds": token.expiration_seconds,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": token.pod, "uid": token.pod_uid}}})
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    spec: AnswerSpec,
    status: AnswerStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AnswerSpec {
    expiration_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerStatus {
    token: String,
    expiration_timestamp: String,
}

fn issued(token: &TokenRef, answer: Answer) -> Result<Issued, String> {
    let expires_at = answer
        .status
        .expiration_timestamp
        .parse()
        .map_err(|_| "the answer says no time at which the token expires".to_owned())?;
    if answer.status.token.is_empty() {
        return Err("the answer holds no token".to_owned());
    }
    let seconds = answer.spec.expiration_seconds.unwrap_or(token.expiration_seconds);
    Ok(Issued {
        token: answer.status.token.into(),
        lifetime: Duration::from_secs(seconds),
        expires_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(audience: &str) -> TokenRef {
        TokenRef {
            pod_uid: "u".into(),
            namespace: "n".into(),
            pod: "p".into(),
            service_account: "default".into(),
            audience: audience.into(),
            expiration_seconds: 3600,
        }
    }

    #[test]
    fn a_token_is_asked_for_in_the_name_of_its_pod() {
        let asked = request(&token(""));
        assert_eq!(asked["spec"]["audiences"], json!([]));
        assert_eq!(
            asked["spec"]["boundObjectRef"],
            json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"})
        );
        assert_eq!(request(&token("vault"))["spec"]["audiences"], json!(["vault"]));
    }

    #[test]
    fn the_server_says_how_long_a_token_lives() {
        for (answer, expected) in [
            (
                json!({"spec": {"expirationSeconds": 600}, "status": {"token": "ey", "expirationTimestamp": "1970-01-01T00:10:00Z"}}),
                Ok(600),
            ),
            (
                json!({"status": {"token": "ey", "expirationTimestamp": "1970-01-01T01:00:00Z"}}),
                Ok(3600),
            ),
            (
                json!({"status": {"token": "", "expirationTimestamp": "1970-01-01T01:00:00Z"}}),
                Err("the answer holds no token"),
            ),
            (
                json!({"status": {"token": "ey", "expirationTimestamp": ""}}),
                Err("the answer says no time at which the token expires"),
            ),
        ] {
            let read = serde_json::from_value(answer.clone()).expect("an answer");
            let lifetime = issued(&token(""), read).map(|issued| issued.lifetime.as_secs());
            assert_eq!(lifetime, expected.map_err(str::to_owned), "{answer}");
        }
        let held = Issued {
            token: "hunter2".into(),
            lifetime: Duration::ZERO,
            expires_at: Timestamp::UNIX_EPOCH,
        };
        assert!(!format!("{held:?}").contains("hunter2"));
    }
}
