//! Removes pods that nobody will ever finish: of nodes that are gone, without a node and on their way out, and finished ones
//! beyond measure.
//!
//! Source: `pkg/controller/podgc/gc_controller.go`, Kubernetes 1.36; there it is a scan every 20 s, here it follows events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hotmap_client::{DeleteParams, PatchType};
use hotmap_object::timestamp;
use serde_json::json;
use tokio::task::JoinSet;
use tracing::info;

use crate::{
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    informer::Change,
    queue::Queue,
    view::{Key, Node, Pod, View},
};

/// Finished pods that may stay; `--terminated-pod-gc-threshold` has this default.
const FINISHED_PODS_MAX: usize = 12_500;
/// So long a node may be missing before its pods go: it may only be late.
const QUARANTINE: Duration = Duration::from_secs(40);

/// What a key of the queue stands for, by its namespace; no namespace has such a name.
const NODE: &str = "(node)";
const FINISHED: &str = "(finished)";

struct PodGarbage {
    context: Context,
    finished: Arc<AtomicUsize>,
}

/// Collects pods for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let finished = Arc::new(AtomicUsize::new(0));
    let (informers, pods, count) = (context.informers.clone(), queue.clone(), finished.clone());
    context.informers.pods.on_change(move |change| {
        if count_finished(&count, &change) > FINISHED_PODS_MAX {
            pods.add(Key::new(FINISHED, ""));
        }
        let Change::Applied { new: pod, .. } = change else {
            return;
        };
        let node = &pod.spec.node_name;
        if is_lost(pod) {
            pods.add(pod.metadata.key());
        } else if !node.is_empty() && informers.nodes.get(&Key::new("", node)).is_none() {
            pods.add_after(Key::new(NODE, node), QUARANTINE);
        }
    });
    let nodes = queue.clone();
    context.informers.nodes.on_change(move |change| {
        if let Change::Deleted { last } = change {
            nodes.add_after(Key::new(NODE, &last.metadata.name), QUARANTINE);
        }
    });
    let controller = PodGarbage {
        context: context.clone(),
        finished,
    };
    context.start(controller, queue, tasks);
}

/// Counts the finished pods; returns how many there are.
fn count_finished(count: &AtomicUsize, change: &Change<'_, Pod>) -> usize {
    let (before, after) = match change {
        Change::Applied { old, new } => (old.is_some_and(|old| old.is_finished()), new.is_finished()),
        Change::Deleted { last } => (last.is_finished(), false),
    };
    match (before, after) {
        (false, true) => count.fetch_add(1, Ordering::Relaxed) + 1,
        (true, false) => count.fetch_sub(1, Ordering::Relaxed) - 1,
        _ => count.load(Ordering::Relaxed),
    }
}

/// Whether it is on its way out and no node will see it there.
fn is_lost(pod: &Pod) -> bool {
    pod.metadata.is_deleting() && pod.spec.node_name.is_empty() && !pod.is_finished()
}

impl Controller for PodGarbage {
    const NAME: &'static str = "pod-garbage-collector";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        match key.namespace.as_str() {
            NODE => self.collect_of_node(&key.name).await?,
            FINISHED => self.collect_finished().await?,
            _ => {
                let pod = self.context.informers.pods.get(key);
                if let Some(pod) = pod.filter(|pod| is_lost(pod)) {
                    self.remove(&pod, false).await?;
                }
            }
        }
        Ok(Requeue::Done)
    }
}

impl PodGarbage {
    async fn collect_of_node(&self, node: &str) -> Result<(), ReconcileError> {
        let informers = &self.context.informers;
        let mut pods = informers.pods.all();
        pods.retain(|pod| pod.spec.node_name == node);
        if pods.is_empty() || informers.nodes.get(&Key::new("", node)).is_some() {
            return Ok(());
        }
        match self.context.client.get(&Node::collection().name(node)).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        for pod in &pods {
            info!(pod = %pod.metadata.key(), node, "removing a pod of a node that is gone");
            self.remove(pod, true).await?;
        }
        Ok(())
    }

    /// The oldest go, those that their node threw out first.
    async fn collect_finished(&self) -> Result<(), ReconcileError> {
        let surplus = self
            .finished
            .load(Ordering::Relaxed)
            .saturating_sub(FINISHED_PODS_MAX);
        let mut pods = self.context.informers.pods.all();
        pods.retain(|pod| pod.is_finished() && !pod.metadata.is_deleting());
        pods.sort_by(|a, b| {
            let order = |pod: &Pod| {
                let is_evicted = pod.status.phase == "Failed" && pod.status.reason == "Evicted";
                (!is_evicted, pod.metadata.creation_timestamp)
            };
            (order(a), &a.metadata.name).cmp(&(order(b), &b.metadata.name))
        });
        for pod in pods.iter().take(surplus) {
            self.remove(pod, false).await?;
        }
        Ok(())
    }

    /// Marks a pod as failed, since nobody else will, and removes it at once.
    async fn remove(&self, pod: &Arc<Pod>, is_orphan: bool) -> Result<(), ReconcileError> {
        if !pod.is_finished() {
            let mut status = json!({"phase": "Failed"});
            if is_orphan {
                status["conditions"] = json!([{
                    "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                    "message": "PodGC: node no longer exists",
                    "lastTransitionTime": timestamp::seconds(self.context.now()),
                }]);
            }
            let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
            let patched = self
                .context
                .patch(&**pod, "status", PatchType::StrategicMerge, &patch);
            if unless_gone(patched.await)?.is_none() {
                return Ok(());
            }
        }
        let params = DeleteParams {
            grace_period: Some(Duration::ZERO),
            ..DeleteParams::default()
        };
        self.context.delete(&**pod, params).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, phase: &str) -> Arc<Pod> {
        let pod = json!({"metadata": {"name": name}, "status": {"phase": phase}});
        Arc::new(serde_json::from_value(pod).expect("a pod"))
    }

    #[test]
    fn finished_pods_are_counted_as_they_come_and_go() {
        let count = AtomicUsize::new(0);
        let (running, done) = (pod("a", "Running"), pod("a", "Succeeded"));
        for (change, wanted) in [
            (
                Change::Applied {
                    old: None,
                    new: &running,
                },
                0,
            ),
            (
                Change::Applied {
                    old: Some(&running),
                    new: &done,
                },
                1,
            ),
            (
                Change::Applied {
                    old: Some(&done),
                    new: &done,
                },
                1,
            ),
            (
                Change::Applied {
                    old: None,
                    new: &done,
                },
                2,
            ),
            (Change::Deleted { last: &running }, 2),
            (Change::Deleted { last: &done }, 1),
        ] {
            assert_eq!(count_finished(&count, &change), wanted, "{change:?}");
        }
    }

    #[test]
    fn a_pod_without_a_node_that_is_on_its_way_out_is_lost() {
        for (deletion, node, phase, wanted) in [
            (json!("2026-01-01T00:00:00Z"), "", "Pending", true),
            (json!("2026-01-01T00:00:00Z"), "", "Failed", false),
            (json!("2026-01-01T00:00:00Z"), "n", "Pending", false),
            (json!(null), "", "Pending", false),
        ] {
            let pod = json!({"metadata": {"deletionTimestamp": deletion}, "spec": {"nodeName": node}, "status": {"phase": phase}});
            let pod: Pod = serde_json::from_value(pod).expect("a pod");
            assert_eq!(is_lost(&pod), wanted, "{deletion} {node} {phase}");
        }
    }
}
