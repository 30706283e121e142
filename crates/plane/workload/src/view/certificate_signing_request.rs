//! What controllers see of a CertificateSigningRequest.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{Metadata, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CertificateSigningRequest {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: CertificateSigningRequestSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: CertificateSigningRequestStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CertificateSigningRequestSpec {
    /// PEM in base64.
    pub(crate) request: String,
    pub(crate) signer_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) usages: Vec<String>,
    pub(crate) expiration_seconds: Option<i64>,
    pub(crate) username: String,
    pub(crate) uid: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) groups: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CertificateSigningRequestStatus {
    /// Whole: they are written as one list.
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<Value>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) certificate: String,
}

impl CertificateSigningRequest {
    pub(crate) fn has(&self, condition: &str) -> bool {
        self.status
            .conditions
            .iter()
            .any(|held| held["type"] == condition)
    }

    /// When a condition was last written.
    pub(crate) fn updated(&self, condition: &str) -> Option<Timestamp> {
        let mut held = self.status.conditions.iter();
        let held = held.find(|held| held["type"] == condition)?;
        held["lastUpdateTime"].as_str()?.parse().ok()
    }

    pub(crate) fn is_issued(&self) -> bool {
        !self.status.certificate.is_empty()
    }
}

impl View for CertificateSigningRequest {
    const API_VERSION: &'static str = "certificates.k8s.io/v1";
    const KIND: &'static str = "CertificateSigningRequest";
    const PLURAL: &'static str = "certificatesigningrequests";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.certificate_signing_requests
    }
}
