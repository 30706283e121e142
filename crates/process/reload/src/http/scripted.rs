//! A server for tests: each connection gets the next answer of a script, and what was asked is kept.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore};

/// The requests, head and body as they came; of a connection that brought none, an empty text.
pub(crate) type Asked = JoinHandle<Vec<String>>;

/// An answer of this status line's rest and body, such as `200 OK`.
pub(crate) fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Over TCP on loopback.
pub(crate) async fn tcp(answers: Vec<String>) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().await.unwrap();
            asked.push(serve(stream, &answer).await);
        }
        asked
    });
    (address, serving)
}

/// Over a unix socket.
pub(crate) fn unix(path: &Path, answers: Vec<String>) -> Asked {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().await.unwrap();
            asked.push(serve(stream, &answer).await);
        }
        asked
    })
}

/// Over TLS on loopback. A handshake that fails uses an answer up.
pub(crate) async fn tls(acceptor: TlsAcceptor, answers: Vec<String>) -> (SocketAddr, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().await.unwrap();
            asked.push(match acceptor.accept(stream).await {
                Ok(stream) => serve(stream, &answer).await,
                Err(_) => String::new(),
            });
        }
        asked
    });
    (address, serving)
}

/// An authority and what it signs, as PEM.
pub(crate) struct Pki(CertifiedIssuer<'static, KeyPair>);

impl Pki {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn authority(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        (
            params.signed_by(&key, &self.0).unwrap().pem(),
            key.serialize_pem(),
        )
    }

    /// A server of this name; with `clients`, one that wants certificates of that authority.
    pub(crate) fn acceptor(&self, name: &str, clients: Option<&Pki>) -> TlsAcceptor {
        let (certificate, key) = self.issue(name, ExtendedKeyUsagePurpose::ServerAuth);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.0.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str) -> String {
    let mut asked = Vec::new();
    while !is_whole(&asked) {
        match stream.read_buf(&mut asked).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    // A client that has gone away has been told nothing, which its own test sees.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    String::from_utf8_lossy(&asked).into_owned()
}

fn is_whole(request: &[u8]) -> bool {
    // What is no HTTP is answered at once, as servers do.
    if request.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
        return true;
    }
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    body.len() >= length.map_or(0, |length| length.trim().parse().unwrap())
}
