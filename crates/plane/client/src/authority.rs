//! Finds the certificate authority of a server of which only a hash is known.
//!
//! ```text
//!   TLS without trust ──▶ is a certificate of the chain the one with this hash? ──yes──▶ trust that one alone
//!                              └──no──▶ ConfigMap kube-public/cluster-info: is its authority the one? ──▶ the same
//! ```
//!
//! Nothing is sent on that first connection that others may not know, and nothing that comes over it is believed but what
//! has the hash. Who is reached afterwards proves itself with a certificate of that authority, as ever. The hash is
//! kubeadm's (`cmd/kubeadm/app/util/pubkeypin`, Kubernetes 1.36). A signature over cluster-info is not looked at: of
//! what it says, the authority alone is used, and that has the hash.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::any_server::any_server;
use crate::config::Server;

const PREFIX: &str = "sha256:";
const HASH_LEN: usize = 32;
/// cluster-info is one certificate and a URL.
const CLUSTER_INFO_BYTES_MAX: usize = 256 * 1024;
const CLUSTER_INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
/// Connecting, the handshake and one small answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a certificate authority is known by: the SHA-256 of its public key, `sha256:` and 64 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorityHash([u8; HASH_LEN]);

/// Why an authority is not known.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The text is no hash.
    #[error(
        "{text:?} is no hash of an authority: sha256: and 64 hex digits, as `hotmap token create --print-join-command` prints it"
    )]
    Hash {
        /// The text.
        text: String,
    },
    /// The PEM holds no certificate.
    #[error("there is no certificate in the PEM of the authority")]
    Pem,
    /// The server cannot be reached.
    #[error("cannot connect to {server}")]
    Connect {
        /// Host and port.
        server: String,
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The server's authority is another one: it is another server, or somebody stands between.
    #[error("the server at {server} is not the one of --ca-hash {wanted}: its authority is {seen}")]
    Other {
        /// Host and port.
        server: String,
        /// The hash that was asked for.
        wanted: AuthorityHash,
        /// The hashes of what it shows, or words for nothing.
        seen: String,
    },
}

impl AuthorityHash {
    /// The hash of the first certificate in a PEM.
    ///
    /// # Errors
    /// [`AuthorityError::Pem`]
    pub fn of_pem(pem: &[u8]) -> Result<Self, AuthorityError> {
        let certificate = CertificateDer::from_pem_slice(pem).map_err(|_| AuthorityError::Pem)?;
        Self::of_certificate(&certificate).ok_or(AuthorityError::Pem)
    }

    fn of_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        Some(Self(Sha256::digest(certificate.public_key().raw).into()))
    }
}

impl FromStr for AuthorityHash {
    type Err = AuthorityError;

    fn from_str(text: &str) -> Result<Self, AuthorityError> {
        let bad = || AuthorityError::Hash {
            text: text.to_owned(),
        };
        let hex = text
            .strip_prefix(PREFIX)
            .filter(|hex| hex.len() == 2 * HASH_LEN)
            .ok_or_else(bad)?;
        let mut hash = [0; HASH_LEN];
        for (byte, digits) in hash.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let digit = |at: usize| char::from(digits[at]).to_digit(16).ok_or_else(bad);
            *byte = (digit(0)? * 16 + digit(1)?) as u8;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for AuthorityHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The certificate of the server's authority, PEM, if it has this hash.
///
/// # Errors
/// [`AuthorityError`]
pub async fn find_authority(server: &Server, wanted: AuthorityHash) -> Result<Vec<u8>, AuthorityError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| AuthorityError::Connect {
        server: server.authority(),
        source: Arc::from(source),
    };
    let mut seen = Vec::new();
    let looked = tokio::time::timeout(PATIENCE, async {
        let connection = connect(server).await?;
        let chain = connection.get_ref().1.peer_certificates().unwrap_or_default();
        let mut shown: Vec<Vec<u8>> = chain.iter().skip(1).map(|one| one.to_vec()).collect();
        if find(&shown, wanted).is_none() {
            let told = cluster_info(server, connection).await?;
            shown.extend(told.into_iter().flat_map(|pem| certificates(&pem)));
        }
        Ok(shown)
    });
    let shown = match looked.await {
        Ok(shown) => shown.map_err(failed)?,
        Err(late) => return Err(failed(late.into())),
    };
    match find(&shown, wanted) {
        Some(der) => Ok(pem(der).into_bytes()),
        None => {
            seen.extend(shown.iter().filter_map(|der| AuthorityHash::of_certificate(der)));
            let seen: Vec<String> = seen.iter().map(AuthorityHash::to_string).collect();
            Err(AuthorityError::Other {
                server: server.authority(),
                wanted,
                seen: if seen.is_empty() {
                    "not shown".to_owned()
                } else {
                    seen.join(", ")
                },
            })
        }
    }
}

fn find(shown: &[Vec<u8>], wanted: AuthorityHash) -> Option<&[u8]> {
    let mut shown = shown.iter().map(Vec::as_slice);
    shown.find(|der| AuthorityHash::of_certificate(der) == Some(wanted))
}

fn certificates(pem: &[u8]) -> Vec<Vec<u8>> {
    let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
    certificates.map(|one| one.to_vec()).collect()
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .filter_map(|line| std::str::from_utf8(line).ok())
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn connect(server: &Server) -> Result<TlsStream<TcpStream>, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // Only what has the hash is believed afterwards.
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(any_server(provider))
        .with_no_client_auth();
    let tcp = TcpStream::connect((server.host.as_str(), server.port)).await?;
    let name = ServerName::try_from(server.tls_name.clone())?;
    Ok(TlsConnector::from(Arc::new(tls)).connect(name, tcp).await?)
}

/// The authority of which cluster-info tells; nothing if the server has none for strangers.
async fn cluster_info(server: &Server, tls: TlsStream<TcpStream>) -> Result<Option<Vec<u8>>, Failure> {
    let (mut sender, driver) = http1::handshake(TokioIo::new(tls)).await?;
    let request = Request::get(format!("{}{CLUSTER_INFO}", server.base_path))
        .header(HOST, server.authority())
        .header(ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        if !answer.status().is_success() {
            return Ok::<_, Failure>(None);
        }
        let body = Limited::new(answer.into_body(), CLUSTER_INFO_BYTES_MAX)
            .collect()
            .await?;
        Ok(Some(body.to_bytes()))
    };
    let answer = tokio::select! {
        answer = answer => answer?,
        ended = driver => {
            ended?;
            None
        }
    };
    Ok(answer.and_then(|body| authority_in(&body)))
}

fn authority_in(config_map: &[u8]) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    struct ConfigMap {
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        kubeconfig: String,
    }
    #[derive(Deserialize)]
    struct Kubeconfig {
        clusters: Vec<Named>,
    }
    #[derive(Deserialize)]
    struct Named {
        cluster: Cluster,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Cluster {
        certificate_authority_data: String,
    }
    let config_map: ConfigMap = serde_json::from_slice(config_map).ok()?;
    let kubeconfig: Kubeconfig = serde_saphyr::from_str(&config_map.data.kubeconfig).ok()?;
    let data = kubeconfig
        .clusters
        .into_iter()
        .next()?
        .cluster
        .certificate_authority_data;
    STANDARD.decode(data.trim()).ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn hashes_are_written_and_read_as_kubeadm_does() {
        // `openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum` is how kubeadm's papers say it.
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::default().self_signed(&key).unwrap();
        let spki = rcgen::PublicKeyData::subject_public_key_info(&key);
        let hash = AuthorityHash::of_pem(certificate.pem().as_bytes()).unwrap();
        assert_eq!(hash.0, <[u8; 32]>::from(Sha256::digest(spki)));
        assert_eq!(hash.to_string().parse::<AuthorityHash>().unwrap(), hash);
        assert_eq!(
            pem(certificate.der()).replace('\r', ""),
            certificate.pem().replace('\r', "")
        );
        for bad in [
            "",
            "sha256:",
            "sha256:00",
            "sha1:00",
            &hash.to_string()[7..],
            &hash.to_string().replace(':', "="),
        ] {
            assert!(bad.parse::<AuthorityHash>().is_err(), "{bad:?}");
        }
        assert!(
            format!("sha256:{}", "zz".repeat(32))
                .parse::<AuthorityHash>()
                .is_err()
        );
        assert!(AuthorityHash::of_pem(b"none").is_err());
    }

    #[test]
    fn cluster_info_tells_of_one_authority() {
        let kubeconfig = "apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster:\n    server: https://a:6443\n    \
                          certificate-authority-data: Y2E=\ncontexts: null\nusers: null\n";
        let config_map =
            serde_json::json!({"data": {"kubeconfig": kubeconfig, "jws-kubeconfig-abcdef": "x"}});
        assert_eq!(
            authority_in(config_map.to_string().as_bytes()).as_deref(),
            Some(&b"ca"[..])
        );
        assert_eq!(
            authority_in(b"{\"data\": {\"kubeconfig\": \"clusters: []\"}}"),
            None
        );
        assert_eq!(authority_in(b"nothing"), None);
    }
}
