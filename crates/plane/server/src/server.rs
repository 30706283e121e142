//! A server from its listener to its last answer.

use std::{future::pending, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use hotmap_store::{Store, StoreError};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, oneshot},
    task::{JoinError, JoinSet},
    time::{Instant, MissedTickBehavior},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    audit::{Audit, AuditConfig, AuditTarget},
    credentials::Credentials,
    front::{Front, Parts},
    http::{connection, entrance::Entrance},
    local_objects::LocalObjects,
    metrics::Metrics,
    nodes::{LocalNode, Nodes},
    objects::Objects,
    tls::{Tls, TlsError},
    tokens::Tokens,
};

/// Connections open at once; more wait in the listener's queue. About 300 MiB at the worst, and twice the watchers that
/// the design measures with.
const CONNECTIONS_MAX: usize = 10_000;
/// Beside these so many may come from pods through a listener of their own: several of each pod that a node can have. Pods that
/// use them up keep nobody out but pods.
const POD_CONNECTIONS_MAX: usize = 2_000;
/// Answers under way get this long when the server stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);
/// The last audit records get this long.
const AUDIT_TIME_MAX: Duration = Duration::from_secs(5);
/// How often certificates are looked at.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long until system namespaces, default roles and gathered rules are tried again where the store takes no writes.
const BEGIN_INTERVAL: Duration = Duration::from_secs(10);

/// What a server needs besides store and listener.
pub struct ServerConfig {
    /// Our own version, such as `0.1.0`: the build metadata of `/version`.
    pub version: String,
    /// The authority that signs our certificate and whose clients are known.
    pub credentials: Credentials,
    /// The node in this process, if there is one; others are reached at the port that their status names.
    pub node: Option<LocalNode>,
    /// What is recorded of requests; `None`: nothing.
    pub audit: Option<AuditConfig>,
    /// Where pods reach this server, if they do.
    pub pods_door: Option<PodsDoor>,
    /// What others of this process count, shown under `/metrics` beside what the server counts.
    pub metrics: Registry,
    /// Given its objects once everything is loaded and what every cluster begins with is there.
    pub ready: Option<oneshot::Sender<LocalObjects>>,
}

/// Where pods reach the API. Service and Endpoints `kubernetes` in the namespace `default` say so.
pub struct PodsDoor {
    /// As pods see it; the serving certificate must name it.
    pub address: SocketAddr,
    /// Another listener beside the main one; `None`: the main one listens there as well.
    pub listener: Option<TcpListener>,
}

/// Why a server ended early or never began.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store could not be read.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// The certificates cannot be used.
    #[error("TLS cannot be set up")]
    Tls(#[from] TlsError),
    /// The listener has no address.
    #[error("the listener does not work")]
    Listener(#[source] std::io::Error),
    /// The audit log cannot be opened.
    #[error("the audit log{} cannot be opened", .path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    AuditLog {
        /// Its file; `None` is standard output.
        path: Option<PathBuf>,
        /// Why.
        source: std::io::Error,
    },
}

/// Serves until `shutdown`, then lets answers under way finish: watches end at once and cleanly, the rest has ten
/// seconds.
///
/// # Errors
///
/// [`ServeError`]
pub async fn run(
    config: ServerConfig,
    store: Arc<dyn Store>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let ServerConfig {
        version,
        credentials,
        node,
        audit,
        pods_door,
        metrics,
        mut ready,
    } = config;
    let for_pods = pods_door.as_ref().map(|door| door.address);
    let address = listener.local_addr().map_err(ServeError::Listener)?;
    let main = Entrance::new(listener, CONNECTIONS_MAX);
    let pods_listener = pods_door.and_then(|door| door.listener);
    let pods = pods_listener.map(|listener| Entrance::new(listener, POD_CONNECTIONS_MAX));
    let tls = Arc::new(Tls::new(&credentials)?);
    let stopping = CancellationToken::new();
    let tasks = TaskTracker::new();
    let objects = Objects::start(store.clone(), credentials.authority_pem()).await?;
    let metrics = Metrics::new(metrics);
    let audit = audit.map(|config| start_audit(config, &metrics)).transpose()?;
    let mut is_begun = begin(&objects, for_pods).await;
    let front = Arc::new(Front::new(Parts {
        version,
        address,
        store,
        tokens: Arc::new(Tokens::new(credentials.token_keys().clone(), objects.clone())),
        objects: objects.clone(),
        nodes: Nodes::new(node, objects.clone(), credentials.clone()),
        metrics,
        audit: audit.clone(),
        stopping: stopping.clone(),
        tasks: tasks.clone(),
    }));
    let mut connections = JoinSet::new();
    let mut renewal = tokio::time::interval_at(Instant::now() + RENEWAL_INTERVAL, RENEWAL_INTERVAL);
    renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut beginning = tokio::time::interval_at(Instant::now() + BEGIN_INTERVAL, BEGIN_INTERVAL);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        if is_begun && let Some(ready) = ready.take() {
            // Nobody may listen any more: then nobody needs to know.
            let _ = ready.send(objects.local());
        }
        tokio::select! {
            () = &mut shutdown => break,
            (stream, permit) = accept(&main, pods.as_ref()) => {
                let serving = connection::serve(stream, tls.clone(), front.clone(), tasks.clone(), stopping.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Some(ended) = connections.join_next() => log_panic(ended),
            () = objects.aggregation_behind(), if is_begun => {
                is_begun = false;
                beginning.reset();
            }
            _ = beginning.tick(), if !is_begun => is_begun = begin(&objects, for_pods).await,
            _ = renewal.tick() => renew(&credentials, &tls).await,
        }
    }
    drop((main, pods));
    stop(stopping, tasks, connections).await;
    if let Some(audit) = audit {
        // A thread that panics has said so.
        let _ = tokio::task::spawn_blocking(move || audit.flush(AUDIT_TIME_MAX)).await;
    }
    Ok(())
}

fn start_audit(config: AuditConfig, metrics: &Metrics) -> Result<Arc<Audit>, ServeError> {
    let started = Audit::start(&config, metrics);
    started.map(Arc::new).map_err(|source| ServeError::AuditLog {
        path: match config.target {
            AuditTarget::StandardOutput => None,
            AuditTarget::File { path, .. } => Some(path),
        },
        source,
    })
}

/// Creates what every cluster begins with. A store that takes no writes now, its disk full, still serves reads.
async fn begin(objects: &Objects, for_pods: Option<SocketAddr>) -> bool {
    let begun = tokio::try_join!(objects.bootstrap(for_pods), objects.bootstrap_access_policy());
    if let Err(error) = &begun {
        tracing::error!(%error, "what every cluster begins with cannot be created, trying again");
    }
    begun.is_ok()
}

async fn accept(main: &Entrance, pods: Option<&Entrance>) -> (TcpStream, OwnedSemaphorePermit) {
    let from_pods = async {
        match pods {
            Some(pods) => pods.accept().await,
            None => pending().await,
        }
    };
    tokio::select! {
        accepted = main.accept() => accepted,
        accepted = from_pods => accepted,
    }
}

async fn renew(credentials: &Credentials, tls: &Tls) {
    let held = credentials.clone();
    let renewed = tokio::task::spawn_blocking(move || held.renew(Timestamp::now())).await;
    match renewed {
        Ok(Ok(false)) => {}
        Ok(Ok(true)) => match tls.exchange(&credentials.serving()) {
            Ok(()) => tracing::info!("serving certificate renewed"),
            Err(error) => tracing::error!(
                error = &error as &dyn std::error::Error,
                "renewed certificate cannot be used"
            ),
        },
        Ok(Err(error)) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "certificates cannot be renewed, trying again in an hour"
            );
        }
        Err(error) => tracing::error!(%error, "certificates cannot be renewed, trying again in an hour"),
    }
}

async fn stop(stopping: CancellationToken, tasks: TaskTracker, mut connections: JoinSet<()>) {
    stopping.cancel();
    tasks.close();
    let all = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
        tasks.wait().await;
    };
    if tokio::time::timeout(STOP_TIME_MAX, all).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "connections were cut off at the end"
        );
        connections.shutdown().await;
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection ended in a panic");
    }
}

#[cfg(test)]
mod tests;
