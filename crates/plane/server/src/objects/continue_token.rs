//! Where a list in pages goes on.
//!
//! The form follows `apiserver/pkg/storage/continue.go`, Kubernetes 1.36, so that tokens outlive a change of server.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hotmap_object::{Revision, Status};
use serde::{Deserialize, Serialize};

/// The only version of the form.
const VERSION: &str = "meta.k8s.io/v1";

/// The revision that stands for "the newest": handed out with an expired token.
const NEWEST: i64 = -1;

#[derive(Debug, Serialize, Deserialize)]
struct Wire {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContinueToken {
    /// The revision of all pages; `None`: what is newest.
    pub(super) revision: Option<Revision>,
    /// The first key of the page, without the list's prefix.
    pub(super) start: String,
}

impl ContinueToken {
    /// The place behind `last_key`.
    pub(super) fn after(last_key: &str, revision: Option<Revision>) -> Self {
        Self {
            revision,
            start: format!("{last_key}\0"),
        }
    }

    pub(super) fn encode(&self) -> String {
        let wire = Wire {
            v: VERSION.to_owned(),
            rv: self
                .revision
                .map_or(NEWEST, |revision| i64::try_from(revision.0).unwrap_or(i64::MAX)),
            start: self.start.clone(),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).expect("a token is plain text and a number"))
    }

    /// # Errors
    ///
    /// 400 for anything that this server, or another of its kind, has not handed out.
    pub(super) fn decode(raw: &str) -> Result<Self, Status> {
        let refuse = |why: &str| {
            Status::bad_request(format!("invalid continue token: continue key is not valid{why}"))
        };
        let json = URL_SAFE_NO_PAD
            .decode(raw)
            .map_err(|error| refuse(&format!(": {error}")))?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|error| refuse(&format!(": {error}")))?;
        if wire.v != VERSION {
            return Err(refuse(&format!(
                ": server does not recognize this encoded version {}",
                wire.v
            )));
        }
        let revision = match wire.rv {
            NEWEST => None,
            rv => match u64::try_from(rv) {
                Ok(rv) if rv > 0 => Some(Revision(rv)),
                _ => {
                    return Err(refuse(
                        ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                    ));
                }
            },
        };
        if wire.start.is_empty() {
            return Err(refuse(": encoded start key empty (version meta.k8s.io/v1)"));
        }
        let start = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        if start.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(refuse(&format!(": {}", wire.start)));
        }
        Ok(Self {
            revision,
            start: start.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back() {
        for revision in [Some(Revision(7)), None] {
            let token = ContinueToken::after("default/a", revision);
            assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
        }
        let upstream = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"a\u0000"}"#);
        assert_eq!(
            ContinueToken::decode(&upstream),
            Ok(ContinueToken::after("a", Some(Revision(5))))
        );
    }

    #[test]
    fn foreign_tokens_are_refused() {
        for (json, why) in [
            (
                r#"{"v":"v2","rv":1,"start":"a"}"#,
                ": server does not recognize this encoded version v2",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#,
                ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1}"#,
                ": encoded start key empty (version meta.k8s.io/v1)",
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#, ": ../a"),
        ] {
            let refused = ContinueToken::decode(&URL_SAFE_NO_PAD.encode(json)).expect_err(json);
            assert_eq!(
                refused.message,
                format!("invalid continue token: continue key is not valid{why}")
            );
        }
        assert!(ContinueToken::decode("%").is_err());
    }
}
