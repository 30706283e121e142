//! A small server over TLS that answers as a test says.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body, Frame};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, RootCertStore, server::WebPkiClientVerifier};

use super::*;
use crate::config::{Identity, Server};

/// An answer: a body that is there, or one that somebody goes on writing.
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) body: ReplyBody,
}

pub(super) enum ReplyBody {
    Whole(Option<Bytes>),
    Written(mpsc::UnboundedReceiver<Result<Bytes, std::io::Error>>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Written(chunks) => chunks
                .poll_recv(cx)
                .map(|chunk| chunk.map(|chunk| chunk.map(Frame::data))),
        }
    }
}

pub(super) fn whole(code: u16, body: impl Into<Bytes>) -> Reply {
    Reply {
        code,
        body: ReplyBody::Whole(Some(body.into())),
    }
}

/// A request as the server sees it: `METHOD path`, its headers, its body.
pub(super) struct Seen {
    pub(super) line: String,
    pub(super) headers: hyper::HeaderMap,
    pub(super) body: Bytes,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

pub(super) type Handler = Arc<dyn Fn(Seen) -> Reply + Send + Sync>;

pub(super) struct Pki {
    pub(super) ca: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self {
            ca: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap(),
        }
    }

    pub(super) fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        (
            params.signed_by(&key, &self.ca).unwrap().pem(),
            key.serialize_pem(),
        )
    }

    pub(super) fn acceptor(&self, alpn: &[&str]) -> TlsAcceptor {
        let (certificate, key) = self.issue("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.ca.as_ref().der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
            .build()
            .unwrap();
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        tls.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(tls))
    }
}

pub(super) struct TestServer {
    pub(super) pki: Pki,
    pub(super) address: SocketAddr,
    pub(super) accepted: Arc<AtomicUsize>,
    pub(super) freeze: Arc<Notify>,
    pub(super) running: JoinSet<()>,
}

#[derive(Clone, Copy)]
pub(super) struct Setup {
    pub(super) alpn: &'static [&'static str],
    pub(super) streams_max: u32,
}

pub(super) const HTTP2: Setup = Setup {
    alpn: &["h2", "http/1.1"],
    streams_max: 200,
};
pub(super) const HTTP1: Setup = Setup {
    alpn: &["http/1.1"],
    streams_max: 200,
};

impl TestServer {
    pub(super) async fn start(setup: Setup, handler: impl Fn(Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(
            "127.0.0.1:0".parse().unwrap(),
            Pki::new(),
            setup,
            Arc::new(handler),
        )
        .await
    }

    pub(super) async fn start_at(address: SocketAddr, pki: Pki, setup: Setup, handler: Handler) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, freeze) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let mut running = JoinSet::new();
        running.spawn(serve(
            listener,
            pki.acceptor(setup.alpn),
            setup,
            handler,
            accepted.clone(),
            freeze.clone(),
        ));
        Self {
            pki,
            address,
            accepted,
            freeze,
            running,
        }
    }

    pub(super) fn config(&self) -> ClientConfig {
        let server = Server::parse(&format!("https://{}", self.address)).unwrap();
        let mut config = ClientConfig::new(server, self.pki.ca.as_ref().pem());
        let (certificate, key) = self.pki.issue("node", ExtendedKeyUsagePurpose::ClientAuth);
        config.identity = Some(Identity {
            certificate_pem: certificate.into(),
            key_pem: key.into(),
        });
        config.timeouts.reconnect_max = Duration::from_millis(50);
        config
    }

    pub(super) fn client(&self) -> Client {
        Client::new(self.config()).unwrap()
    }

    /// Ends the server and its connections, as kill -9 does.
    pub(super) async fn kill(mut self) -> (SocketAddr, Pki) {
        self.running.shutdown().await;
        (self.address, self.pki)
    }
}

pub(super) async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    setup: Setup,
    handler: Handler,
    accepted: Arc<AtomicUsize>,
    freeze: Arc<Notify>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        accepted.fetch_add(1, Ordering::SeqCst);
        let (tls, handler, freeze) = (tls.clone(), handler.clone(), freeze.clone());
        connections.spawn(async move {
            let Ok(tls) = tls.accept(tcp).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                let handler = handler.clone();
                async move { Ok::<_, Infallible>(answer(request, &handler).await) }
            });
            let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            builder.http2().max_concurrent_streams(setup.streams_max);
            let connection = builder.serve_connection(TokioIo::new(tls), service);
            tokio::pin!(connection);
            tokio::select! {
                _ = &mut connection => {}
                // Keeps the socket open and never looks at it again.
                () = freeze.notified() => std::future::pending().await,
            }
        });
    }
}

async fn answer(request: Request<Incoming>, handler: &Handler) -> Response<ReplyBody> {
    let line = format!("{} {}", request.method(), request.uri().path_and_query().unwrap());
    let headers = request.headers().clone();
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let reply = handler(Seen { line, headers, body });
    Response::builder().status(reply.code).body(reply.body).unwrap()
}
