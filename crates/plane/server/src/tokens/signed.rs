//! A JSON Web Token taken apart: `header.claims.signature`, each base64url without padding (RFC 7515).

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;

/// Bytes of an ES256 signature.
const SIGNATURE_LEN: usize = 64;

/// The parts of a token whose form is right. Nothing in it can be believed before the signature is verified.
pub(super) struct Signed<'a> {
    /// What was signed.
    pub(super) message: &'a [u8],
    pub(super) key_id: Option<String>,
    pub(super) claims: Vec<u8>,
    pub(super) signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood; we understand none.
    crit: Option<serde_json::Value>,
}

impl<'a> Signed<'a> {
    /// `None` for what is no token signed as ours are.
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        let signature = decode(signature)?;
        if header.alg != "ES256" || header.crit.is_some() || signature.len() != SIGNATURE_LEN {
            return None;
        }
        Some(Self {
            message: message.as_bytes(),
            key_id: header.kid.filter(|id| !id.is_empty()),
            claims: decode(claims)?,
            signature,
        })
    }
}
