//! Notices that a node is silent, and has its Node object and its pods say so.
//!
//! ```text
//!   leases, nodes ──▶ health: alive until when? ──▶ silent: conditions Unknown, pods not ready
//!                                                └▶ always: taints that follow conditions and cordon
//! ```
//!
//! Nothing is polled: a renewal moves the one timer of its node, which fires only when no renewal comes.
//! Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, Kubernetes 1.36; zones are not looked at.

mod health;
mod repair;

use std::{collections::HashMap, time::Instant};

use hotmap_client::PatchType;
use hotmap_object::timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::warn;

use self::health::{Health, Signs};
use crate::{
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    queue::Queue,
    view::{Key, Node, View},
};

/// Where nodes keep their leases.
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// Who says so in events; upstream's name.
const COMPONENT: &str = "node-controller";

struct NodeLifecycle {
    context: Context,
    health: Mutex<HashMap<String, Health>>,
}

/// Watches over nodes for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let nodes = queue.clone();
    context.informers.nodes.on_change(move |change| {
        nodes.add(Key::new("", &change.object().metadata.name));
    });
    let leases = queue.clone();
    context.informers.leases.on_change(move |change| {
        let lease = &change.object().metadata;
        if lease.namespace == LEASE_NAMESPACE {
            leases.add(Key::new("", &lease.name));
        }
    });
    // Pods of a silent node are told about.
    context.informers.pods.want();
    let controller = NodeLifecycle {
        context: context.clone(),
        health: Mutex::default(),
    };
    context.start(controller, queue, tasks);
}

impl Controller for NodeLifecycle {
    const NAME: &'static str = "node-lifecycle";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let informers = &self.context.informers;
        let Some(node) = informers.nodes.get(key) else {
            self.health.lock().remove(&key.name);
            return Ok(Requeue::Done);
        };
        let lease = informers.leases.get(&Key::new(LEASE_NAMESPACE, &key.name));
        let signs = Signs {
            uid: &node.metadata.uid,
            renewed: lease.as_ref().map_or("", |lease| &lease.spec.renew_time),
            is_ready: node.ready().map(|status| status == "True"),
        };
        let patience = {
            let now = Instant::now();
            let mut health = self.health.lock();
            let health = health
                .entry(key.name.clone())
                .or_insert_with(|| Health::first(signs, now));
            health.observe(signs, now);
            health.patience(signs, now)
        };
        let is_silent = patience.is_zero();
        let mut said = self.repair(&node, is_silent).await?;
        // What was written may ask for taints.
        if is_silent && let Some(node) = said.take() {
            self.repair(&node, is_silent).await?;
        }
        if is_silent || signs.is_ready == Some(false) {
            self.tell_pods(&key.name).await?;
        }
        Ok(match is_silent {
            // The next sign of life is an event.
            true => Requeue::Done,
            false => Requeue::After(patience),
        })
    }
}

impl NodeLifecycle {
    /// Has the Node object say how the node is. Returns it as it was changed.
    async fn repair(&self, node: &Node, is_silent: bool) -> Result<Option<Node>, ReconcileError> {
        let now = self.context.now();
        let known = repair::sketch(node);
        let is_right = repair::taints(&known, now).is_none();
        if is_right && (!is_silent || repair::unknown_conditions(&known, now).is_empty()) {
            return Ok(None);
        }
        // The object whole: taints are written as one list, in which others have theirs.
        let live: Value = match self.context.client.get(&node.path()).await {
            Ok(live) if live.uid() == node.metadata.uid => live.parse()?,
            Ok(_) => return Ok(None),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let conditions = match is_silent {
            true => repair::unknown_conditions(&live, now),
            false => Vec::new(),
        };
        let changed = if !conditions.is_empty() {
            warn!(
                node = node.metadata.name,
                "the node is silent, its state is unknown"
            );
            let events = &self.context.events;
            let message = format!("Node {} status is now: NodeNotReady", node.metadata.name);
            events.publish(node, COMPONENT, EventType::Normal, "NodeNotReady", message, now);
            let patch = json!({"metadata": {"uid": node.metadata.uid}, "status": {"conditions": conditions}});
            let patched = self
                .context
                .patch(node, "status", PatchType::StrategicMerge, &patch);
            unless_gone(patched.await)?
        } else if let Some(taints) = repair::taints(&live, now) {
            let metadata = &live["metadata"];
            let patch = json!({
                "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
                "spec": {"taints": taints},
            });
            let patched = self.context.patch(node, "", PatchType::Merge, &patch);
            unless_gone(patched.await)?
        } else {
            None
        };
        Ok(changed.map(|node| (*node).clone()))
    }

    /// Nobody runs the readiness probes of these pods any more.
    async fn tell_pods(&self, node: &str) -> Result<(), ReconcileError> {
        let mut pods = self.context.informers.pods.all();
        pods.retain(|pod| pod.spec.node_name == node && pod.is_ready());
        let now = self.context.now();
        for pod in &pods {
            let condition =
                json!({"type": "Ready", "status": "False", "lastTransitionTime": timestamp::seconds(now)});
            let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}});
            let patched = self
                .context
                .patch(&**pod, "status", PatchType::StrategicMerge, &patch)
                .await;
            if unless_gone(patched)?.is_some() {
                let (kind, message) = (EventType::Warning, "Node is not ready");
                let events = &self.context.events;
                events.publish(&**pod, COMPONENT, kind, "NodeNotReady", message, now);
            }
        }
        Ok(())
    }
}
