//! Keeps as many pods as a ReplicaSet asks for.
//!
//! ```text
//!   claim pods ─▶ too few: create, one, two, four … · too many: delete the least useful ─▶ count again ─▶ status
//! ```
//!
//! Every write is seen before the next look, so nothing is created twice and nothing has to be expected. Source:
//! `pkg/controller/replicaset/replica_set.go`, Kubernetes 1.36.

pub(crate) mod decision;
mod ranking;

use std::sync::Arc;

use futures_util::future::join_all;
use hotmap_client::{ClientError, DeleteParams, PatchType};
use tokio::task::JoinSet;

use self::decision::{Failure, Members, Scale};
use crate::{
    batches::in_batches,
    claims,
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    informers::Informers,
    pod_template::pod_from,
    queue::Queue,
    view::{Key, Metadata, OwnerReference, Pod, ReplicaSet, View},
};

const COMPONENT: &str = "replicaset-controller";

struct ReplicaSets {
    context: Context,
}

/// Keeps ReplicaSets for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let sets = queue.clone();
    context.informers.replica_sets.on_change(move |change| {
        sets.add(change.object().metadata.key());
    });
    let (pods, informers) = (queue.clone(), context.informers.clone());
    context.informers.pods.on_change(move |change| {
        concerned(&informers, &change)
            .into_iter()
            .for_each(|key| pods.add(key));
    });
    let controller = ReplicaSets {
        context: context.clone(),
    };
    context.start(controller, queue, tasks);
}

/// The ReplicaSets that a pod's change may concern: who has it, who had it, or who may want it.
fn concerned(informers: &Informers, change: &Change<'_, Pod>) -> Vec<Key> {
    let pod = &change.object().metadata;
    let owner = |pod: &Metadata| controller(informers, &pod.namespace, pod.controller()?);
    let mut keys: Vec<Key> = owner(pod).into_iter().collect();
    if let Change::Applied { old, .. } = change {
        let before = old.and_then(|old| owner(&old.metadata));
        keys.extend(before.filter(|before| !keys.contains(before)));
        let is_wanted_as_before =
            old.is_some_and(|old| old.metadata.labels == pod.labels && old.metadata.controller().is_none());
        if pod.controller().is_none() && !pod.is_deleting() && !is_wanted_as_before {
            let sets = informers.replica_sets.in_namespace(&pod.namespace);
            let sets = sets.iter().filter(|set| selects(set, &pod.labels));
            keys.extend(sets.map(|set| set.metadata.key()));
        }
    }
    keys
}

fn controller(informers: &Informers, namespace: &str, owner: &OwnerReference) -> Option<Key> {
    let key = Key::new(namespace, &owner.name);
    let set = (owner.kind == ReplicaSet::KIND)
        .then(|| informers.replica_sets.get(&key))
        .flatten()?;
    (set.metadata.uid == owner.uid).then_some(key)
}

/// The server refuses empty selectors; should there be one, it selects nothing and not everything.
fn selects(set: &ReplicaSet, labels: &std::collections::BTreeMap<String, String>) -> bool {
    !set.spec.selector.is_everything() && set.spec.selector.matches(labels)
}

impl Controller for ReplicaSets {
    const NAME: &'static str = "replicaset";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let Some(set) = self.context.informers.replica_sets.get(key) else {
            return Ok(Requeue::Done);
        };
        if set.spec.selector.is_everything() {
            return Ok(Requeue::Done);
        }
        self.claim(&set).await?;
        let failed = self.act(&set).await;
        let members = self.members(&set);
        self.tell(&set, &members, failed.as_ref().map(|(failure, _)| failure))
            .await?;
        match failed {
            Some((_, error)) => Err(error),
            None => Ok(self.next_look(&set, &members)),
        }
    }
}

impl ReplicaSets {
    /// Adopts orphans that the selector matches, and lets go of pods that it no longer does.
    async fn claim(&self, set: &ReplicaSet) -> Result<(), ReconcileError> {
        let pods = &self.context.informers.pods;
        let owned = pods.owned_by(&set.metadata.uid);
        let orphans = pods.orphans_in(&set.metadata.namespace);
        let is_active = |pod: &Arc<Pod>| pod.is_active();
        let candidates = owned.into_iter().chain(orphans).filter(is_active);
        let claims = claims::claim(&set.metadata, &set.spec.selector, candidates);
        for pod in &claims.release {
            let patch = claims::release(set, &pod.metadata.uid);
            unless_gone(
                self.context
                    .patch(&**pod, "", PatchType::StrategicMerge, &patch)
                    .await,
            )?;
        }
        if !claims.adopt.is_empty() && self.context.is_still_there(set).await? {
            for pod in &claims.adopt {
                let patch = claims::adoption(set, &pod.metadata.uid);
                unless_gone(
                    self.context
                        .patch(&**pod, "", PatchType::StrategicMerge, &patch)
                        .await,
                )?;
            }
        }
        Ok(())
    }

    fn members(&self, set: &ReplicaSet) -> Members {
        let pods = self.context.informers.pods.owned_by(&set.metadata.uid);
        Members::of(pods.into_iter().filter(|pod| selects(set, &pod.metadata.labels)))
    }

    async fn act(&self, set: &ReplicaSet) -> Option<(Failure, ReconcileError)> {
        let related = || self.related(set);
        match decision::scale(set, &self.members(set).active, related, self.context.now()) {
            Scale::Enough => None,
            Scale::Create(count) => self.create(set, count).await,
            Scale::Delete(pods) => self.delete(set, &pods).await,
        }
    }

    /// The pods of all ReplicaSets that have the same controller.
    fn related(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let informers = &self.context.informers;
        let Some(controller) = set.metadata.controller() else {
            return Vec::new();
        };
        let sets = informers.replica_sets.owned_by(&controller.uid);
        sets.iter()
            .flat_map(|set| informers.pods.owned_by(&set.metadata.uid))
            .collect()
    }

    async fn create(&self, set: &ReplicaSet, count: usize) -> Option<(Failure, ReconcileError)> {
        let path = Pod::collection().in_namespace(&set.metadata.namespace);
        let body = pod_from(set.spec.template.value(), set);
        let (path, body) = (&path, &body);
        let (_, failed) = in_batches(0..count, |_| async move {
            match self.context.create::<Pod>(path, body).await {
                Ok(pod) => {
                    let text = format!("Created pod: {}", pod.metadata.name);
                    self.publish(set, EventType::Normal, "SuccessfulCreate", text);
                    Ok(())
                }
                // Nothing can be created any more, and all will be deleted.
                Err(ReconcileError::Client(error)) if is_namespace_terminating(&error) => Ok(()),
                Err(error) => {
                    let text = format!("Error creating: {error}");
                    self.publish(set, EventType::Warning, "FailedCreate", text);
                    Err(error)
                }
            }
        })
        .await;
        let error = failed?;
        let message = error.to_string();
        Some((
            Failure {
                reason: "FailedCreate",
                message,
            },
            error,
        ))
    }

    async fn delete(&self, set: &ReplicaSet, pods: &[Arc<Pod>]) -> Option<(Failure, ReconcileError)> {
        let deletions = pods.iter().map(|pod| async move {
            let deleted = self.context.delete(&**pod, DeleteParams::default()).await;
            let (kind, reason, text) = match &deleted {
                Ok(()) => (
                    EventType::Normal,
                    "SuccessfulDelete",
                    format!("Deleted pod: {}", pod.metadata.name),
                ),
                Err(error) => (
                    EventType::Warning,
                    "FailedDelete",
                    format!("Error deleting: {error}"),
                ),
            };
            self.publish(set, kind, reason, text);
            deleted
        });
        let error = join_all(deletions).await.into_iter().find_map(Result::err)?;
        let message = format!("unable to delete pods: {error}");
        Some((
            Failure {
                reason: "FailedDelete",
                message,
            },
            error,
        ))
    }

    fn publish(&self, set: &ReplicaSet, kind: EventType, reason: &'static str, text: String) {
        let events = &self.context.events;
        events.publish(set, COMPONENT, kind, reason, text, self.context.now());
    }

    async fn tell(
        &self,
        set: &ReplicaSet,
        members: &Members,
        failure: Option<&Failure>,
    ) -> Result<(), ReconcileError> {
        let status = decision::status(set, members, failure, self.context.now());
        if status != set.status {
            let mut patch = decision::status_patch(&status);
            patch["metadata"]["uid"] = set.metadata.uid.as_str().into();
            unless_gone(self.context.patch(set, "status", PatchType::Merge, &patch).await)?;
        }
        Ok(())
    }

    fn next_look(&self, set: &ReplicaSet, members: &Members) -> Requeue {
        match decision::next_availability(set, &members.active, self.context.now()) {
            Some(at) => Requeue::After(self.context.until(at)),
            None => Requeue::Done,
        }
    }
}

/// Whether the server refused because the namespace is being deleted.
pub(crate) fn is_namespace_terminating(error: &ClientError) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        details
            .causes
            .iter()
            .any(|cause| cause.reason == "NamespaceTerminating")
    })
}
