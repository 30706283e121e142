//! TLS, with the provider named: never the process-wide default, which another crate may set or forget.

use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{self, RootCertStore};

use crate::any_server::any_server;
use crate::config::{ConfigError, Identity, Server, ServerProof};

pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Reads certificates and keys once; a connection then needs no file.
pub(crate) fn connector(
    ca_pem: &[u8],
    server_proof: ServerProof,
    identity: Option<&Identity>,
) -> Result<TlsConnector, ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| bad("TLS", &error))?;
    let builder = match server_proof {
        ServerProof::Certificate => builder.with_root_certificates(roots(ca_pem)?),
        ServerProof::None => builder
            .dangerous()
            .with_custom_certificate_verifier(any_server(provider)),
    };
    let mut tls = match identity {
        None => builder.with_no_client_auth(),
        Some(Identity {
            certificate_pem,
            key_pem,
        }) => {
            let chain = certificates("client-certificate", certificate_pem)?;
            let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| bad("client-key", &error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| bad("client-certificate", &error))?
        }
    };
    tls.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
    Ok(TlsConnector::from(Arc::new(tls)))
}

/// What the server's certificate must be for.
pub(crate) fn server_name(server: &Server) -> Result<ServerName<'static>, ConfigError> {
    ServerName::try_from(server.tls_name.clone()).map_err(|_| ConfigError::Url {
        url: server.tls_name.clone(),
        why: "not a name or address a certificate can be for".to_owned(),
    })
}

fn roots(pem: &[u8]) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("certificate-authority", pem)? {
        roots
            .add(certificate)
            .map_err(|error| bad("certificate-authority", &error))?;
    }
    Ok(roots)
}

fn certificates(what: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(ConfigError::Certificate {
            what,
            why: "no certificate in it".to_owned(),
        }),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(bad(what, &error)),
    }
}

fn bad(what: &'static str, why: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::Certificate {
        what,
        why: why.to_string(),
    }
}
