//! Tokens of service accounts: made for who may ask for one, and checked when they come back. Beside them those of nodes
//! that are about to join, which are Secrets.
//!
//! ```text
//!   POST serviceaccounts/NAME/token ─▶ Claims ─▶ sign ─▶ header.claims.signature
//!   Authorization: Bearer … ─▶ signature (remembered) ─▶ audience, times ─▶ are account and bound object still there?
//! ```
//!
//! Only ES256 is made and only ES256 is taken; nothing in a token chooses how it is checked. A token never reaches a log,
//! an error text or a `Debug` output.

mod bootstrap;
mod claims;
mod signed;
mod validation;
mod verified;

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use hotmap_object::{Object, Status};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) use claims::{Bound, Claims, Reference};
pub(crate) use validation::Refused;

use crate::{credentials::TokenKeys, request::User};
use signed::Signed;
use verified::Verified;

/// Who has made the tokens, and the audience of those that are for this API: kubeadm's default.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Longer ones are refused unread. Ours have about a thousand bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Tokens whose signatures need no second check; a node has at most 256 pods.
const VERIFIED_MAX: usize = 1_024;

/// What a token may be bound to, as it is now.
pub(crate) trait Held: Send + Sync {
    /// An object from memory; `namespace` is empty for a Node.
    fn held(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Object>>;
}

/// Makes and checks tokens.
pub(crate) struct Tokens {
    keys: Arc<TokenKeys>,
    held: Arc<dyn Held>,
    verified: Mutex<Verified>,
}

impl Tokens {
    pub(crate) fn new(keys: Arc<TokenKeys>, held: Arc<dyn Held>) -> Self {
        Self {
            keys,
            held,
            verified: Mutex::new(Verified::new(VERIFIED_MAX)),
        }
    }

    /// A signed token.
    ///
    /// # Errors
    ///
    /// 500 if the system has no randomness.
    pub(crate) fn issue(&self, claims: &Claims) -> Result<String, Status> {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "ES256", "kid": self.keys.signing_id()});
        let claims = serde_json::to_value(claims).expect("claims are plain data");
        let message = format!("{}.{}", part(&header), part(&claims));
        let signature = self.keys.sign(message.as_bytes()).map_err(Status::internal)?;
        Ok(format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }

    /// Who a token stands for, and which of the audiences it is for.
    ///
    /// # Errors
    ///
    /// [`Refused`]
    pub(crate) fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> Result<(User, Vec<String>), Refused> {
        if let Some(token) = bootstrap::Token::parse(token) {
            let user = bootstrap::authenticate(&token, &*self.held, now)?;
            // Such a token names no audience: it is for this API.
            let shared: Vec<String> = api_audiences()
                .into_iter()
                .filter(|one| audiences.contains(one))
                .collect();
            return match shared.is_empty() {
                true => Err(Refused::Audience),
                false => Ok((user, shared)),
            };
        }
        let claims = self.claims(token)?;
        let shared: Vec<String> = claims
            .aud
            .iter()
            .filter(|one| audiences.contains(one))
            .cloned()
            .collect();
        if shared.is_empty() {
            return Err(Refused::Audience);
        }
        validation::check_times(&claims, now)?;
        validation::check_objects(&claims, &*self.held, now)?;
        Ok((claims.user(), shared))
    }

    /// The claims of a token that one of our keys has signed.
    fn claims(&self, token: &str) -> Result<Arc<Claims>, Refused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refused::Malformed);
        }
        if let Some(claims) = self.verified.lock().get(token) {
            return Ok(claims);
        }
        let signed = Signed::parse(token).ok_or(Refused::Malformed)?;
        if !self
            .keys
            .verify(signed.key_id.as_deref(), signed.message, &signed.signature)
        {
            return Err(Refused::Signature);
        }
        let claims: Claims = serde_json::from_slice(&signed.claims).map_err(|_| Refused::Malformed)?;
        if claims.iss != ISSUER {
            return Err(Refused::Malformed);
        }
        let claims = Arc::new(claims);
        self.verified.lock().insert(token, claims.clone());
        Ok(claims)
    }

    /// `/openid/v1/jwks`
    pub(crate) fn key_set(&self) -> Value {
        self.keys.key_set()
    }

    /// `/.well-known/openid-configuration`; `address` is where this server listens.
    ///
    /// Fields follow `pkg/serviceaccount/openidmetadata.go`, Kubernetes 1.36.
    pub(crate) fn open_id_configuration(address: std::net::SocketAddr) -> Value {
        json!({
            "issuer": ISSUER,
            "jwks_uri": format!("https://{address}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}

/// The audiences of this API.
pub(crate) fn api_audiences() -> Vec<String> {
    vec![ISSUER.to_owned()]
}

#[cfg(test)]
mod tests;
