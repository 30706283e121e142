//! The agent's port: logs, commands, metrics and health of its node, for those whom the API lets.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use futures_util::{FutureExt, future::BoxFuture};
use hotmap_agent::{Access, ApiClock, Metrics, ServingRotation};
use hotmap_client::{Client, ClientError, ResourcePath, WriteParams};
use hotmap_object::Status;
use hotmap_server::{NodeDoorConfig, NodeGate, NodeUser, ServingPair, open_node_door};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info};

use crate::node_access::LocalNode;

/// Upstream's port for it.
pub(super) const PORT: u16 = 10_250;

/// Takes the port before the node says that it has it.
pub(super) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address} for logs and commands; a kubelet has port {PORT} of its machine: name another \
             address with --listen"
        )
    })
}

/// What a door is made of.
pub(super) struct Door {
    pub(super) listener: TcpListener,
    pub(super) access: Access,
    pub(super) client: Client,
    pub(super) node_name: String,
    /// Under which names and addresses the API server reaches it.
    pub(super) names: Vec<String>,
    /// Who signs the certificates of clients.
    pub(super) authority_pem: String,
    pub(super) api_clock: ApiClock,
    pub(super) metrics: Metrics,
}

impl Door {
    /// Serves until the handle is dropped, from the moment that the API has signed a certificate for it.
    pub(super) fn open(self) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(tokio::spawn(self.serve()))
    }

    async fn serve(self) {
        let (install, mut installed) = watch::channel(None::<ServingPair>);
        let rotation = ServingRotation {
            node_name: self.node_name.clone(),
            names: self.names,
            api_clock: self.api_clock,
        };
        let text = |pem: Vec<u8>| String::from_utf8_lossy(&pem).into_owned();
        let renewing = rotation.run(self.client.clone(), move |identity| {
            install.send_replace(Some(ServingPair {
                certificate_pem: text(identity.certificate_pem),
                key_pem: text(identity.key_pem),
            }));
        });
        let _renewing = AbortOnDropHandle::new(tokio::spawn(async move {
            renewing.await;
        }));
        let Ok(first) = installed.wait_for(Option::is_some).await.map(|pair| pair.clone()) else {
            return;
        };
        let (pairs, certificate) = watch::channel(first.expect("it was waited for"));
        let _forwarding = AbortOnDropHandle::new(tokio::spawn(async move {
            while installed.changed().await.is_ok() {
                if let Some(pair) = installed.borrow_and_update().clone() {
                    pairs.send_replace(pair);
                }
            }
        }));
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let config = NodeDoorConfig {
            node: Arc::new(LocalNode::of(self.access)),
            gate: Arc::new(ApiGate {
                client: self.client,
                node_name: self.node_name.clone(),
            }),
            node_name: self.node_name,
            authority_pem: self.authority_pem,
            certificate,
            metrics: registry,
        };
        info!("logs, commands and metrics are served");
        if let Err(error) = open_node_door(config, self.listener, std::future::pending()).await {
            error!(
                error = &error as &dyn std::error::Error,
                "logs and commands cannot be served"
            );
        }
    }
}

/// Asks the API, which knows its users, what they may do with a node (`pkg/kubelet/server/auth.go`, Kubernetes 1.36).
struct ApiGate {
    client: Client,
    node_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Review {
    status: ReviewStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    allowed: bool,
    authenticated: bool,
    user: ReviewUser,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewUser {
    username: String,
    groups: Vec<String>,
}

impl ApiGate {
    async fn review(
        &self,
        group: &'static str,
        plural: &'static str,
        kind: &'static str,
        spec: serde_json::Value,
    ) -> Result<ReviewStatus, Status> {
        let review = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec});
        let path = ResourcePath::new(group, "v1", plural);
        let reviewed = self.client.create(&path, &review, &WriteParams::default()).await;
        let status = reviewed.and_then(|reviewed| reviewed.parse::<Review>());
        status
            .map(|review| review.status)
            .map_err(|error| unknown(&error))
    }
}

fn unknown(error: &ClientError) -> Status {
    let message = format!("the API cannot be asked who may do this: {error}");
    Status::new(503, "ServiceUnavailable", message)
}

impl NodeGate for ApiGate {
    fn who<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<NodeUser>, Status>> {
        async move {
            let spec = json!({"token": token});
            let status = self
                .review("authentication.k8s.io", "tokenreviews", "TokenReview", spec)
                .await?;
            Ok(status.authenticated.then_some(NodeUser {
                name: status.user.username,
                groups: status.user.groups,
            }))
        }
        .boxed()
    }

    fn may<'a>(
        &'a self,
        user: &'a NodeUser,
        verb: &'static str,
        subresource: &'static str,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        async move {
            let wanted = json!({"verb": verb, "version": "v1", "resource": "nodes", "subresource": subresource,
                "name": self.node_name});
            let spec = json!({"user": user.name, "groups": user.groups, "resourceAttributes": wanted});
            let (group, kind) = ("authorization.k8s.io", "SubjectAccessReview");
            Ok(self.review(group, "subjectaccessreviews", kind, spec).await?.allowed)
        }
        .boxed()
    }
}
