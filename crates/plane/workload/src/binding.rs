//! Gives every pod that asks for no particular node one that takes it.
//!
//! ```text
//!   a pod without a node, a node that changed ─▶ place(pod, nodes) ─▶ bind · say why not · leave alone
//! ```
//!
//! What is looked at: cordon, readiness, taints, node selector and required node affinity; then the fewest pods. Not looked
//! at: resources, affinity between pods and topology spread.

mod occupancy;
mod placement;

pub(crate) use placement::{matches_taint, repelling_taints, selects, tolerates};

use std::sync::Arc;

use hotmap_client::{PatchType, WriteParams};
use hotmap_object::timestamp;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::info;

use self::{
    occupancy::Occupancy,
    placement::{Placement, place},
};
use crate::{
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    queue::Queue,
    view::{Key, Node, Pod, View},
};

/// The scheduler whose pods these are, and the name under which events are written.
const SCHEDULER: &str = "default-scheduler";

struct Binding {
    context: Context,
    occupancy: Arc<Mutex<Occupancy>>,
}

/// Binds pods for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let occupancy = Arc::new(Mutex::new(Occupancy::default()));
    let (pods, counted) = (queue.clone(), occupancy.clone());
    context.informers.pods.on_change(move |change| {
        let pod = change.object();
        count(&mut counted.lock(), &change);
        if matches!(change, Change::Applied { .. }) && pod.wants_a_node(SCHEDULER) {
            pods.add(pod.metadata.key());
        }
    });
    let (informers, pods) = (context.informers.clone(), queue.clone());
    context.informers.nodes.on_change(move |change| {
        if let Change::Applied { old: Some(old), new } = change
            && new.takes_the_same_pods(old)
        {
            return;
        }
        let all = informers.pods.all();
        let waiting = all.iter().filter(|pod| pod.wants_a_node(SCHEDULER));
        waiting.for_each(|pod| pods.add(pod.metadata.key()));
    });
    let binding = Binding {
        context: context.clone(),
        occupancy,
    };
    context.start(binding, queue, tasks);
}

fn count(occupancy: &mut Occupancy, change: &Change<'_, Pod>) {
    let pod = change.object();
    match change {
        Change::Applied { .. } if pod.is_finished() => occupancy.leave(&pod.metadata.uid),
        Change::Applied { .. } if pod.spec.node_name.is_empty() => {}
        Change::Applied { .. } => occupancy.take(&pod.metadata.uid, &pod.spec.node_name),
        Change::Deleted { .. } => occupancy.leave(&pod.metadata.uid),
    }
}

impl Controller for Binding {
    const NAME: &'static str = "binding";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let informers = &self.context.informers;
        let pod = informers.pods.get(key);
        if let Some(pod) = pod.filter(|pod| pod.wants_a_node(SCHEDULER)) {
            match self.choose(&pod, &informers.nodes.all()) {
                Placement::Gated => {}
                Placement::On { node } => self.bind(&pod, &node).await?,
                Placement::Nowhere { message } if is_told_unschedulable(&pod, &message) => {}
                Placement::Nowhere { message } => self.refuse(&pod, &message).await?,
            }
        }
        Ok(Requeue::Done)
    }
}

impl Binding {
    /// The choice counts at once, so that pods that are placed at the same time do not all choose the same node.
    fn choose(&self, pod: &Pod, nodes: &[Arc<Node>]) -> Placement {
        let mut occupancy = self.occupancy.lock();
        let placement = place(pod, nodes, |node| occupancy.pods_on(node));
        if let Placement::On { node } = &placement {
            occupancy.take(&pod.metadata.uid, node);
        }
        placement
    }

    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), ReconcileError> {
        let path = pod.path().subresource("binding");
        let written = self
            .context
            .client
            .create(&path, &binding(pod, node), &WriteParams::default())
            .await;
        match written {
            Ok(_) => {
                let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
                info!(namespace, pod = name, node, "pod bound");
                let message = format!("Successfully assigned {namespace}/{name} to {node}");
                self.tell(pod, EventType::Normal, "Scheduled", message);
                Ok(())
            }
            Err(error) => {
                self.occupancy.lock().leave(&pod.metadata.uid);
                // Gone, or bound by somebody else: either way the next event says so.
                if error.is_not_found() || error.is_conflict() {
                    return Ok(());
                }
                Err(error.into())
            }
        }
    }

    async fn refuse(&self, pod: &Pod, message: &str) -> Result<(), ReconcileError> {
        let patch = unschedulable(pod, message, self.context.now());
        let written = self
            .context
            .patch(pod, "status", PatchType::StrategicMerge, &patch)
            .await;
        if unless_gone(written)?.is_some() {
            self.tell(pod, EventType::Warning, "FailedScheduling", message.to_owned());
        }
        Ok(())
    }

    fn tell(&self, pod: &Pod, kind: EventType, reason: &'static str, message: String) {
        let now = self.context.now();
        self.context
            .events
            .publish(pod, SCHEDULER, kind, reason, message, now);
    }
}

fn binding(pod: &Pod, node: &str) -> Value {
    let metadata = &pod.metadata;
    json!({
        "kind": "Binding",
        "apiVersion": "v1",
        // With the uid, a pod of the same name created meanwhile is not bound by mistake.
        "metadata": {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid},
        "target": {"kind": "Node", "apiVersion": "v1", "name": node},
    })
}

/// Whether its status says already that it fits nowhere, for this reason.
fn is_told_unschedulable(pod: &Pod, message: &str) -> bool {
    pod.condition("PodScheduled").is_some_and(|condition| {
        condition.status == "False" && condition.reason == "Unschedulable" && condition.message == message
    })
}

/// The patch of a pod's status that says why it has no node.
fn unschedulable(pod: &Pod, message: &str, now: Timestamp) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(value: Value) -> Pod {
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
}
