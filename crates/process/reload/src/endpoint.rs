//! What is watched, served to the programs beside.
//!
//! ```text
//!   unix:PATH ─────────┐
//!   127.0.0.1:PORT ────┼─▶ door ─▶ router ─▶ config · key · events · ack · metrics · healthz
//!   --metrics-address ─┘    │         ▲
//!            foreign Host, Origin     └── Standing (progress and acknowledgements) · Changes · the files
//! ```
//!
//! Listeners are bound before anything else starts, so that an address that is taken is an error of the call. Nothing that
//! is served waits for the reloader, and nothing that a client does holds it up.

mod ack;
mod address;
mod answer;
mod changes;
mod config;
mod content;
mod door;
mod etag;
mod events;
mod health;
mod metrics;
mod query;
mod router;
mod secrecy;
mod stall;
mod standing;
mod unix;
mod volumes;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

pub(crate) use address::{MetricsAddress, ServeAddress};
pub(crate) use changes::Changes;
pub(crate) use health::HealthRule;
pub(crate) use metrics::{EndpointMetrics, Receiver, Reported};
pub(crate) use router::Sources;
pub(crate) use secrecy::{Secrecy, redacted};
#[cfg(test)]
pub(crate) use standing::Acknowledgement;
pub(crate) use standing::{MESSAGE_BYTES_MAX, Standing};

use door::Door;
#[cfg(test)]
use router::Route;
use stall::Impatient;
use unix::{SocketError, UnixSocket};

/// Connections of one address at a time. A program needs two (a stream, and requests); a leak in one shall not eat the
/// memory of what may be a sidecar.
const CONNECTIONS_MAX: usize = 64;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Time for a request's head, and for a connection that is kept and says nothing.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// Before the next try after `accept` has failed: out of descriptors, and still so if it is tried at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where is listened.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndpointConfig {
    /// All is served here.
    pub(crate) addresses: Vec<ServeAddress>,
    /// The mode of Unix sockets.
    pub(crate) socket_mode: u32,
    /// Only metrics and health are served here.
    pub(crate) metrics_addresses: Vec<MetricsAddress>,
}

/// An address is not listened on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error("--serve: {0}")]
    Socket(#[from] SocketError),
    #[error("cannot listen on {address}: {source}")]
    Bind { address: String, source: io::Error },
}

/// Bound listeners. Sockets are removed when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Endpoint {
    listeners: Vec<Listener>,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixSocket),
    Tcp(TcpListener, Door),
}

impl Endpoint {
    /// Listens everywhere, or nowhere. Needs a runtime around it.
    pub(crate) fn bind(config: &EndpointConfig) -> Result<Self, EndpointError> {
        let mut listeners = Vec::new();
        for address in &config.addresses {
            let listener = match address {
                ServeAddress::Unix(path) => Listener::Unix(UnixSocket::bind(path, config.socket_mode)?),
                ServeAddress::Loopback(socket) => {
                    let listener = listen(&[*socket]).map_err(|source| failed(address, source))?;
                    let bound = listener.local_addr().map_err(|source| failed(address, source))?;
                    info!(address = %bound, "the local endpoint listens");
                    Listener::Tcp(listener, Door::Loopback(bound))
                }
            };
            if let ServeAddress::Unix(path) = address {
                info!(path = %path.display(), "the local endpoint listens");
            }
            listeners.push(listener);
        }
        for address in &config.metrics_addresses {
            let listener = listen(&address.candidates()).map_err(|source| failed(address, source))?;
            let bound = listener.local_addr().map_err(|source| failed(address, source))?;
            info!(address = %bound, "metrics are served");
            listeners.push(Listener::Tcp(listener, Door::Metrics));
        }
        Ok(Self { listeners })
    }

    /// Addresses that TCP is listened on, in the order of the flags.
    #[cfg(test)]
    pub(crate) fn tcp_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().filter_map(|listener| match listener {
            Listener::Tcp(listener, _) => listener.local_addr().ok(),
            Listener::Unix(_) => None,
        })
    }

    /// Serves until it is dropped.
    pub(crate) async fn serve(self, sources: Sources) {
        let mut listening = JoinSet::new();
        for listener in self.listeners {
            listening.spawn(accept(listener, sources.clone()));
        }
        while let Some(ended) = listening.join_next().await {
            // It has no end of its own.
            warn!(?ended, "a listener of the local endpoint has ended");
        }
        // Nothing is served: there is nothing to wait for, and nothing has failed.
        std::future::pending().await
    }
}

fn listen(candidates: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for candidate in candidates {
        let bound = std::net::TcpListener::bind(candidate).and_then(|listener| {
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        });
        match bound {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn failed(address: &impl ToString, source: io::Error) -> EndpointError {
    EndpointError::Bind {
        address: address.to_string(),
        source,
    }
}

async fn accept(listener: Listener, sources: Sources) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                warn!(%error, "a client cannot connect");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            sources.metrics.refused();
            warn!(
                limit = CONNECTIONS_MAX,
                "a client is closed at once: there are too many connections"
            );
            continue;
        };
        let (sources, door) = (sources.clone(), listener.door());
        open.spawn(async move {
            sources.metrics.connected();
            match stream {
                Stream::Unix(stream) => converse(stream, door, &sources).await,
                Stream::Tcp(stream) => converse(stream, door, &sources).await,
            }
            sources.metrics.disconnected();
            drop(permit);
        });
    }
}

enum Stream {
    Unix(tokio::net::UnixStream),
    Tcp(tokio::net::TcpStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(socket) => socket.accept().await.map(Stream::Unix),
            Self::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // A line of a stream is for now, not for when there is more.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    fn door(&self) -> Door {
        match self {
            Self::Unix(_) => Door::Unix,
            Self::Tcp(_, door) => *door,
        }
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, door: Door, sources: &Sources) {
    let service = service_fn(|request| async move {
        Ok::<_, std::convert::Infallible>(sources.answer(door, request).await)
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Impatient::new(stream)), service);
    if let Err(error) = conversation.await {
        if is_stall(&error) {
            sources.metrics.cut_off();
        }
        debug!(%error, "a client left");
    }
}

fn is_stall(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests;
