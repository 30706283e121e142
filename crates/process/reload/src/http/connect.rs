//! From a place to a stream of bytes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
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

/// Where a name leads, in the order in which it is tried. `localhost` is this machine whatever resolvers say (RFC 6761, 6.3):
/// to ask them takes a thread, and two wake-ups.
async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if host.eq_ignore_ascii_case("localhost") {
        let both: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
        return Ok(both.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    Ok(lookup_host((host, port)).await?.collect())
}

/// A connection to the first address that takes it; the error is that of the last one.
async fn tcp(place: &Place, host: &str, port: u16) -> Result<TcpStream, HttpError> {
    let resolve = |source| HttpError::Resolve {
        host: host.to_owned(),
        source,
    };
    let addresses = addresses(host, port).await.map_err(resolve)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn localhost_is_this_machine_and_addresses_are_themselves() {
        for (host, expected) in [
            ("localhost", vec!["[::1]:80", "127.0.0.1:80"]),
            ("LocalHost", vec!["[::1]:80", "127.0.0.1:80"]),
            ("192.0.2.1", vec!["192.0.2.1:80"]),
            ("2001:db8::1", vec!["[2001:db8::1]:80"]),
        ] {
            let found = addresses(host, 80).await.unwrap();
            let found: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
            assert_eq!(found, expected, "{host}");
        }
    }
}
