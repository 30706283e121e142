//! What controllers see of a Secret: of a token to join with its end, of others nothing.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde::Deserialize;

use super::{Metadata, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Secret {
    pub(crate) metadata: Metadata,
    #[serde(rename = "type")]
    kind: String,
    #[serde(deserialize_with = "or_default")]
    data: SecretData,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SecretData {
    #[serde(deserialize_with = "or_default")]
    expiration: String,
}

impl Secret {
    /// When a token to join with ends. A time that cannot be read has no end here: it is no token any more, and somebody
    /// may want to look at it.
    pub(crate) fn token_expires(&self) -> Option<Timestamp> {
        let is_token =
            self.kind == "bootstrap.kubernetes.io/token" && self.metadata.namespace == "kube-system";
        let text = BASE64_STANDARD
            .decode(&self.data.expiration)
            .ok()
            .filter(|_| is_token)?;
        std::str::from_utf8(&text).ok()?.parse().ok()
    }
}

impl View for Secret {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Secret";
    const PLURAL: &'static str = "secrets";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.secrets
    }
}
