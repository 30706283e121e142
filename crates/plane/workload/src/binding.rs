//! Gives every pod that asks for no particular node one that takes it.
//!
//! ```text
//!   pods with spec.nodeName="" ─┐
//!                               ├─▶ place(pod, nodes) ─▶ bind · say why not · leave alone
//!   nodes ──────────────────────┘
//! ```
//!
//! What is looked at: cordon, readiness, taints, node selector and required node affinity. Not looked at: resources,
//! affinity between pods and topology spread.

mod placement;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use hotmap_client::{
    Client, ClientError, ClientListWatch, FollowEvent, Follower, FollowerConfig, PatchType, RawObject,
    ResourcePath, WriteParams,
};
use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use self::{
    placement::{Placement, place},
    view::{NodeView, PodView},
};
use crate::controllers::retries;

/// The scheduler whose pods these are, and the name under which events are written.
const SCHEDULER: &str = "default-scheduler";

/// Binds pods for ever.
pub(crate) async fn run(client: Client) {
    let pods = ClientListWatch::new(client.clone(), pods()).with_field_selector("spec.nodeName=");
    let nodes = ClientListWatch::new(client.clone(), ResourcePath::new("", "v1", "nodes"));
    let mut pods = Follower::new(pods, FollowerConfig::STOCK);
    let mut nodes = Follower::new(nodes, FollowerConfig::STOCK);
    let mut cluster = Cluster::default();
    let mut backoff = retries();
    let mut retry_at = None;
    loop {
        tokio::select! {
            event = pods.next() => cluster.hear_pod(event),
            event = nodes.next() => cluster.hear_node(event),
            () = sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => {}
        }
        retry_at = match cluster.settle(&client).await {
            Settled::All => {
                backoff.reset();
                None
            }
            Settled::Retry => Some(Instant::now() + backoff.next_delay()),
        };
    }
}

fn pods() -> ResourcePath {
    ResourcePath::new("", "v1", "pods")
}

type Key = (String, String);

/// What is known of the cluster, and which pods deserve a look.
#[derive(Default)]
struct Cluster {
    /// Every node; `None` until they were listed: before that no pod can be refused.
    nodes: Option<BTreeMap<String, NodeView>>,
    /// Pods that have no node.
    unbound: BTreeMap<Key, PodView>,
    /// Those of them whose verdict may have changed.
    dirty: BTreeSet<Key>,
    /// Pods bound since start, so that nodes take turns.
    bound: u64,
}

enum Settled {
    All,
    Retry,
}

impl Cluster {
    fn hear_pod(&mut self, event: FollowEvent) {
        match event {
            FollowEvent::Initial(pods) => pods.into_iter().for_each(|pod| self.pod_applied(&pod)),
            FollowEvent::Applied(pod) => self.pod_applied(&pod),
            FollowEvent::Deleted(pod) => self.forget(&key(&pod)),
            FollowEvent::Interrupted(error) => warn!(%error, "cannot follow pods without a node"),
            FollowEvent::Resumed => info!("following pods without a node again"),
        }
    }

    fn pod_applied(&mut self, raw: &RawObject) {
        match raw.parse::<PodView>() {
            Ok(pod) if pod.wants_a_node(SCHEDULER) => {
                self.dirty.insert(key(raw));
                self.unbound.insert(key(raw), pod);
            }
            Ok(_) => self.forget(&key(raw)),
            Err(error) => {
                warn!(namespace = raw.namespace(), name = raw.name(), %error, "cannot read a pod");
                self.forget(&key(raw));
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        self.unbound.remove(key);
        self.dirty.remove(key);
    }

    fn hear_node(&mut self, event: FollowEvent) {
        match event {
            FollowEvent::Initial(nodes) => {
                self.nodes = Some(BTreeMap::new());
                nodes.iter().for_each(|node| self.node_applied(node));
                self.look_at_all();
            }
            FollowEvent::Applied(node) => self.node_applied(&node),
            FollowEvent::Deleted(node) => {
                if self.nodes.get_or_insert_default().remove(node.name()).is_some() {
                    self.look_at_all();
                }
            }
            FollowEvent::Interrupted(error) => warn!(%error, "cannot follow nodes"),
            FollowEvent::Resumed => info!("following nodes again"),
        }
    }

    fn node_applied(&mut self, raw: &RawObject) {
        match raw.parse::<NodeView>() {
            Ok(node) => {
                // A heartbeat changes nothing that placement looks at.
                let before = self
                    .nodes
                    .get_or_insert_default()
                    .insert(raw.name().to_owned(), node.clone());
                if before.as_ref() != Some(&node) {
                    self.look_at_all();
                }
            }
            Err(error) => warn!(node = raw.name(), %error, "cannot read a node"),
        }
    }

    fn look_at_all(&mut self) {
        self.dirty.extend(self.unbound.keys().cloned());
    }

    /// Acts on every pod that deserves a look. One that fails deserves another.
    async fn settle(&mut self, client: &Client) -> Settled {
        let Some(nodes) = &self.nodes else {
            return Settled::All;
        };
        let mut failed = BTreeSet::new();
        for key in std::mem::take(&mut self.dirty) {
            let Some(pod) = self.unbound.get(&key) else {
                continue;
            };
            match act(client, pod, place(pod, nodes, self.bound)).await {
                Ok(Done::Bound) => {
                    self.bound += 1;
                    self.unbound.remove(&key);
                }
                Ok(Done::Waits) => {}
                Err(error) => {
                    warn!(namespace = key.0, pod = key.1, %error, "cannot place a pod, retrying");
                    failed.insert(key);
                }
            }
        }
        self.dirty = failed;
        if self.dirty.is_empty() {
            Settled::All
        } else {
            Settled::Retry
        }
    }
}

fn key(object: &RawObject) -> Key {
    (object.namespace().to_owned(), object.name().to_owned())
}

enum Done {
    Bound,
    Waits,
}

async fn act(client: &Client, pod: &PodView, placement: Placement) -> Result<Done, ClientError> {
    match placement {
        Placement::Gated => Ok(Done::Waits),
        Placement::On { node } => bind(client, pod, &node).await,
        Placement::Nowhere { message } if pod.is_told_unschedulable(&message) => Ok(Done::Waits),
        Placement::Nowhere { message } => refuse(client, pod, &message).await,
    }
}

async fn bind(client: &Client, pod: &PodView, node: &str) -> Result<Done, ClientError> {
    let path = pod_path(pod).subresource("binding");
    match client
        .create(&path, &binding(pod, node), &WriteParams::default())
        .await
    {
        Ok(_) => {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            info!(namespace, pod = name, node, "pod bound");
            let message = format!("Successfully assigned {namespace}/{name} to {node}");
            tell(client, pod, "Normal", "Scheduled", &message).await;
            Ok(Done::Bound)
        }
        // Gone, or bound by somebody else: either way the next event says so.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(Done::Waits),
        Err(error) => Err(error),
    }
}

async fn refuse(client: &Client, pod: &PodView, message: &str) -> Result<Done, ClientError> {
    let path = pod_path(pod).subresource("status");
    let patch = unschedulable(pod, message, Timestamp::now());
    match client
        .patch(&path, PatchType::StrategicMerge, &patch, &WriteParams::default())
        .await
    {
        Ok(_) => {
            tell(client, pod, "Warning", "FailedScheduling", message).await;
            Ok(Done::Waits)
        }
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(Done::Waits),
        Err(error) => Err(error),
    }
}

/// Writes an event. Best effort: an event is news, the state is in the pod.
async fn tell(client: &Client, pod: &PodView, kind: &str, reason: &str, message: &str) {
    let events = ResourcePath::new("", "v1", "events").in_namespace(&pod.metadata.namespace);
    let event = event(pod, kind, reason, message, Timestamp::now());
    if let Err(error) = client.create(&events, &event, &WriteParams::default()).await {
        debug!(namespace = pod.metadata.namespace, pod = pod.metadata.name, %error, "cannot write an event");
    }
}

fn pod_path(pod: &PodView) -> ResourcePath {
    pods()
        .in_namespace(&pod.metadata.namespace)
        .name(&pod.metadata.name)
}

fn binding(pod: &PodView, node: &str) -> Value {
    json!({
        "kind": "Binding",
        "apiVersion": "v1",
        // With the uid, a pod of the same name created meanwhile is not bound by mistake.
        "metadata": {"namespace": pod.metadata.namespace, "name": pod.metadata.name, "uid": pod.metadata.uid},
        "target": {"kind": "Node", "apiVersion": "v1", "name": node},
    })
}

/// The patch of a pod's status that says why it has no node.
fn unschedulable(pod: &PodView, message: &str, now: Timestamp) -> Value {
    let mut condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    });
    if pod
        .condition("PodScheduled")
        .is_none_or(|before| before.status != "False")
    {
        condition["lastTransitionTime"] = timestamp::seconds(now).into();
    }
    json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}})
}

fn event(pod: &PodView, kind: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let at = timestamp::seconds(now);
    json!({
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "namespace": pod.metadata.namespace,
            // Upstream's form: unique as long as no two events of a pod share a nanosecond.
            "name": format!("{}.{:x}", pod.metadata.name, now.as_nanosecond()),
        },
        "involvedObject": {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
            "resourceVersion": pod.metadata.resource_version,
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": SCHEDULER},
        "reportingComponent": SCHEDULER,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(value: Value) -> PodView {
        serde_json::from_value(value).expect("a pod")
    }

    #[test]
    fn a_binding_names_the_very_pod_and_its_node() {
        let pod = pod(json!({"metadata": {"namespace": "shop", "name": "web", "uid": "u1"}, "spec": {}}));
        let binding = binding(&pod, "edge");
        assert_eq!(
            binding["metadata"],
            json!({"namespace": "shop", "name": "web", "uid": "u1"})
        );
        assert_eq!(binding["target"]["name"], "edge");
    }

    #[test]
    fn the_condition_keeps_its_transition_time_while_it_stays_false() {
        let now: Timestamp = "2026-01-02T15:04:05Z".parse().expect("valid");
        let fresh = pod(json!({"metadata": {"uid": "u"}}));
        let condition = &unschedulable(&fresh, "no", now)["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], "2026-01-02T15:04:05Z");
        let told = pod(
            json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "x"}]}}),
        );
        assert_eq!(
            unschedulable(&told, "no", now)["status"]["conditions"][0].get("lastTransitionTime"),
            None
        );
    }

    #[test]
    fn events_are_about_the_pod_and_sent_by_the_scheduler() {
        let now: Timestamp = "2026-01-02T15:04:05.000000001Z".parse().expect("valid");
        let pod = pod(
            json!({"metadata": {"namespace": "shop", "name": "web", "uid": "u1", "resourceVersion": "7"}}),
        );
        let event = event(&pod, "Normal", "Scheduled", "text", now);
        assert_eq!(
            event["metadata"]["namespace"],
            event["involvedObject"]["namespace"]
        );
        assert_eq!(event["metadata"]["name"], "web.1886f23c653db201");
        assert_eq!(event["source"]["component"], "default-scheduler");
        assert_eq!(event["lastTimestamp"], "2026-01-02T15:04:05Z");
    }

    #[test]
    fn only_pods_without_a_node_are_kept_and_heartbeats_disturb_nobody() {
        let raw = |value: Value| RawObject::from_json(value.to_string().into()).expect("an object");
        let mut cluster = Cluster::default();
        let pod = |spec: Value| raw(json!({"metadata": {"namespace": "a", "name": "p"}, "spec": spec}));
        cluster.hear_pod(FollowEvent::Initial(vec![pod(
            json!({"schedulerName": SCHEDULER}),
        )]));
        assert_eq!((cluster.unbound.len(), cluster.dirty.len()), (1, 1));
        let node = |heartbeat: &str, status: &str| {
            let condition = json!({"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat});
            raw(json!({"metadata": {"name": "n"}, "status": {"conditions": [condition]}}))
        };
        cluster.hear_node(FollowEvent::Initial(vec![node("1", "False")]));
        cluster.dirty.clear();
        cluster.hear_node(FollowEvent::Applied(node("2", "False")));
        assert!(cluster.dirty.is_empty());
        cluster.hear_node(FollowEvent::Applied(node("3", "True")));
        assert_eq!(cluster.dirty.len(), 1);
        cluster.hear_pod(FollowEvent::Applied(pod(
            json!({"schedulerName": SCHEDULER, "nodeName": "n"}),
        )));
        assert_eq!((cluster.unbound.len(), cluster.dirty.len()), (0, 0));
    }
}
