//! Connections to where a pod's spec says: probes and hooks name hosts freely.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Names that are looked up at a time. A lookup blocks its thread for as long as name servers are silent, also when the
/// probe that asked has given up: pods with names that nobody knows must not take the threads that all pods need.
const LOOKUPS_MAX: usize = 4;

static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);

/// Connects to an address, or to the first of a name's addresses that answers. Names wait for one another, addresses for
/// nobody.
///
/// # Errors
///
/// What the lookup or the last attempt failed with.
pub(crate) async fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return TcpStream::connect((address, port)).await;
    }
    let turn = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let name = (host.to_owned(), port);
    let found = spawn_blocking(move || {
        let found = name.to_socket_addrs().map(Vec::from_iter);
        // Not before: whoever asked may be gone.
        drop(turn);
        found
    });
    TcpStream::connect(&*found.await.map_err(io::Error::other)??).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn names_wait_for_one_another_and_addresses_for_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let all = LOOKUPS.acquire_many(LOOKUPS_MAX as u32).await.unwrap();
        dial("127.0.0.1", port).await.unwrap();
        tokio::time::pause();
        let named = tokio::time::timeout(Duration::from_secs(60), dial("localhost", port));
        assert!(named.await.is_err(), "it waits for its turn");
        tokio::time::resume();
        drop(all);
        dial("localhost", port).await.unwrap();
        assert!(dial("no such name", port).await.is_err());
        // Every turn was given back, also that of the one who gave up.
        drop(LOOKUPS.acquire_many(LOOKUPS_MAX as u32).await.unwrap());
    }
}
