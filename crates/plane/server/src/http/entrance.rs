//! Where connections come in, and how many.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};

/// Accepting fails when descriptors run out: others may become free in that time.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A listener and how many connections it may have open.
pub(crate) struct Entrance {
    listener: TcpListener,
    limit: Arc<Semaphore>,
}

impl Entrance {
    pub(crate) fn new(listener: TcpListener, connections_max: usize) -> Self {
        let limit = Arc::new(Semaphore::new(connections_max));
        Self { listener, limit }
    }

    /// Dropping the future loses no connection.
    pub(crate) async fn accept(&self) -> (TcpStream, OwnedSemaphorePermit) {
        let permit = self.limit.clone().acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return (stream, permit),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
}
