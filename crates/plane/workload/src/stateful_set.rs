//! Keeps the pods of a StatefulSet, each with a name of its own and in their order.
//!
//! ```text
//!   set, revisions, pods ─▶ decide ─▶ create · delete · label ─▶ status ─▶ revisions nobody needs go
//! ```

mod decision;
mod history;
mod members;
#[cfg(test)]
mod model;
mod status;

use std::{collections::BTreeSet, sync::Arc};

use hotmap_client::{DeleteParams, PatchType};
use serde_json::Value;
use tokio::task::JoinSet;

use self::{
    decision::{Action, Decision, Desired, Revision, decide},
    members::{Replica, desired, identity_labels, new_pod, ordinal_of},
};
use crate::{
    batches::in_batches,
    claims::{Controlled, claim, controlled_by, settle},
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    queue::Queue,
    replica_set::is_namespace_terminating,
    revision::{self, template_of},
    view::{ControllerRevision, Key, Pod, StatefulSet, View},
};

/// Who its events are from.
const COMPONENT: &str = "statefulset-controller";
/// On revisions: the hash in their name.
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

struct StatefulSets {
    context: Context,
}

/// Keeps StatefulSets for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let informers = &context.informers;
    let sets = queue.clone();
    informers
        .stateful_sets
        .on_change(move |change| sets.add(change.object().metadata.key()));
    let (sets, of_sets) = (queue.clone(), context.informers.clone());
    informers.pods.on_change(move |change| {
        let (old, new) = match change {
            Change::Applied { old, new } => (old, new),
            Change::Deleted { last } => (None, last),
        };
        for pod in old.into_iter().chain([new]) {
            match controlled_by::<StatefulSet>(&**pod) {
                Controlled::By(key) => sets.add(key),
                Controlled::ByAnother => {}
                Controlled::ByNobody => {
                    let candidates = of_sets.stateful_sets.in_namespace(&pod.metadata.namespace);
                    let wants = |set: &&Arc<StatefulSet>| {
                        ordinal_of(&set.metadata.name, &pod.metadata.name).is_some()
                            && set.spec.selector.matches(&pod.metadata.labels)
                    };
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
        if let Controlled::By(key) = controlled_by::<StatefulSet>(&**change.object()) {
            sets.add(key);
        }
    });
    let controller = StatefulSets {
        context: context.clone(),
    };
    context.start(controller, queue, tasks);
}

impl Controller for StatefulSets {
    const NAME: &'static str = "statefulset";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let Some(set) = self.context.informers.stateful_sets.get(key) else {
            return Ok(Requeue::Done);
        };
        let history = revision::history(&self.context, &*set, &set.spec.selector).await?;
        let pods = self.pods(&set).await?;
        self.sync(&set, history, &pods).await
    }
}

impl StatefulSets {
    async fn pods(&self, set: &StatefulSet) -> Result<Vec<Arc<Pod>>, ReconcileError> {
        let is_member = |pod: &Arc<Pod>| ordinal_of(&set.metadata.name, &pod.metadata.name).is_some();
        let pods = self.context.informers.pods.in_namespace(&set.metadata.namespace);
        let mut claims = claim(&set.metadata, &set.spec.selector, pods);
        claims.adopt.retain(is_member);
        // A name that is none of this set's makes no member, whatever the labels say.
        let strangers = claims.owned.extract_if(.., |pod| !is_member(pod));
        if set.metadata.is_deleting() {
            strangers.for_each(drop);
        } else {
            claims.release.extend(strangers);
        }
        settle(&self.context, set, claims).await
    }

    async fn sync(
        &self,
        set: &StatefulSet,
        mut history: Vec<Arc<ControllerRevision>>,
        pods: &[Arc<Pod>],
    ) -> Result<Requeue, ReconcileError> {
        let now = self.context.now();
        let mut collisions = set.status.collision_count.unwrap_or(0);
        // A set that is being deleted makes no history any more.
        let update = if set.metadata.is_deleting() {
            set.status.update_revision.clone()
        } else {
            let (context, template) = (&self.context, &set.spec.template);
            revision::establish(context, set, template, HASH_LABEL, &mut history, &mut collisions)
                .await?
                .metadata
                .name
                .clone()
        };
        let current = history::current_name(&history, &set.status.current_revision, &update).to_owned();
        let desired = desired(set, &current, &update);
        let replicas: Vec<_> = pods.iter().filter_map(|pod| Replica::of(set, pod, now)).collect();
        let members: Vec<_> = replicas.iter().map(|replica| replica.member.clone()).collect();
        let decision = decide(&desired, &members);
        let acted = self.act(set, &desired, &decision, &history, &replicas).await;
        let current = if decision.is_complete { &update } else { &current };
        let written = status::patch(set, &decision.counts, current, &update, collisions);
        if let Some(patch) = written {
            self.context
                .patch(set, "status", PatchType::Merge, &patch)
                .await?;
        }
        acted?;
        if !set.metadata.is_deleting() {
            let of_pods: BTreeSet<_> = members.iter().map(|member| member.revision).collect();
            let limit = set.spec.revision_history_limit.unwrap_or(10);
            // A negative limit, which the server refuses, means none.
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let idle = history::idle(&history, current, &update, &of_pods, limit);
            revision::delete(&self.context, &idle).await?;
        }
        let soonest = replicas.iter().filter_map(|replica| replica.available_at).min();
        Ok(soonest.map_or(Requeue::Done, |at| Requeue::After(self.context.until(at))))
    }

    async fn act(
        &self,
        set: &StatefulSet,
        desired: &Desired<'_>,
        decision: &Decision,
        history: &[Arc<ControllerRevision>],
        replicas: &[Replica<'_>],
    ) -> Result<(), ReconcileError> {
        let acting = in_batches(&decision.actions, |action| {
            let of = |ordinal: i64| replicas.iter().find(|replica| replica.member.ordinal == ordinal);
            async move {
                match *action {
                    Action::Create { ordinal, revision } => {
                        let name = match revision {
                            Revision::Current => desired.current_revision,
                            Revision::Update => desired.update_revision,
                        };
                        self.create(set, ordinal, name, history).await
                    }
                    Action::Delete { ordinal } => match of(ordinal) {
                        Some(replica) => self.delete(set, replica.pod).await,
                        None => Ok(()),
                    },
                    Action::Label { ordinal } => match of(ordinal) {
                        Some(replica) => self.label(set, replica.pod, ordinal).await,
                        None => Ok(()),
                    },
                }
            }
        });
        acting.await.1.map_or(Ok(()), Err)
    }

    async fn create(
        &self,
        set: &StatefulSet,
        ordinal: i64,
        revision: &str,
        history: &[Arc<ControllerRevision>],
    ) -> Result<(), ReconcileError> {
        let held = history.iter().find(|one| one.metadata.name == revision);
        // A revision that somebody spoilt cannot be brought back; the template as it is can.
        let template = held.and_then(|revision| template_of(&revision.data));
        let template = template.as_ref().unwrap_or(set.spec.template.value());
        let body = new_pod(set, template, ordinal, revision);
        let collection = Pod::collection().in_namespace(&set.metadata.namespace);
        let created = self.context.create::<Pod>(&collection, &body).await.map(drop);
        let name = members::name(&set.metadata.name, ordinal);
        self.tell(set, "Create", &name, &created);
        created
    }

    async fn delete(&self, set: &StatefulSet, pod: &Pod) -> Result<(), ReconcileError> {
        let deleted = self.context.delete(pod, DeleteParams::default()).await;
        self.tell(set, "Delete", &pod.metadata.name, &deleted);
        deleted
    }

    async fn label(&self, set: &StatefulSet, pod: &Pod, ordinal: i64) -> Result<(), ReconcileError> {
        let labels: Value = identity_labels(&pod.metadata.name, ordinal).collect();
        let patch = serde_json::json!({"metadata": {"uid": pod.metadata.uid, "labels": labels}});
        let labelled = self.context.patch(pod, "", PatchType::Merge, &patch).await;
        let labelled = unless_gone(labelled).map(drop);
        self.tell(set, "Update", &pod.metadata.name, &labelled);
        labelled
    }

    /// Source: `recordPodEvent` in `pkg/controller/statefulset/stateful_pod_control.go`, Kubernetes 1.36.
    fn tell(&self, set: &StatefulSet, verb: &str, pod: &str, result: &Result<(), ReconcileError>) {
        let name = &set.metadata.name;
        let reason = |is_good: bool| match (verb, is_good) {
            ("Create", true) => "SuccessfulCreate",
            ("Create", false) => "FailedCreate",
            ("Delete", true) => "SuccessfulDelete",
            ("Delete", false) => "FailedDelete",
            (_, true) => "SuccessfulUpdate",
            (_, false) => "FailedUpdate",
        };
        let (kind, message) = match result {
            Ok(()) => {
                let message = format!("{verb} Pod {pod} in StatefulSet {name} successful");
                (EventType::Normal, message)
            }
            Err(ReconcileError::Client(error)) => {
                // The pod of another owner is in the way, or the event would die with its namespace.
                if error.is_already_exists() || is_namespace_terminating(error) {
                    return;
                }
                let message = format!("{verb} Pod {pod} in StatefulSet {name} failed error: {error}");
                (EventType::Warning, message)
            }
            // It was done, and cannot be seen yet.
            Err(ReconcileError::NotShown(_)) => return,
        };
        let reason = reason(result.is_ok());
        self.context
            .events
            .publish(set, COMPONENT, kind, reason, message, self.context.now());
    }
}
