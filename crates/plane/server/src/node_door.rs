//! What an agent serves on port 10250: logs, commands, streams and ports of its pods, its metrics, its health.
//!
//! Upstream's paths (`pkg/kubelet/server/server.go`, Kubernetes 1.36), so that a stock API server's `kubectl logs` works as
//! ours does; commands come over WebSocket only, which a stock API server does not speak to nodes.
//!
//! ```text
//!   GET  /containerLogs/NAMESPACE/POD/CONTAINER     nodes/proxy
//!   *    /exec/NAMESPACE/POD/CONTAINER              nodes/proxy, always as `create`
//!   *    /attach/NAMESPACE/POD/CONTAINER            likewise
//!   *    /portForward/NAMESPACE/POD                 likewise
//!   GET  /metrics                                   nodes/metrics
//!   GET  /healthz                                   nodes/healthz
//! ```

mod target;

use std::{net::SocketAddr, sync::Arc};

use futures_util::future::BoxFuture;
use hotmap_object::Status;
use hyper::{Method, Request, Response, body::Incoming, header::HeaderMap};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    authentication::{Peer, bearer},
    credentials::KeyPairPem,
    http::{
        connection::{self, Answers},
        entrance::Entrance,
        response::{self, ResponseBody, Wishes},
    },
    metrics::{self, Counted, ProcessMetrics},
    node_access::NodeAccess,
    request::Query,
    streams,
    tls::{Tls, TlsError},
};
use target::Target;

/// The API server and a few people with kubectl; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 256;
/// Who is in it may do everything.
const MASTERS: &str = "system:masters";

/// Who asks an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeUser {
    /// The user.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

/// Asks the API who somebody is and what they may do with a node.
pub trait NodeGate: Send + Sync + 'static {
    /// The user that a bearer token names; `None` if it names nobody.
    fn who<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<NodeUser>, Status>>;

    /// Whether the user may `verb` the subresource of this node.
    fn may<'a>(
        &'a self,
        user: &'a NodeUser,
        verb: &'static str,
        subresource: &'static str,
    ) -> BoxFuture<'a, Result<bool, Status>>;
}

/// A certificate that an agent serves, and its key.
#[derive(Clone)]
pub struct ServingPair {
    /// The certificate, then those that signed it, PEM.
    pub certificate_pem: String,
    /// The private key, PEM.
    pub key_pem: String,
}

impl std::fmt::Debug for ServingPair {
    // The key is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServingPair(…)")
    }
}

impl From<ServingPair> for KeyPairPem {
    fn from(pair: ServingPair) -> Self {
        Self {
            certificate: pair.certificate_pem,
            key: pair.key_pem,
        }
    }
}

/// What an agent's door needs besides its listener.
pub struct NodeDoorConfig {
    /// The pods.
    pub node: Arc<dyn NodeAccess>,
    /// Name of the node.
    pub node_name: String,
    /// Who may come in.
    pub gate: Arc<dyn NodeGate>,
    /// Signs the clients that are known; one or more certificates, PEM.
    pub authority_pem: String,
    /// What is served now; a new value is served from then on.
    pub certificate: watch::Receiver<ServingPair>,
    /// What the agent counts.
    pub metrics: Registry,
}

/// Serves until `shutdown`; sessions under way end with it.
///
/// # Errors
///
/// [`TlsError`]: the first certificate cannot be used.
pub async fn open_node_door(
    config: NodeDoorConfig,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), TlsError> {
    let NodeDoorConfig {
        node,
        node_name,
        gate,
        authority_pem,
        mut certificate,
        metrics,
    } = config;
    let first = certificate.borrow_and_update().clone();
    let tls = Arc::new(Tls::of(&authority_pem, &first.into())?);
    let stopping = CancellationToken::new();
    let tasks = TaskTracker::new();
    let door = Arc::new(Door {
        node,
        node_name,
        gate,
        metrics: ProcessMetrics::new(metrics),
        stopping: stopping.clone(),
        tasks: tasks.clone(),
    });
    let entrance = Entrance::new(listener, CONNECTIONS_MAX);
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    let mut renews = true;
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            (stream, permit) = entrance.accept() => {
                let serving = connection::serve(stream, tls.clone(), door.clone(), tasks.clone(), stopping.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(permit);
                });
            }
            Some(_) = connections.join_next() => {}
            changed = certificate.changed(), if renews => match changed {
                Ok(()) => {
                    let pair = certificate.borrow_and_update().clone();
                    if let Err(error) = tls.exchange(&pair.into()) {
                        tracing::error!(%error, "a new serving certificate cannot be used, the former one stays");
                    }
                }
                Err(_) => renews = false,
            },
        }
    }
    stopping.cancel();
    tasks.close();
    tasks.wait().await;
    Ok(())
}

struct Door {
    node: Arc<dyn NodeAccess>,
    node_name: String,
    gate: Arc<dyn NodeGate>,
    metrics: ProcessMetrics,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

impl Answers for Door {
    fn connected(&self) -> Counted {
        self.metrics.connection()
    }

    async fn answer(
        &self,
        peer: &Peer,
        _source: Option<SocketAddr>,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let wishes = Wishes::new(request.headers(), &query, request.method() == Method::HEAD);
        match self.route(peer, &mut request, &query, &wishes).await {
            Ok(response) => response,
            Err(status) => response::of_status(&status, &wishes),
        }
    }
}

impl Door {
    async fn route(
        &self,
        peer: &Peer,
        request: &mut Request<Incoming>,
        query: &Query,
        wishes: &Wishes,
    ) -> Result<Response<ResponseBody>, Status> {
        let user = self.user(peer, request.headers()).await?;
        let Some(target) = Target::parse(request.uri().path()) else {
            return Ok(response::of_text(404, "404 page not found\n", wishes));
        };
        let verb = match request.method() {
            _ if target.is_session() => "create",
            &Method::GET | &Method::HEAD => "get",
            _ => return Ok(response::of_text(405, "405: Method Not Allowed", wishes)),
        };
        self.authorize(&user, verb, target.subresource()).await?;
        match target {
            Target::Health => Ok(response::of_text(200, "ok", wishes)),
            Target::Metrics => {
                let text = self.metrics.render();
                let answer = crate::answer::Answer::ok(metrics::CONTENT_TYPE, text);
                Ok(response::of_answer(answer, wishes, &self.stopping).await)
            }
            Target::Logs(container) => {
                let wanted = container.log_request(&self.node_name, query, Timestamp::now())?;
                let log = self.node.logs(wanted).await?;
                Ok(response::of_answer(streams::log_answer(log), wishes, &self.stopping).await)
            }
            Target::Exec(container) => {
                let wanted = container.exec_request(&self.node_name, query)?;
                let handshake = streams::handshake(request)?;
                // Unlike a client's, this side's refusal is an answer: the API server passes it on.
                let started = self.node.exec(wanted).await?;
                let session = streams::session(hyper::upgrade::on(request), handshake.protocol, Ok(started));
                Ok(self.upgraded(session, handshake.headers, wishes))
            }
            Target::Attach(container) => {
                let wanted = container.attach_request(&self.node_name, query)?;
                let handshake = streams::handshake(request)?;
                let attached = self.node.attach(wanted).await?;
                let session = streams::session(hyper::upgrade::on(request), handshake.protocol, Ok(attached));
                Ok(self.upgraded(session, handshake.headers, wishes))
            }
            Target::PortForward(pod) => {
                let wanted = pod.port_forward_request(&self.node_name, query);
                let headers = streams::tunnel_handshake(request)?;
                let way = self.node.port_forward(wanted.clone()).await?;
                let session = streams::port_forward_session(hyper::upgrade::on(request), wanted, way);
                Ok(self.upgraded(session, headers, wishes))
            }
        }
    }

    /// Goes on with a session once this answer is out.
    fn upgraded(
        &self,
        session: impl Future<Output = ()> + Send + 'static,
        headers: HeaderMap,
        wishes: &Wishes,
    ) -> Response<ResponseBody> {
        let stopping = self.stopping.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = session => {}
                () = stopping.cancelled() => {}
            }
        });
        response::finish(101, headers, ResponseBody::full(bytes::Bytes::new()), wishes)
    }

    /// # Errors
    ///
    /// 401
    async fn user(&self, peer: &Peer, headers: &HeaderMap) -> Result<NodeUser, Status> {
        if let Peer::Known { user, until } = peer
            && Timestamp::now().as_second() < *until
        {
            return Ok(NodeUser {
                name: user.name.clone(),
                groups: user.groups.clone(),
            });
        }
        let token = bearer(headers).ok_or_else(Status::unauthorized)?;
        self.gate.who(token).await?.ok_or_else(Status::unauthorized)
    }

    /// # Errors
    ///
    /// 403
    async fn authorize(
        &self,
        user: &NodeUser,
        verb: &'static str,
        subresource: &'static str,
    ) -> Result<(), Status> {
        let is_master = user.groups.iter().any(|group| group == MASTERS);
        if is_master || self.gate.may(user, verb, subresource).await? {
            return Ok(());
        }
        // As upstream words it (`pkg/kubelet/server/server.go`).
        Err(Status::new(
            403,
            "Forbidden",
            format!(
                "Forbidden (user={}, verb={verb}, resource=nodes, subresource={subresource})",
                user.name
            ),
        ))
    }
}
