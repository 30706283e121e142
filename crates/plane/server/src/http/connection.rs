//! One TCP connection: handshake, protocol, limits, and its end.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use hyper::{
    Request, Response,
    body::Incoming,
    header::DATE,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    authentication::Peer,
    http::{date, response::ResponseBody},
    metrics::Counted,
    tls::{HANDSHAKE_TIMEOUT, Tls},
};

/// Request line and headers together; Go's default is 1 MiB, which no client of ours comes near.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// A client that has not sent all its headers by then is cut off. It counts from the first byte: idle connections stay.
const HEADER_TIME_MAX: Duration = Duration::from_secs(30);
/// A peer that is dead or cut off is found within these two together.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests of one HTTP/2 connection under way at once. Upstream has 100; an informer-heavy client opens one watch per
/// resource or, as our node does, one per object.
const STREAMS_MAX: u32 = 1_000;
/// Unsent bytes of one stream: a slow reader holds up nobody but itself.
const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;
/// TCP gives up on a peer that has not acknowledged data for this long: HTTP/1 has no pings.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(20);
const TCP_KEEP_ALIVE_IDLE: Duration = Duration::from_secs(10);
const TCP_KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Who answers the requests of a connection.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Counts the connection as open until the guard is dropped.
    fn connected(&self) -> Counted;

    /// Answers one request, whatever happens.
    fn answer(
        &self,
        peer: &Peer,
        source: Option<SocketAddr>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<ResponseBody>> + Send;
}

/// Serves a connection until it ends, or until `stopping` and the answers under way.
pub(crate) async fn serve<A: Answers>(
    stream: TcpStream,
    tls: Arc<Tls>,
    front: Arc<A>,
    tasks: TaskTracker,
    stopping: CancellationToken,
) {
    if let Err(error) = set_options(&stream) {
        tracing::debug!(%error, "the peer left before its options were set");
        return;
    }
    let source = stream.peer_addr().ok();
    let handshake = Box::pin(TlsAcceptor::from(tls.config.clone()).accept(stream));
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let _counted = front.connected();
    let (_, session) = stream.get_ref();
    let peer = Arc::new(Peer::new(session.peer_certificates(), &tls));
    let ended = if session.alpn_protocol() == Some(b"h2") {
        Box::pin(serve_http2(stream, front, peer, source, tasks, stopping)).await
    } else {
        serve_http1(stream, front, peer, source, stopping).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

async fn serve_http1<A: Answers>(
    stream: TlsStream<TcpStream>,
    front: Arc<A>,
    peer: Arc<Peer>,
    source: Option<SocketAddr>,
    stopping: CancellationToken,
) -> Result<(), hyper::Error> {
    let service = service_fn(move |request| answer(front.clone(), peer.clone(), source, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stopping.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

async fn serve_http2<A: Answers>(
    stream: TlsStream<TcpStream>,
    front: Arc<A>,
    peer: Arc<Peer>,
    source: Option<SocketAddr>,
    tasks: TaskTracker,
    stopping: CancellationToken,
) -> Result<(), hyper::Error> {
    let service = service_fn(move |request| answer(front.clone(), peer.clone(), source, request));
    let connection = http2::Builder::new(Tracked(tasks))
        .timer(TokioTimer::new())
        .keep_alive_interval(ping_interval(source))
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADER_BYTES_MAX as u32)
        .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stopping.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// A peer on this machine is not pinged: the kernel tells of its end, and PINGs would only wake both. If it is stopped while
/// data waits for it, TCP gives it up as it gives up others.
fn ping_interval(source: Option<SocketAddr>) -> Option<Duration> {
    let is_here = source.is_some_and(|source| source.ip().to_canonical().is_loopback());
    (!is_here).then_some(PING_INTERVAL)
}

async fn answer<A: Answers>(
    front: Arc<A>,
    peer: Arc<Peer>,
    source: Option<SocketAddr>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    // On the heap, so that a connection whose watch is open or that is idle does not hold the space of a whole request.
    let mut answer = Box::pin(front.answer(&peer, source, request)).await;
    answer.headers_mut().insert(DATE, date::now());
    Ok(answer)
}

fn set_options(stream: &TcpStream) -> rustix::io::Result<()> {
    use rustix::net::sockopt;
    let timeout = u32::try_from(TCP_USER_TIMEOUT.as_millis()).expect("a few seconds");
    sockopt::set_tcp_nodelay(stream, true)?;
    sockopt::set_tcp_user_timeout(stream, timeout)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, TCP_KEEP_ALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, TCP_KEEP_ALIVE_INTERVAL)
}

/// Starts the tasks of HTTP/2 where the server can wait for them.
#[derive(Clone)]
struct Tracked(TaskTracker);

impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_on_this_machine_is_not_pinged() {
        for (source, pinged) in [
            ("127.0.0.1:5000", false),
            ("[::1]:5000", false),
            ("[::ffff:127.0.0.1]:5000", false),
            ("10.0.0.2:5000", true),
            ("[fe80::1]:5000", true),
        ] {
            let source = source.parse().expect("an address");
            assert_eq!(ping_interval(Some(source)).is_some(), pinged, "{source}");
        }
        assert_eq!(ping_interval(None), Some(PING_INTERVAL));
    }
}
