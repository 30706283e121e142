//! From a place to a stream of bytes.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::timeout;

use super::{HttpError, Place, TlsFiles};

/// An address that does not answer is given up after this, so that the next address of the name has its turn.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// A connection, whatever it runs over. One type, so that HTTP is compiled once.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) async fn connect(place: &Place, tls: &TlsFiles) -> Result<Box<dyn Stream>, HttpError> {
    match place {
        Place::Unix(path) => Ok(Box::new(unix(path).await?)),
        Place::Tcp {
            is_tls, host, port, ..
        } => {
            let stream = tcp(place, host, *port).await?;
            if !is_tls {
                return Ok(Box::new(stream));
            }
            let connector = tls.connector().map_err(HttpError::Files)?;
            let name = ServerName::try_from(host.clone())
                .map_err(|_| HttpError::ServerName { host: host.clone() })?;
            let stream = connector
                .connect(name, stream)
                .await
                .map_err(|error| HttpError::tls(place, tls, &error))?;
            Ok(Box::new(stream))
        }
    }
}

async fn unix(path: &Path) -> Result<UnixStream, HttpError> {
    UnixStream::connect(path).await.map_err(|source| HttpError::Unix {
        path: path.to_owned(),
        source,
    })
}

/// The addresses of a name in the order of the resolver; the error is that of the last one.
async fn tcp(place: &Place, host: &str, port: u16) -> Result<TcpStream, HttpError> {
    let resolve = |source| HttpError::Resolve {
        host: host.to_owned(),
        source,
    };
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await.map_err(resolve)?.collect();
    let mut failed = resolve(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
    for address in addresses {
        match timeout(CONNECT_PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A request is one small packet; it goes out at once. A socket that refuses this works all the same.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(source)) => failed = HttpError::connect(place, address, source),
            Err(_) => {
                let silent = io::Error::new(io::ErrorKind::TimedOut, "no answer");
                failed = HttpError::connect(place, address, silent);
            }
        }
    }
    Err(failed)
}
