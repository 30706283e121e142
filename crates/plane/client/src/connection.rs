//! One connection, and how it is made.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::{Mutex, RwLock};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::debug;

use crate::config::{ClientConfig, ConfigError, Identity, Server, ServerProof, Timeouts};
use crate::error::ClientError;
use crate::tls;

/// So many bytes of one answer may be on the way unread: enough for a list at full speed.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// So many of all answers of a connection: sixty-four watchers may stall before they hold up the others.
const CONNECTION_WINDOW_BYTES: u32 = 64 * STREAM_WINDOW_BYTES;

type Io = TokioIo<TlsStream<TcpStream>>;
type RequestBody = Full<Bytes>;

/// Makes connections to one server.
pub(crate) struct Connector {
    server: Server,
    ca_pem: Vec<u8>,
    server_proof: ServerProof,
    /// Exchanged when there is another certificate to be known by.
    tls: RwLock<TlsConnector>,
    tls_name: ServerName<'static>,
    timeouts: Timeouts,
}

impl Connector {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            server: config.server.clone(),
            tls: RwLock::new(tls::connector(
                &config.ca_pem,
                config.server_proof,
                config.identity.as_ref(),
            )?),
            ca_pem: config.ca_pem.clone(),
            server_proof: config.server_proof,
            tls_name: tls::server_name(&config.server)?,
            timeouts: config.timeouts,
        })
    }

    pub(crate) fn has_identity(&self) -> bool {
        self.tls.read().config().client_auth_cert_resolver.has_certs()
    }

    /// Is known by this certificate on every connection from now on.
    pub(crate) fn exchange(&self, identity: &Identity) -> Result<(), ConfigError> {
        *self.tls.write() = tls::connector(&self.ca_pem, self.server_proof, Some(identity))?;
        Ok(())
    }

    pub(crate) async fn connect(&self) -> Result<Connection, ClientError> {
        let connected = tokio::time::timeout(self.timeouts.connect, self.handshake()).await;
        let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "no connection in time").into();
        connected
            .unwrap_or_else(|_| Err(timed_out()))
            .map_err(|source| ClientError::Connect {
                server: self.server.authority(),
                source: Arc::from(source),
            })
    }

    async fn handshake(&self) -> Result<Connection, Box<dyn std::error::Error + Send + Sync>> {
        let tcp = TcpStream::connect((self.server.host.as_str(), self.server.port)).await?;
        tcp.set_nodelay(true)?;
        notice_death(&tcp, &self.timeouts)?;
        let connector = self.tls.read().clone();
        let tls = connector.connect(self.tls_name.clone(), tcp).await?;
        let speaks_http2 = tls.get_ref().1.alpn_protocol() == Some(tls::ALPN_HTTP2);
        let io = TokioIo::new(tls);
        Ok(if speaks_http2 {
            self.http2(io).await?
        } else {
            http1_connection(io).await?
        })
    }

    async fn http2(&self, io: Io) -> hyper::Result<Connection> {
        let (sender, mut driver) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(self.timeouts.ping_interval)
            .keep_alive_timeout(self.timeouts.ping_timeout)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake::<_, RequestBody>(io)
            .await?;
        let streams_max = Arc::new(AtomicUsize::new(driver.current_max_send_streams()));
        let seen = streams_max.clone();
        drive(poll_fn(move |cx| {
            let state = Pin::new(&mut driver).poll(cx);
            // The server says it in its first frame, and may say it again.
            seen.store(driver.current_max_send_streams(), Ordering::Relaxed);
            state
        }));
        Ok(Connection {
            sender: Sender::Http2(sender),
            streams_max,
            active: AtomicUsize::new(0),
        })
    }
}

async fn http1_connection(io: Io) -> hyper::Result<Connection> {
    let (sender, driver) = http1::Builder::new().handshake::<_, RequestBody>(io).await?;
    drive(driver);
    let sender = Sender::Http1(Mutex::new(sender));
    Ok(Connection {
        sender,
        streams_max: Arc::new(AtomicUsize::new(1)),
        active: AtomicUsize::new(0),
    })
}

/// Runs a connection. The task ends with the connection, which ends with its last sender and last answer; how it
/// ended reaches whoever still waits for one, so nothing is lost here but the log line.
fn drive(driver: impl Future<Output = hyper::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        match pin!(driver).await {
            Ok(()) => debug!("connection closed"),
            Err(error) => debug!(%error, "connection broke"),
        }
    });
}

/// HTTP/2 has its PING; this finds a dead peer under HTTP/1.1 too, and when there is data to send.
fn notice_death(tcp: &TcpStream, timeouts: &Timeouts) -> io::Result<()> {
    use rustix::net::sockopt;
    let whole = timeouts.ping_interval + timeouts.ping_timeout;
    let probe = (timeouts.ping_timeout / 2).max(Duration::from_secs(1));
    sockopt::set_tcp_user_timeout(tcp, u32::try_from(whole.as_millis()).unwrap_or(u32::MAX))?;
    sockopt::set_tcp_keepidle(tcp, timeouts.ping_interval.max(Duration::from_secs(1)))?;
    sockopt::set_tcp_keepintvl(tcp, probe)?;
    sockopt::set_tcp_keepcnt(tcp, 2)?;
    sockopt::set_socket_keepalive(tcp, true)?;
    Ok(())
}

/// A connection that carries as many requests at once as the server permits; one under HTTP/1.1.
pub(crate) struct Connection {
    sender: Sender,
    streams_max: Arc<AtomicUsize>,
    /// Requests whose answers are not read to the end.
    pub(crate) active: AtomicUsize,
}

enum Sender {
    Http2(http2::SendRequest<RequestBody>),
    Http1(Mutex<http1::SendRequest<RequestBody>>),
}

impl Connection {
    pub(crate) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http2(sender) => sender.is_closed(),
            Sender::Http1(sender) => sender.lock().is_closed(),
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.active.load(Ordering::Relaxed) < self.streams_max.load(Ordering::Relaxed)
            && match &self.sender {
                Sender::Http2(_) => true,
                Sender::Http1(sender) => sender.lock().is_ready(),
            }
    }

    pub(crate) fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    pub(crate) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        match &self.sender {
            Sender::Http2(sender) => sender.clone().try_send_request(request).await,
            Sender::Http1(sender) => {
                let answer = sender.lock().try_send_request(request);
                answer.await
            }
        }
    }
}
