//! HTTP/2 connections that do as little as possible themselves: what is measured is the server.
//!
//! Every client has a connection of its own, as Kubernetes clients do, with the flow-control windows that Go's have.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use hotmap_client::{ClientConfig, Token};
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response,
    body::Incoming,
    client::conn::http2,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, RootCertStore,
        client::Resumption,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};
use tokio_util::task::AbortOnDropHandle;

/// Go's `net/http2` client gives every stream 4 MiB and the connection 1 GiB.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";

/// Makes connections to one server. Cloning is cheap.
#[derive(Clone)]
pub(super) struct Connector {
    shared: Arc<Shared>,
}

struct Shared {
    tls: TlsConnector,
    tls_name: ServerName<'static>,
    host: String,
    port: u16,
    /// Scheme, host, port and path prefix of every request.
    origin: String,
    authorization: Option<HeaderValue>,
}

impl Connector {
    pub(super) async fn new(config: &ClientConfig) -> anyhow::Result<Self> {
        let server = &config.server;
        let authorization = match &config.token {
            None => None,
            Some(Token::Fixed(token)) => Some(bearer(token)?),
            Some(Token::File(path)) => {
                let file = path.clone();
                let token = tokio::task::spawn_blocking(move || std::fs::read_to_string(file)).await?;
                Some(bearer(
                    token
                        .with_context(|| format!("cannot read {}", path.display()))?
                        .trim(),
                )?)
            }
        };
        let host = if server.host.contains(':') {
            format!("[{}]", server.host)
        } else {
            server.host.clone()
        };
        let shared = Shared {
            tls: TlsConnector::from(Arc::new(tls(config)?)),
            tls_name: ServerName::try_from(server.tls_name.clone())
                .context("the server's name fits no certificate")?,
            origin: format!("https://{host}:{}{}", server.port, server.base_path),
            host: server.host.clone(),
            port: server.port,
            authorization,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// A new connection: TCP, a full TLS handshake, HTTP/2.
    pub(super) async fn connect(&self) -> anyhow::Result<Connection> {
        let connected = timeout(CONNECT_TIMEOUT, self.handshake()).await;
        let Shared { host, port, .. } = &*self.shared;
        connected
            .context("no answer in time")
            .flatten()
            .with_context(|| format!("cannot connect to {host}:{port}"))
    }

    async fn handshake(&self) -> anyhow::Result<Connection> {
        let shared = &self.shared;
        let tcp = TcpStream::connect((shared.host.as_str(), shared.port)).await?;
        tcp.set_nodelay(true)?;
        let tls = shared.tls.connect(shared.tls_name.clone(), tcp).await?;
        if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
            bail!("the server does not speak HTTP/2");
        }
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(TokioIo::new(tls))
            .await?;
        // How the connection ends reaches whoever waits for an answer on it.
        let driver = AbortOnDropHandle::new(tokio::spawn(driver));
        Ok(Connection {
            sender,
            shared: shared.clone(),
            _driver: Arc::new(driver),
        })
    }
}

fn bearer(token: &str) -> anyhow::Result<HeaderValue> {
    let mut value =
        HeaderValue::try_from(format!("Bearer {token}")).context("the token cannot stand in a header")?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls(config: &ClientConfig) -> anyhow::Result<rustls::ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&config.ca_pem) {
        roots.add(certificate.context("cannot read the certificate authority")?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let mut tls = match &config.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = CertificateDer::pem_slice_iter(&identity.certificate_pem).collect::<Result<_, _>>();
            let key =
                PrivateKeyDer::from_pem_slice(&identity.key_pem).context("cannot read the client key")?;
            builder.with_client_auth_cert(chain.context("cannot read the client certificate")?, key)?
        }
    };
    tls.alpn_protocols = vec![b"h2".to_vec()];
    // Many clients that each come for the first time, not one that comes back.
    tls.resumption = Resumption::disabled();
    Ok(tls)
}

/// One HTTP/2 connection. Clones share it; it closes with the last of them.
#[derive(Clone)]
pub(super) struct Connection {
    sender: http2::SendRequest<Full<Bytes>>,
    shared: Arc<Shared>,
    _driver: Arc<AbortOnDropHandle<hyper::Result<()>>>,
}

impl Connection {
    /// Sends a request and reads its whole answer. Answers outside 2xx are errors.
    pub(super) async fn exchange(&self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let exchanged = timeout(EXCHANGE_TIMEOUT, async {
            let answer = self.send(method.clone(), path, body, false).await?;
            read(answer).await
        });
        exchanged
            .await
            .context("no answer in time")
            .flatten()
            .with_context(|| format!("{method} {path} failed"))
    }

    /// Sends a request; the answer's body is still to be read.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        accept_gzip: bool,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.shared.origin))
            .header(ACCEPT, JSON)
            .header(USER_AGENT, concat!("hotmap-bench/", env!("CARGO_PKG_VERSION")));
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, JSON);
        }
        if accept_gzip {
            request = request.header(ACCEPT_ENCODING, "gzip");
        }
        if let Some(authorization) = &self.shared.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        Ok(self
            .sender
            .clone()
            .send_request(request.body(Full::new(body))?)
            .await?)
    }
}

/// The whole body of an answer; its start is the error if the server refused.
pub(super) async fn read(answer: Response<Incoming>) -> anyhow::Result<Bytes> {
    let code = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if !code.is_success() {
        let text: String = String::from_utf8_lossy(&body).chars().take(300).collect();
        bail!("{code}: {text}");
    }
    Ok(body)
}
