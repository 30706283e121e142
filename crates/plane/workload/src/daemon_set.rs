//! Keeps a pod of a DaemonSet on every node that takes it.
//!
//! ```text
//!   set, revisions, nodes, pods ─▶ decide ─▶ create · delete ─▶ status ─▶ revisions nobody needs go
//! ```

mod daemon_pod;
mod decision;
mod eligibility;
mod failures;
#[cfg(test)]
mod model;
mod nodes;
mod status;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use hotmap_client::{DeleteParams, PatchType};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tracing::warn;

use self::{
    daemon_pod::{GENERATION_ANNOTATION, HASH_LABEL, template_for},
    decision::{Decision, decide},
    eligibility::Eligibility,
    failures::{Failures, Place},
    nodes::{Generation, node_states, update},
};
use crate::{
    batches::in_batches,
    claims::{Controlled, claim, controlled_by, settle},
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    pod_template::pod_from,
    queue::Queue,
    replica_set::is_namespace_terminating,
    revision::{self, beyond_limit, duplicates},
    view::{ControllerRevision, DaemonSet, Key, Pod, View},
};

/// Who its events are from.
const COMPONENT: &str = "daemonset-controller";

struct DaemonSets {
    context: Context,
    failures: Mutex<Failures>,
}

/// Keeps DaemonSets for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let informers = &context.informers;
    let sets = queue.clone();
    informers
        .daemon_sets
        .on_change(move |change| sets.add(change.object().metadata.key()));
    let (sets, of_sets) = (queue.clone(), context.informers.clone());
    informers.pods.on_change(move |change| {
        let (old, new) = match change {
            Change::Applied { old, new } => (old, new),
            Change::Deleted { last } => (None, last),
        };
        for pod in old.into_iter().chain([new]) {
            match controlled_by::<DaemonSet>(&**pod) {
                Controlled::By(key) => sets.add(key),
                Controlled::ByAnother => {}
                Controlled::ByNobody => {
                    let candidates = of_sets.daemon_sets.in_namespace(&pod.metadata.namespace);
                    let wants = |set: &&Arc<DaemonSet>| set.spec.selector.matches(&pod.metadata.labels);
                    candidates
                        .iter()
                        .filter(wants)
                        .for_each(|set| sets.add(set.metadata.key()));
                }
            }
        }
    });
    let sets = queue.clone();
    informers.controller_revisions.on_change(move |change| {
        if let Controlled::By(key) = controlled_by::<DaemonSet>(&**change.object()) {
            sets.add(key);
        }
    });
    let (sets, of_sets) = (queue.clone(), context.informers.clone());
    informers.nodes.on_change(move |change| {
        if let Change::Applied { old: Some(old), new } = change
            && new.takes_the_same_pods(old)
        {
            return;
        }
        of_sets
            .daemon_sets
            .all()
            .iter()
            .for_each(|set| sets.add(set.metadata.key()));
    });
    let controller = DaemonSets {
        context: context.clone(),
        failures: Mutex::default(),
    };
    context.start(controller, queue, tasks);
}

impl Controller for DaemonSets {
    const NAME: &'static str = "daemonset";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let Some(set) = self.context.informers.daemon_sets.get(key) else {
            return Ok(Requeue::Done);
        };
        if set.spec.selector.is_everything() {
            let message = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.tell(&set, EventType::Warning, "SelectingAll", message.to_owned());
            return Ok(Requeue::Done);
        }
        // What becomes of its pods and history is the garbage collector's business.
        if set.metadata.is_deleting() {
            return Ok(Requeue::Done);
        }
        self.sync(&set).await
    }
}

/// A decision with what it was made of, carried out.
struct Look<'a> {
    set: &'a DaemonSet,
    hash: &'a str,
    now: Timestamp,
}

impl DaemonSets {
    async fn sync(&self, set: &DaemonSet) -> Result<Requeue, ReconcileError> {
        let eligibility = match Eligibility::of(set.spec.template.value()) {
            Ok(eligibility) => eligibility,
            Err(error) => {
                let Key { namespace, name } = set.metadata.key();
                warn!(namespace, name, %error, "cannot read the template of a daemon set");
                return Ok(Requeue::Done);
            }
        };
        let mut collisions = set.status.collision_count.unwrap_or(0);
        let mut history = revision::history(&self.context, set, &set.spec.selector).await?;
        let (context, template) = (&self.context, &set.spec.template);
        let current =
            revision::establish(context, set, template, HASH_LABEL, &mut history, &mut collisions).await?;
        let hash = hash_of(&current).to_owned();
        let pods = self.pods(set).await?;
        if self.merge_duplicates(&history, &current, &pods).await? {
            return Ok(Requeue::After(Duration::ZERO));
        }
        let look = Look {
            set,
            hash: &hash,
            now: self.context.now(),
        };
        let nodes = self.context.informers.nodes.all();
        let generation = Generation {
            hash: &hash,
            number: template_generation(set),
        };
        let states = node_states(set, &eligibility, &nodes, &pods, generation, look.now);
        let decision = decide(update(set), &states, |node| {
            self.failures.lock().held(&place(set, node), look.now)
        });
        let acted = self.act(&look, &decision, &pods).await;
        if let Some(patch) = status::patch(set, &decision.counts, collisions) {
            self.context
                .patch(set, "status", PatchType::Merge, &patch)
                .await?;
        }
        acted?;
        self.forget_history(set, &history, &current, &pods).await?;
        Ok(self.next_look(&look, &decision, &pods))
    }

    async fn pods(&self, set: &DaemonSet) -> Result<Vec<Arc<Pod>>, ReconcileError> {
        let pods = self.context.informers.pods.in_namespace(&set.metadata.namespace);
        let claims = claim(&set.metadata, &set.spec.selector, pods);
        settle(&self.context, set, claims).await
    }

    /// Of several revisions that hold the template one stays, and pods of the others become its own. Tells whether there
    /// were any.
    async fn merge_duplicates(
        &self,
        history: &[Arc<ControllerRevision>],
        kept: &ControllerRevision,
        pods: &[Arc<Pod>],
    ) -> Result<bool, ReconcileError> {
        let duplicates: Vec<_> = duplicates(history, kept).collect();
        for duplicate in &duplicates {
            let of_it: Vec<_> = pods
                .iter()
                .filter(|pod| pod.metadata.label(HASH_LABEL) == Some(hash_of(duplicate)))
                .collect();
            for pod in of_it {
                let labels = json!({HASH_LABEL: hash_of(kept)});
                let patch = json!({"metadata": {"uid": pod.metadata.uid, "labels": labels}});
                unless_gone(self.context.patch(&**pod, "", PatchType::Merge, &patch).await)?;
            }
        }
        revision::delete(&self.context, &duplicates).await?;
        Ok(!duplicates.is_empty())
    }

    async fn act(
        &self,
        look: &Look<'_>,
        decision: &Decision<'_>,
        pods: &[Arc<Pod>],
    ) -> Result<(), ReconcileError> {
        let set = look.set;
        for (node, pod) in &decision.failed {
            self.failures.lock().replaced(place(set, node), look.now);
            let namespace = &set.metadata.namespace;
            let message =
                format!("Found failed daemon pod {namespace}/{pod} on node {node}, will try to kill it");
            self.tell(set, EventType::Warning, "FailedDaemonPod", message);
        }
        for (node, pod) in &decision.succeeded {
            let namespace = &set.metadata.namespace;
            let message =
                format!("Found succeeded daemon pod {namespace}/{pod} on node {node}, will try to delete it");
            self.tell(set, EventType::Normal, "SucceededDaemonPod", message);
        }
        let (_, not_created) = in_batches(&decision.create, |node| self.create(look, node)).await;
        let deletions: Vec<_> = pods
            .iter()
            .filter(|pod| decision.delete.contains(&pod.metadata.name.as_str()))
            .collect();
        let (_, not_deleted) = in_batches(deletions, |pod| self.delete(set, pod)).await;
        not_created.or(not_deleted).map_or(Ok(()), Err)
    }

    async fn create(&self, look: &Look<'_>, node: &str) -> Result<(), ReconcileError> {
        let set = look.set;
        let template = template_for(
            set.spec.template.value(),
            node,
            look.hash,
            template_generation(set),
        );
        let collection = Pod::collection().in_namespace(&set.metadata.namespace);
        match self
            .context
            .create::<Pod>(&collection, &pod_from(&template, set))
            .await
        {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod.metadata.name);
                self.tell(set, EventType::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            // The namespace takes nothing any more, and this set goes with it.
            Err(ReconcileError::Client(error)) if is_namespace_terminating(&error) => Ok(()),
            Err(ReconcileError::Client(error)) => {
                self.tell(
                    set,
                    EventType::Warning,
                    "FailedCreate",
                    format!("Error creating: {error}"),
                );
                Err(error.into())
            }
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, set: &DaemonSet, pod: &Pod) -> Result<(), ReconcileError> {
        match self.context.delete(pod, DeleteParams::default()).await {
            Ok(()) => {
                let message = format!("Deleted pod: {}", pod.metadata.name);
                self.tell(set, EventType::Normal, "SuccessfulDelete", message);
                Ok(())
            }
            Err(ReconcileError::Client(error)) => {
                self.tell(
                    set,
                    EventType::Warning,
                    "FailedDelete",
                    format!("Error deleting: {error}"),
                );
                Err(error.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes the oldest revisions beyond the limit that no pod is of.
    ///
    /// Source: `cleanupHistory` in `pkg/controller/daemon/update.go`, Kubernetes 1.36.
    async fn forget_history(
        &self,
        set: &DaemonSet,
        history: &[Arc<ControllerRevision>],
        current: &ControllerRevision,
        pods: &[Arc<Pod>],
    ) -> Result<(), ReconcileError> {
        let limit = usize::try_from(set.spec.revision_history_limit.unwrap_or(10)).unwrap_or(usize::MAX);
        let live: BTreeSet<_> = pods
            .iter()
            .filter_map(|pod| pod.metadata.label(HASH_LABEL))
            .collect();
        let old: Vec<_> = history
            .iter()
            .filter(|old| old.metadata.name != current.metadata.name)
            .collect();
        let surplus = beyond_limit(&old, limit, |revision| live.contains(hash_of(revision)));
        revision::delete(&self.context, &surplus).await
    }

    fn next_look(&self, look: &Look<'_>, decision: &Decision<'_>, pods: &[Arc<Pod>]) -> Requeue {
        let min_ready_seconds = look.set.spec.min_ready_seconds;
        let close = pods
            .iter()
            .filter(|pod| pod.is_ready() && !pod.is_available(min_ready_seconds, look.now));
        let soonest = close.filter_map(|pod| pod.available_at(min_ready_seconds)).min();
        let available = soonest.map(|at| self.context.until(at));
        available
            .into_iter()
            .chain(decision.again)
            .min()
            .map_or(Requeue::Done, Requeue::After)
    }

    fn tell(&self, set: &DaemonSet, kind: EventType, reason: &'static str, message: String) {
        self.context
            .events
            .publish(set, COMPONENT, kind, reason, message, self.context.now());
    }
}

fn place(set: &DaemonSet, node: &str) -> Place {
    Place {
        uid: set.metadata.uid.clone(),
        generation: set.status.observed_generation,
        node: node.to_owned(),
    }
}

/// What pods of a revision have in their label.
fn hash_of(revision: &ControllerRevision) -> &str {
    revision
        .metadata
        .label(HASH_LABEL)
        .unwrap_or(&revision.metadata.name)
}

fn template_generation(set: &DaemonSet) -> Option<i64> {
    set.metadata.annotation(GENERATION_ANNOTATION)?.parse().ok()
}
