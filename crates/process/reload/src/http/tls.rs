//! Whom we believe over TLS, and who we say we are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotmap_client::any_server;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Where distributions keep the authorities that they trust: Debian and Alpine, Fedora and its kin (new, old), openSUSE.
const SYSTEM_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The files behind a TLS connection. They are read for each connection: what is renewed is used, and between two
/// connections, hours apart, no key and no list of authorities lies in memory.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    /// What the flags' names start with, for messages: `webhook` of `--webhook-ca`.
    pub(crate) flags: &'static str,
    /// PEM; without it the system's bundle.
    pub(crate) ca: Option<PathBuf>,
    /// Certificate chain and key, PEM.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// Every certificate is believed.
    pub(crate) is_insecure: bool,
}

/// A file for TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsFileError {
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {why}", .path.display())]
    Content { path: PathBuf, why: String },
    #[error(
        "this system has no bundle of certificate authorities (looked for {}, …); --{flags}-ca FILE names one",
        SYSTEM_BUNDLES[0]
    )]
    NoBundle { flags: &'static str },
}

impl TlsFiles {
    /// The system's authorities, and no identity.
    pub(crate) fn system(flags: &'static str) -> Self {
        Self {
            flags,
            ca: None,
            identity: None,
            is_insecure: false,
        }
    }

    /// Reads all files and makes of them what a connection needs. Also how flags are checked at the start.
    pub(crate) fn connector(&self) -> Result<TlsConnector, TlsFileError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("ring has the default versions of TLS");
        let builder = if self.is_insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(any_server(provider))
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
                    .map_err(|error| bad(key, format!("no private key in PEM: {error}")))?;
                builder
                    .with_client_auth_cert(chain, secret)
                    .map_err(|error| bad(key, format!("not the key of {}: {error}", certificate.display())))?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }

    pub(super) fn has_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// In words, for messages.
    pub(super) fn authorities(&self) -> String {
        match &self.ca {
            Some(path) => path.display().to_string(),
            None => "this system".to_owned(),
        }
    }

    fn roots(&self) -> Result<RootCertStore, TlsFileError> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            Some(path) => {
                for certificate in certificates(path)? {
                    roots
                        .add(certificate)
                        .map_err(|error| bad(path, format!("not a certificate authority: {error}")))?;
                }
            }
            None => {
                let bundle = SYSTEM_BUNDLES
                    .map(Path::new)
                    .into_iter()
                    .find(|path| path.exists());
                let bundle = bundle.ok_or(TlsFileError::NoBundle { flags: self.flags })?;
                // A bundle holds authorities of all ages; what cannot be understood is simply not trusted.
                roots.add_parsable_certificates(certificates(bundle)?);
            }
        }
        Ok(roots)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(bad(path, "there is no certificate in PEM in it")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(bad(path, error.to_string())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    fs::read(path).map_err(|source| TlsFileError::Read {
        path: path.to_owned(),
        source,
    })
}

fn bad(path: &Path, why: impl Into<String>) -> TlsFileError {
    TlsFileError::Content {
        path: path.to_owned(),
        why: why.into(),
    }
}
