//! Deletes pods from nodes whose `NoExecute` taints they do not tolerate, or no longer.
//!
//! ```text
//!   a node's taints, a pod's tolerations ──▶ stay: for ever · until · no longer ──▶ DisruptionTarget, delete
//! ```
//!
//! Source: `pkg/controller/tainteviction/taint_eviction.go`, Kubernetes 1.36. A toleration's time begins when the taint is
//! first seen, so a restart of this process gives pods a little more.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use hotmap_client::{DeleteParams, PatchType};
use hotmap_object::timestamp;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tracing::info;

use crate::{
    binding::matches_taint,
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    queue::Queue,
    view::{Key, Node, Pod, Taint},
};

/// Who says so in events; upstream's name.
const COMPONENT: &str = "taint-eviction-controller";

struct TaintEviction {
    context: Context,
    /// Since when a pod is on borrowed time, by its key and uid.
    since: Mutex<HashMap<Key, (String, Instant)>>,
}

/// Evicts for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let (nodes, pods) = (context.informers.clone(), queue.clone());
    context.informers.pods.on_change(move |change| {
        let pod = change.object();
        let node = nodes.nodes.get(&Key::new("", &pod.spec.node_name));
        // A pod that is gone is looked at once more, so that it is forgotten.
        if matches!(change, Change::Deleted { .. }) || node.is_some_and(|node| evicts(&node)) {
            pods.add(pod.metadata.key());
        }
    });
    let (informers, nodes) = (context.informers.clone(), queue.clone());
    context.informers.nodes.on_change(move |change| {
        let (is_changed, node) = match change {
            Change::Applied { old: Some(old), new } => (no_execute(old).ne(no_execute(new)), new),
            Change::Applied { old: None, new } => (evicts(new), new),
            Change::Deleted { last } => (evicts(last), last),
        };
        if is_changed {
            let all = informers.pods.all();
            let on_node = all.iter().filter(|pod| pod.spec.node_name == node.metadata.name);
            on_node.for_each(|pod| nodes.add(pod.metadata.key()));
        }
    });
    let controller = TaintEviction {
        context: context.clone(),
        since: Mutex::default(),
    };
    context.start(controller, queue, tasks);
}

fn evicts(node: &Node) -> bool {
    no_execute(node).next().is_some()
}

fn no_execute(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.taints.iter();
    taints.filter(|taint| taint.effect == "NoExecute")
}

/// How long a pod may stay.
#[derive(Debug, PartialEq, Eq)]
enum Stay {
    ForEver,
    For(Duration),
}

fn stay(pod: &Pod, node: &Node) -> Stay {
    let mut shortest: Option<i64> = None;
    for taint in no_execute(node) {
        let mut tolerations = pod.spec.tolerations.iter();
        // The first one that covers the taint counts, as upstream has it.
        match tolerations.find(|toleration| matches_taint(toleration, taint)) {
            None => return Stay::For(Duration::ZERO),
            Some(toleration) => {
                let seconds = toleration.toleration_seconds.map(|seconds| seconds.max(0));
                shortest = [shortest, seconds].into_iter().flatten().min();
            }
        }
    }
    match shortest {
        None => Stay::ForEver,
        Some(seconds) => Stay::For(Duration::from_secs(seconds.unsigned_abs())),
    }
}

impl Controller for TaintEviction {
    const NAME: &'static str = "taint-eviction";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let informers = &self.context.informers;
        let Some(pod) = informers.pods.get(key) else {
            self.since.lock().remove(key);
            return Ok(Requeue::Done);
        };
        let node = informers.nodes.get(&Key::new("", &pod.spec.node_name));
        let stay = match node {
            Some(node) if !pod.metadata.is_deleting() => stay(&pod, &node),
            _ => Stay::ForEver,
        };
        let now = self.context.now();
        let Stay::For(time) = stay else {
            self.pardon(&pod, now);
            return Ok(Requeue::Done);
        };
        let left = time.saturating_sub(self.waited(&pod));
        if !left.is_zero() {
            return Ok(Requeue::After(left));
        }
        self.evict(&pod, now).await?;
        self.since.lock().remove(key);
        Ok(Requeue::Done)
    }
}

impl TaintEviction {
    /// By a clock that nobody sets.
    fn waited(&self, pod: &Pod) -> Duration {
        let now = Instant::now();
        let mut since = self.since.lock();
        let (uid, begun) = since
            .entry(pod.metadata.key())
            .or_insert_with(|| (pod.metadata.uid.clone(), now));
        if *uid != pod.metadata.uid {
            (*uid, *begun) = (pod.metadata.uid.clone(), now);
        }
        now.saturating_duration_since(*begun)
    }

    fn pardon(&self, pod: &Arc<Pod>, now: Timestamp) {
        let key = pod.metadata.key();
        if self.since.lock().remove(&key).is_some() && !pod.metadata.is_deleting() {
            self.tell(pod, format!("Cancelling deletion of Pod {key}"), now);
        }
    }

    async fn evict(&self, pod: &Arc<Pod>, now: Timestamp) -> Result<(), ReconcileError> {
        let key = pod.metadata.key();
        info!(pod = %key, node = pod.spec.node_name, "deleting a pod that does not tolerate its node's taints");
        self.tell(pod, format!("Marking for deletion Pod {key}"), now);
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": timestamp::seconds(now),
        });
        let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}});
        let patched = self
            .context
            .patch(&**pod, "status", PatchType::StrategicMerge, &patch);
        if unless_gone(patched.await)?.is_some() {
            self.context.delete(&**pod, DeleteParams::default()).await?;
        }
        Ok(())
    }

    fn tell(&self, pod: &Arc<Pod>, message: String, now: Timestamp) {
        let (events, kind) = (&self.context.events, EventType::Normal);
        events.publish(&**pod, COMPONENT, kind, "TaintManagerEviction", message, now);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn pod(tolerations: Value) -> Pod {
        serde_json::from_value(json!({"spec": {"tolerations": tolerations}})).expect("a pod")
    }

    fn node(taints: &[&str]) -> Node {
        let taints: Vec<_> = taints
            .iter()
            .map(|taint| {
                let (key, effect) = taint.split_once(':').expect("key:effect");
                json!({"key": key, "effect": effect})
            })
            .collect();
        serde_json::from_value(json!({"spec": {"taints": taints}})).expect("a node")
    }

    #[test]
    fn a_pod_stays_as_long_as_its_tolerations_say() {
        let gone = json!({"key": "a", "operator": "Exists", "effect": "NoExecute"});
        let for_time = |key: &str, seconds: i64| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        let seconds = |seconds| Stay::For(Duration::from_secs(seconds));
        for (tolerations, taints, wanted) in [
            (json!([]), vec![], Stay::ForEver),
            (json!([]), vec!["a:NoSchedule"], Stay::ForEver),
            (json!([]), vec!["a:NoExecute"], seconds(0)),
            (json!([gone]), vec!["a:NoExecute"], Stay::ForEver),
            (json!([gone]), vec!["a:NoExecute", "b:NoExecute"], seconds(0)),
            (json!([for_time("a", 300)]), vec!["a:NoExecute"], seconds(300)),
            (json!([for_time("a", -1)]), vec!["a:NoExecute"], seconds(0)),
            (
                json!([for_time("a", 300), for_time("b", 20)]),
                vec!["a:NoExecute", "b:NoExecute"],
                seconds(20),
            ),
            (
                json!([gone, for_time("b", 20)]),
                vec!["a:NoExecute"],
                Stay::ForEver,
            ),
            (
                json!([{"operator": "Exists"}]),
                vec!["a:NoExecute"],
                Stay::ForEver,
            ),
        ] {
            assert_eq!(
                stay(&pod(tolerations.clone()), &node(&taints)),
                wanted,
                "{tolerations} {taints:?}"
            );
        }
    }
}
