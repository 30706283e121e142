//! Clients of what a pod does: of a container's streams, and of its ports.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};

use super::{Connection, REPLY_PATIENCE, Runtime};
use crate::attach::{AttachConfig, AttachSession};
use crate::error::{AttachError, ConnectError};
use crate::protocol::{Call, Refusal, Reply};

/// A program of the same machine takes a connection at once, or its queue is full.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);

impl Runtime {
    /// Takes part in the streams of the newest attempt of a container, which must run. What it printed before is in its log.
    ///
    /// # Errors
    /// [`AttachError`].
    pub async fn attach_container(
        &self,
        pod_uid: &str,
        container: &str,
        config: AttachConfig,
    ) -> Result<AttachSession, AttachError> {
        let Some(sandbox) = self.sandbox(pod_uid) else {
            return Err(AttachError::NoSandbox(pod_uid.to_owned()));
        };
        if !self.is_attached(pod_uid) || sandbox.container(container).is_none() {
            // Its containers are known to have ended.
            return Err(AttachError::NotRunning(container.to_owned()));
        }
        let connection = Connection::open(&self.pod_dir(pod_uid))
            .await
            .map_err(AttachError::Shim)?;
        AttachSession::start(connection, pod_uid, container, config).await
    }

    /// Connects to a port that a program of the pod listens on, on the pod's loopback: 127.0.0.1, else ::1.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, pod_uid: &str, port: u16) -> Result<TcpStream, ConnectError> {
        if !self.is_attached(pod_uid) {
            return Err(ConnectError::NoSandbox(pod_uid.to_owned()));
        }
        let loopback: [SocketAddr; 2] = [
            (Ipv4Addr::LOCALHOST, port).into(),
            (Ipv6Addr::LOCALHOST, port).into(),
        ];
        let mut first = None;
        for address in loopback {
            let socket = pod_socket(&self.pod_dir(pod_uid), pod_uid, address.is_ipv6()).await;
            let socket = match (socket, &first) {
                (Ok(socket), _) => socket,
                // A machine without IPv6: what IPv4 said is the answer.
                (Err(_), Some(_)) => break,
                (Err(error), None) => return Err(error),
            };
            let connecting = socket.connect(address);
            let connected = tokio::time::timeout(CONNECT_PATIENCE, connecting).await;
            match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    // Best effort: without it small pieces wait for one another.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => {
                    first.get_or_insert(error);
                }
            }
        }
        let source = first.unwrap_or_else(|| io::ErrorKind::NotConnected.into());
        Err(ConnectError::Port { port, source })
    }
}

/// A socket in the network of the pod whose shim listens in `pod_dir`.
pub(crate) async fn pod_socket(pod_dir: &Path, pod_uid: &str, ipv6: bool) -> Result<TcpSocket, ConnectError> {
    let open = async {
        let mut connection = Connection::open(pod_dir).await?;
        let reply = connection.call(Call::OpenSocket { ipv6 }, &[]).await?;
        io::Result::Ok((reply, connection.take_fds().pop()))
    };
    let answered = tokio::time::timeout(REPLY_PATIENCE, open).await;
    let answered = answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match answered.map_err(ConnectError::Shim)? {
        (Reply::SocketOpened, Some(socket)) => Ok(as_tcp_socket(socket)),
        (Reply::Refused { refusal }, _) => Err(match refusal {
            Refusal::Stopped => ConnectError::NoSandbox(pod_uid.to_owned()),
            Refusal::Unsupported => ConnectError::OldShim,
            Refusal::Setup { message } => ConnectError::Failed(message),
            refusal => ConnectError::Failed(format!("refused: {refusal:?}")),
        }),
        _ => Err(ConnectError::Shim(io::ErrorKind::InvalidData.into())),
    }
}

/// A fresh socket, which the shim made non-blocking.
fn as_tcp_socket(socket: OwnedFd) -> TcpSocket {
    TcpSocket::from_std_stream(std::net::TcpStream::from(socket))
}
