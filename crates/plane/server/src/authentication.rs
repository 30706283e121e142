//! Who a request comes from.
//!
//! A client certificate of our authority names the user (common name) and the groups (organisations). Without one, a
//! bearer token names a service account. Bad credentials are answered with 401; who brings none is `system:anonymous`.

mod impersonation;

use std::sync::Arc;

use hotmap_object::Status;
use hyper::header::{AUTHORIZATION, HeaderMap};
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

pub(crate) use impersonation::acting;

use crate::{
    credentials::subject_of,
    request::User,
    tls::Tls,
    tokens::{Tokens, api_audiences},
};

/// What a connection's handshake told about its client; asked again for each request.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// No certificate.
    Anonymous(Arc<User>),
    /// A certificate of ours, until its end in Unix seconds.
    Known { user: Arc<User>, until: i64 },
    /// A certificate that is not ours, not for clients, out of date, or without a name.
    Unknown,
}

impl Peer {
    pub(crate) fn new(chain: Option<&[CertificateDer<'_>]>, tls: &Tls) -> Self {
        let Some(chain) = chain.filter(|chain| !chain.is_empty()) else {
            return Peer::Anonymous(Arc::new(User {
                name: "system:anonymous".to_owned(),
                groups: vec!["system:unauthenticated".to_owned()],
                ..User::default()
            }));
        };
        Self::of_certificate(chain, tls).unwrap_or(Peer::Unknown)
    }

    fn of_certificate(chain: &[CertificateDer<'_>], tls: &Tls) -> Option<Self> {
        if let Err(error) = tls.verify_client(chain) {
            tracing::debug!(%error, "client certificate refused");
            return None;
        }
        let (name, mut groups) = subject_of(&chain[0])?;
        groups.push("system:authenticated".to_owned());
        let until = X509Certificate::from_der(&chain[0])
            .ok()?
            .1
            .validity()
            .not_after
            .timestamp();
        let user = User {
            name,
            groups,
            ..User::default()
        };
        Some(Peer::Known {
            user: Arc::new(user),
            until,
        })
    }
}

/// The user of one request.
///
/// # Errors
///
/// 401 for credentials that are not good; a request without any is anonymous.
pub(crate) fn authenticate(
    peer: &Peer,
    headers: &HeaderMap,
    tokens: &Tokens,
    now: Timestamp,
) -> Result<Arc<User>, Status> {
    match peer {
        Peer::Known { user, until } if now.as_second() < *until => Ok(user.clone()),
        _ if headers.contains_key(AUTHORIZATION) => of_token(headers, tokens, now),
        Peer::Known { .. } | Peer::Unknown => Err(Status::unauthorized()),
        Peer::Anonymous(user) => Ok(user.clone()),
    }
}

/// The token of a request that brings one.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn of_token(headers: &HeaderMap, tokens: &Tokens, now: Timestamp) -> Result<Arc<User>, Status> {
    let token = bearer(headers).ok_or_else(Status::unauthorized)?;
    match tokens.authenticate(token, &api_audiences(), now) {
        Ok((user, _)) => Ok(Arc::new(user)),
        Err(refused) => {
            tracing::debug!(error = %refused, "bearer token refused");
            Err(Status::unauthorized())
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use hotmap_object::Object;

    use super::*;
    use crate::{credentials::Credentials, tokens::Held};

    struct Nothing;

    impl Held for Nothing {
        fn held(&self, _: &str, _: &str, _: &str) -> Option<Arc<Object>> {
            None
        }
    }

    #[test]
    fn bad_credentials_are_never_taken_for_none() {
        let user = Arc::new(User {
            name: "a".into(),
            ..User::default()
        });
        let anonymous = Arc::new(User::default());
        let directory = tempfile::tempdir().expect("a directory");
        let credentials =
            Credentials::open(directory.path(), &[], Timestamp::UNIX_EPOCH).expect("fresh credentials");
        let tokens = Tokens::new(credentials.token_keys().clone(), Arc::new(Nothing));
        let known = |until| Peer::Known {
            user: user.clone(),
            until,
        };
        for (peer, token, name) in [
            (known(100), None, Some("a")),
            (known(100), Some("Bearer x"), Some("a")),
            (known(10), None, None),
            (Peer::Unknown, None, None),
            (Peer::Unknown, Some("Bearer x"), None),
            (Peer::Anonymous(anonymous.clone()), Some("Basic eDp5"), None),
            (Peer::Anonymous(anonymous.clone()), Some("Bearer"), None),
            (Peer::Anonymous(anonymous.clone()), None, Some("")),
            (Peer::Anonymous(anonymous), Some("Bearer x"), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(token.map(|token| (AUTHORIZATION, HeaderValue::from_static(token))));
            let now = Timestamp::from_second(50).expect("a date");
            let answer = authenticate(&peer, &headers, &tokens, now);
            assert_eq!(
                answer.as_ref().ok().map(|user| user.name.as_str()),
                name,
                "{peer:?} {token:?}"
            );
            assert!(answer.err().is_none_or(|status| status.code == 401));
        }
    }
}
