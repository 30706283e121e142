//! The server's authority as the controllers see it.

use hotmap_kinds::CertificateRequest;
use hotmap_server::credentials::CertificateSigner;
use hotmap_workload::Signer;
use jiff::Timestamp;

/// Signs with the authority of the server in this process.
pub(super) struct OwnAuthority(pub(super) CertificateSigner);

impl Signer for OwnAuthority {
    fn sign(
        &self,
        request: &CertificateRequest,
        usages: &[String],
        seconds: Option<i64>,
        now: Timestamp,
    ) -> Result<String, String> {
        self.0
            .sign(request, usages, seconds, now)
            .map_err(|error| error.to_string())
    }

    fn is_name_of_api(&self, name: &str) -> bool {
        self.0.is_name_of_api(name)
    }
}
