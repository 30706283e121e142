//! HTTP/1.1 over TLS without a Kubernetes client in between: for requests that no client would send.

use std::{fs, io::Cursor, sync::Arc};

use bytes::Bytes;
use hotmap_client::ClientConfig;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig as TlsConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::net::TcpStream;

use super::{PATIENCE, Server};

/// Sends single requests, each over a connection of its own.
pub(crate) struct Http {
    runtime: tokio::runtime::Runtime,
    address: String,
    tls: Arc<TlsConfig>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Status code.
    pub(crate) code: u16,
    /// Headers.
    pub(crate) headers: HeaderMap,
    /// The whole body.
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// `code reason: message` of a Status.
    #[track_caller]
    pub(crate) fn status(&self) -> String {
        let status = self.json();
        let text = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", self.code, text("reason"), text("message"))
    }

    /// One header; empty when it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

impl Http {
    /// As the administrator of the server.
    pub(crate) fn admin(server: &Server) -> Self {
        let config = client_config(server);
        let identity = config
            .identity
            .as_ref()
            .expect("the administrator has a certificate");
        let chain = CertificateDer::pem_reader_iter(Cursor::new(&identity.certificate_pem));
        let chain = chain
            .collect::<Result<Vec<_>, _>>()
            .expect("certificates of ours");
        let key = PrivateKeyDer::from_pem_slice(&identity.key_pem).expect("a key of ours");
        let tls = trusting(&config)
            .with_client_auth_cert(chain, key)
            .expect("a pair");
        Self::new(server, tls)
    }

    /// As nobody.
    pub(crate) fn anonymous(server: &Server) -> Self {
        Self::new(server, trusting(&client_config(server)).with_no_client_auth())
    }

    fn new(server: &Server, tls: TlsConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        Self {
            runtime,
            address: server.address().to_owned(),
            tls: Arc::new(tls),
        }
    }

    /// GET.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    /// POST of JSON.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body)
    }

    /// Any request.
    #[track_caller]
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request of ours");
        let exchange = async {
            tokio::time::timeout(PATIENCE, self.exchange(request))
                .await
                .expect("an answer in time")
        };
        self.runtime
            .block_on(exchange)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, Box<dyn std::error::Error>> {
        let stream = TcpStream::connect(&self.address).await?;
        let name = ServerName::try_from("localhost")?;
        let stream = tokio_rustls::TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, stream)
            .await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let answer = sender.send_request(request).await?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await?.to_bytes();
        connection.abort();
        Ok(Answer {
            code: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    }
}

/// How a client of ours gets in as the administrator.
pub(crate) fn client_config(server: &Server) -> ClientConfig {
    ClientConfig::from_kubeconfig(&server.kubeconfig(), None).expect("the kubeconfig that up wrote")
}

fn trusting(config: &ClientConfig) -> rustls::ConfigBuilder<TlsConfig, rustls::client::WantsClientCert> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&config.ca_pem) {
        roots
            .add(certificate.expect("a certificate of ours"))
            .expect("a certificate authority");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = TlsConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    versions.expect("ring speaks them").with_root_certificates(roots)
}

/// Whether the file can be read by its owner only.
pub(crate) fn is_private(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 == 0)
}
