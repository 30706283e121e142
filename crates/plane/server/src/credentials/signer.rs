//! The authority as others in this process may use it: it signs what is asked for, and its key stays here.

use std::{sync::Arc, time::Duration};

use hotmap_kinds::CertificateRequest;
use jiff::Timestamp;

use super::Inner;

/// The longest life of a certificate that was asked for, in seconds: a year, upstream's
/// `--cluster-signing-duration`.
const LIFE_SECONDS_MAX: i64 = 365 * 24 * 60 * 60;
/// The shortest, as the API asks of requests.
const LIFE_SECONDS_MIN: i64 = 10 * 60;

/// Signs certificates for clients and nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CertificateSigner(pub(super) Arc<Inner>);

/// Why a certificate cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The subject or the names hold what this authority does not write.
    #[error(
        "only subjects of a common name and at most one organization are signed, and only DNS names and IP addresses"
    )]
    Unsupported,
    /// A use that is neither a client's nor a server's.
    #[error("usage {0:?} is not signed")]
    Usage(String),
    /// A name that cannot stand in a certificate.
    #[error("{0:?} cannot be a name in a certificate")]
    Name(String),
    /// The authority ends first.
    #[error("the authority has expired")]
    Expired,
    /// The key is of a kind that cannot be signed, or signing failed.
    #[error("the key cannot be signed: {0}")]
    Key(#[from] rcgen::Error),
}

impl CertificateSigner {
    /// A certificate, PEM, good from five minutes ago for `seconds`, at most a year and not longer than the authority.
    ///
    /// Times follow `pkg/controller/certificates/authority/policies.go`, Kubernetes 1.36.
    ///
    /// # Errors
    ///
    /// [`SignError`]
    pub fn sign(
        &self,
        request: &CertificateRequest,
        usages: &[String],
        seconds: Option<i64>,
        now: Timestamp,
    ) -> Result<String, SignError> {
        let seconds = seconds
            .unwrap_or(LIFE_SECONDS_MAX)
            .clamp(LIFE_SECONDS_MIN, LIFE_SECONDS_MAX);
        let life = Duration::from_secs(seconds.unsigned_abs());
        self.0.authority.sign_request(request, usages, life, now)
    }

    /// Whether the API's own certificate holds this DNS name or address.
    pub fn is_name_of_api(&self, name: &str) -> bool {
        self.0.names.contains(name)
    }
}
