//! The connections to one server: one, as long as it has room for another request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::config::{ConfigError, Identity};
use crate::connection::{Connection, Connector};
use crate::error::ClientError;

/// So many connections to one server at most. Over HTTP/2 one carries hundreds of requests; over HTTP/1.1 this is
/// how many watches there can be.
const CONNECTIONS_MAX: usize = 64;

const RECONNECT_MIN: Duration = Duration::from_millis(50);

pub(crate) struct Pool {
    connector: Connector,
    connections: Mutex<Vec<Arc<Connection>>>,
    /// Counts certificates. A connection that was being made with an earlier one carries the one request it was made for.
    identity: AtomicU64,
    /// Held while connecting, so that only one does and the others share what it brings. An asynchronous mutex
    /// on purpose: to wait for the connection is what it is for, and nothing else is behind it.
    gate: tokio::sync::Mutex<Gate>,
    /// Counts finished attempts, so that who waited at the gate knows whether one ended meanwhile.
    attempts: AtomicU64,
    /// Counts connections made.
    established: watch::Sender<u64>,
}

struct Gate {
    backoff: Backoff,
    not_before: Option<Instant>,
    failure: Option<ClientError>,
}

/// The right to one request on a connection, until its answer is read.
pub(crate) struct Lease(Arc<Connection>);

impl Pool {
    pub(crate) fn new(connector: Connector, reconnect_max: Duration) -> Self {
        let backoff = Backoff::seeded(RECONNECT_MIN.min(reconnect_max), reconnect_max);
        Self {
            connector,
            connections: Mutex::default(),
            identity: AtomicU64::new(0),
            gate: tokio::sync::Mutex::new(Gate {
                backoff,
                not_before: None,
                failure: None,
            }),
            attempts: AtomicU64::new(0),
            established: watch::Sender::new(0),
        }
    }

    /// A place on a connection that has room, or on a new one.
    pub(crate) async fn lease(&self) -> Result<Lease, ClientError> {
        if let Some(lease) = self.room()? {
            return Ok(lease);
        }
        let attempts_before = self.attempts.load(Ordering::Acquire);
        let mut gate = self.gate.lock().await;
        if let Some(lease) = self.room()? {
            return Ok(lease);
        }
        if self.attempts.load(Ordering::Acquire) != attempts_before
            && let Some(failure) = &gate.failure
        {
            return Err(failure.clone());
        }
        if let Some(not_before) = gate.not_before {
            tokio::time::sleep_until(not_before).await;
        }
        let identity = self.identity.load(Ordering::Acquire);
        // On the heap: of a thousand requests one connects.
        let connected = Box::pin(self.connector.connect()).await;
        self.attempts.fetch_add(1, Ordering::Release);
        match connected {
            Ok(connection) => {
                gate.backoff.reset();
                (gate.not_before, gate.failure) = (None, None);
                Ok(self.add(connection, identity))
            }
            Err(error) => {
                gate.not_before = Some(Instant::now() + gate.backoff.next_delay());
                gate.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    pub(crate) fn has_identity(&self) -> bool {
        self.connector.has_identity()
    }

    /// New requests go over connections of this certificate; those under way end where they are.
    pub(crate) fn exchange(&self, identity: &Identity) -> Result<(), ConfigError> {
        self.connector.exchange(identity)?;
        self.identity.fetch_add(1, Ordering::AcqRel);
        // Whoever reads an answer holds its connection, which ends with the last of them.
        self.connections.lock().clear();
        Ok(())
    }

    /// Changes each time a connection is made.
    pub(crate) fn established(&self) -> watch::Receiver<u64> {
        self.established.subscribe()
    }

    fn add(&self, connection: Connection, identity: u64) -> Lease {
        let connection = Arc::new(connection);
        let lease = Lease::new(&connection);
        {
            let mut connections = self.connections.lock();
            if self.identity.load(Ordering::Acquire) == identity {
                connections.push(connection);
            }
        }
        self.established.send_modify(|count| *count += 1);
        lease
    }

    fn room(&self) -> Result<Option<Lease>, ClientError> {
        let mut connections = self.connections.lock();
        connections.retain(|connection| !connection.is_closed());
        match connections.iter().find(|connection| connection.has_room()) {
            Some(connection) => Ok(Some(Lease::new(connection))),
            None if connections.len() < CONNECTIONS_MAX => Ok(None),
            None => Err(ClientError::Busy {
                connections: connections.len(),
            }),
        }
    }
}

impl Lease {
    fn new(connection: &Arc<Connection>) -> Self {
        connection.active.fetch_add(1, Ordering::Relaxed);
        Self(connection.clone())
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}
