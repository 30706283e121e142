//! Tokens with which nodes join: Secrets of their own type in `kube-system`.
//!
//! Follows `plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go` and `cluster-bootstrap/util/secrets`, Kubernetes
//! 1.36.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Held, Refused};
use crate::request::User;

const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "bootstrap-token-";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const USER_PREFIX: &str = "system:bootstrap:";
const GROUP: &str = "system:bootstrappers";
const GROUP_BYTES_MAX: usize = 256;
const ID_LEN: usize = 6;
const SECRET_LEN: usize = 16;

/// `abcdef.0123456789abcdef`, in its two parts.
pub(super) struct Token<'a> {
    id: &'a str,
    secret: &'a str,
}

impl<'a> Token<'a> {
    /// `None` for what has another shape: it is another kind of token.
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        let (id, secret) = token.split_once('.')?;
        let is_word = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        (id.len() == ID_LEN && secret.len() == SECRET_LEN && is_word(id) && is_word(secret))
            .then_some(Self { id, secret })
    }
}

/// Who joins with this token.
///
/// # Errors
///
/// [`Refused::Bootstrap`], with a reason for the log.
pub(super) fn authenticate(token: &Token<'_>, held: &dyn Held, now: Timestamp) -> Result<User, Refused> {
    let name = format!("{NAME_PREFIX}{}", token.id);
    let object = held.held("secrets", NAMESPACE, &name);
    let object = object.ok_or(Refused::Bootstrap("there is no such token"))?;
    if object.index().is_deleting {
        return Err(Refused::Bootstrap("it is being deleted"));
    }
    let secret = object.value();
    if secret.get("type").and_then(Value::as_str) != Some(SECRET_TYPE) {
        return Err(Refused::Bootstrap("its Secret has another type"));
    }
    let data = secret.get("data").and_then(Value::as_object);
    let data = data.ok_or(Refused::Bootstrap("its Secret is empty"))?;
    if !is_same(&value(data, "token-secret"), token.secret.as_bytes()) {
        return Err(Refused::Bootstrap("its secret part is another one"));
    }
    if value(data, "token-id") != token.id.as_bytes() {
        return Err(Refused::Bootstrap("its id is not that of its Secret's name"));
    }
    let expiration = value(data, "expiration");
    if !expiration.is_empty() && expires(&expiration).is_none_or(|at| at <= now) {
        return Err(Refused::Bootstrap("it has expired"));
    }
    if value(data, "usage-bootstrap-authentication") != b"true" {
        return Err(Refused::Bootstrap("it is not for authentication"));
    }
    let mut groups = vec![GROUP.to_owned()];
    groups.extend(more_groups(&value(data, "auth-extra-groups"))?);
    groups.push("system:authenticated".to_owned());
    Ok(User {
        name: format!("{USER_PREFIX}{}", token.id),
        groups,
        ..User::default()
    })
}

fn value(data: &Map<String, Value>, key: &str) -> Vec<u8> {
    let text = data.get(key).and_then(Value::as_str).unwrap_or_default();
    BASE64_STANDARD.decode(text).unwrap_or_default()
}

fn expires(text: &[u8]) -> Option<Timestamp> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Takes as long for every wrong secret of the right length.
fn is_same(held: &[u8], sent: &[u8]) -> bool {
    let pairs = held.iter().zip(sent);
    let differing = pairs.fold(0, |differing, (a, b)| std::hint::black_box(differing | (a ^ b)));
    held.len() == sent.len() && differing == 0
}

/// Sorted, each once, all below `system:bootstrappers:`.
fn more_groups(text: &[u8]) -> Result<Vec<String>, Refused> {
    const REFUSED: Refused = Refused::Bootstrap("one of its groups is not below system:bootstrappers:");
    let text = std::str::from_utf8(text).map_err(|_| REFUSED)?;
    let mut groups = Vec::new();
    for group in text.split(',').filter(|_| !text.is_empty()) {
        let rest = group.strip_prefix("system:bootstrappers:").unwrap_or_default();
        let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let is_good = rest.bytes().all(|b| is_word(b) || matches!(b, b':' | b'-'))
            && rest.bytes().last().is_some_and(is_word)
            && rest.len() <= GROUP_BYTES_MAX;
        if !is_good {
            return Err(REFUSED);
        }
        groups.push(group.to_owned());
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotmap_object::{Draft, Object, Revision};
    use serde_json::json;

    use super::*;

    struct One(Value);

    impl Held for One {
        fn held(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
            let is_it = (plural, namespace, name) == ("secrets", NAMESPACE, "bootstrap-token-abcdef");
            let object = self.0.as_object().cloned().filter(|_| is_it)?;
            Some(Arc::new(
                Draft::new(&object, Vec::new()).at(Revision::default().next()),
            ))
        }
    }

    fn secret(changes: &[(&str, &str)]) -> Value {
        let mut data = Map::new();
        for (key, value) in [
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
        ]
        .iter()
        .chain(changes)
        {
            data.insert((*key).to_owned(), BASE64_STANDARD.encode(value).into());
        }
        json!({"metadata": {"name": "bootstrap-token-abcdef", "namespace": NAMESPACE, "uid": "u"},
            "type": SECRET_TYPE, "data": data})
    }

    #[test]
    fn a_token_is_what_its_secret_says() {
        let now = "2026-01-02T15:04:05Z".parse().expect("a time");
        let good = "abcdef.0123456789abcdef";
        for (what, token, secret, wanted) in [
            (
                "good",
                good,
                secret(&[]),
                Some("system:bootstrappers,system:authenticated"),
            ),
            (
                "with a group",
                good,
                secret(&[(
                    "auth-extra-groups",
                    "system:bootstrappers:kubeadm:default-node-token",
                )]),
                Some(
                    "system:bootstrappers,system:bootstrappers:kubeadm:default-node-token,system:authenticated",
                ),
            ),
            (
                "not over yet",
                good,
                secret(&[("expiration", "2026-01-02T15:04:06Z")]),
                Some("system:bootstrappers,system:authenticated"),
            ),
            (
                "over",
                good,
                secret(&[("expiration", "2026-01-02T15:04:05Z")]),
                None,
            ),
            ("over some day", good, secret(&[("expiration", "soon")]), None),
            ("another secret", "abcdef.0123456789abcdee", secret(&[]), None),
            ("another id", "abcdee.0123456789abcdef", secret(&[]), None),
            (
                "a Secret under a false name",
                good,
                secret(&[("token-id", "abcdee")]),
                None,
            ),
            (
                "for signing",
                good,
                secret(&[("usage-bootstrap-authentication", "")]),
                None,
            ),
            (
                "a group of power",
                good,
                secret(&[("auth-extra-groups", "system:masters")]),
                None,
            ),
            (
                "a group without a name",
                good,
                secret(&[("auth-extra-groups", "system:bootstrappers:")]),
                None,
            ),
            (
                "another type",
                good,
                json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "Opaque"}),
                None,
            ),
        ] {
            let token = Token::parse(token).expect("a token");
            let user = authenticate(&token, &One(secret), now).ok();
            let groups = user.map(|user| {
                assert_eq!(user.name, "system:bootstrap:abcdef");
                user.groups.join(",")
            });
            assert_eq!(groups.as_deref(), wanted, "{what}");
        }
    }

    #[test]
    fn other_shapes_are_other_tokens() {
        for token in [
            "",
            "abcdef",
            "abcdef.",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcde-",
            "a.b.c",
        ] {
            assert!(Token::parse(token).is_none(), "{token:?}");
        }
    }
}
