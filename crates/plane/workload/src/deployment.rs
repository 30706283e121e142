//! Makes ReplicaSets follow their Deployment: one for each template it had, the newest with the pods.
//!
//! ```text
//!   claim ReplicaSets ─▶ next_steps(deployment, ReplicaSets, pods, now) ─▶ create · resize · delete · status
//! ```
//!
//! The decision is pure; here it is carried out. Source: `pkg/controller/deployment`, Kubernetes 1.36.

mod bounds;
mod conditions;
mod creation;
mod plan;
mod recreate;
mod revision;
mod rolling;
mod scale;
mod status;
mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hotmap_client::{DeleteParams, PatchType};
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::info;

use self::{
    creation::NameTaken,
    plan::{Observed, Step, next_steps},
};
use crate::{
    claims,
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    informers::Informers,
    queue::Queue,
    replica_set::is_namespace_terminating,
    view::{Deployment, Key, Metadata, OwnerReference, Pod, ReplicaSet, View, deployment::StrategyType},
};

const COMPONENT: &str = "deployment-controller";

struct Deployments {
    context: Context,
}

/// Rolls deployments for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let deployments = queue.clone();
    context.informers.deployments.on_change(move |change| {
        if let Change::Applied { new, .. } = change {
            deployments.add(new.metadata.key());
        }
    });
    let (sets, informers) = (queue.clone(), context.informers.clone());
    context.informers.replica_sets.on_change(move |change| {
        concerned(&informers, &change)
            .into_iter()
            .for_each(|key| sets.add(key));
    });
    let (pods, informers) = (queue.clone(), context.informers.clone());
    context.informers.pods.on_change(move |change| {
        if has_ended(&change) {
            recreated(&informers, change.object())
                .into_iter()
                .for_each(|key| pods.add(key));
        }
    });
    let controller = Deployments {
        context: context.clone(),
    };
    context.start(controller, queue, tasks);
}

/// The deployments that a ReplicaSet's change may concern: who has it, who had it, or who may want it.
fn concerned(informers: &Informers, change: &Change<'_, ReplicaSet>) -> Vec<Key> {
    let set = &change.object().metadata;
    let owner = |set: &Metadata| controller(informers, &set.namespace, set.controller()?);
    let key = |deployment: Arc<Deployment>| deployment.metadata.key();
    let mut keys: Vec<Key> = owner(set).map(key).into_iter().collect();
    if let Change::Applied { old, .. } = change {
        let before = old.and_then(|old| owner(&old.metadata)).map(key);
        keys.extend(before.filter(|before| !keys.contains(before)));
        let is_wanted_as_before =
            old.is_some_and(|old| old.metadata.labels == set.labels && old.metadata.controller().is_none());
        if set.controller().is_none() && !set.is_deleting() && !is_wanted_as_before {
            let deployments = informers.deployments.in_namespace(&set.namespace);
            let selecting = deployments.iter().filter(|deployment| {
                let selector = &deployment.spec.selector;
                !selector.is_everything() && selector.matches(&set.labels)
            });
            keys.extend(selecting.map(|deployment| deployment.metadata.key()));
        }
    }
    keys
}

fn controller(informers: &Informers, namespace: &str, owner: &OwnerReference) -> Option<Arc<Deployment>> {
    let key = Key::new(namespace, &owner.name);
    let is_deployment = owner.kind == Deployment::KIND;
    let deployment = is_deployment.then(|| informers.deployments.get(&key)).flatten()?;
    (deployment.metadata.uid == owner.uid).then_some(deployment)
}

fn has_ended(change: &Change<'_, Pod>) -> bool {
    match change {
        Change::Applied { old, new } => new.is_finished() && old.is_some_and(|old| !old.is_finished()),
        Change::Deleted { .. } => true,
    }
}

/// The deployment that may wait for the end of this pod before it creates others.
fn recreated(informers: &Informers, pod: &Pod) -> Option<Key> {
    let namespace = &pod.metadata.namespace;
    let owner = pod
        .metadata
        .controller()
        .filter(|owner| owner.kind == ReplicaSet::KIND)?;
    let set = informers.replica_sets.get(&Key::new(namespace, &owner.name))?;
    let deployment = controller(informers, namespace, set.metadata.controller()?)?;
    let waits = deployment.spec.strategy.kind == StrategyType::Recreate;
    waits.then(|| deployment.metadata.key())
}

impl Controller for Deployments {
    const NAME: &'static str = "deployment";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let Some(deployment) = self.context.informers.deployments.get(key) else {
            return Ok(Requeue::Done);
        };
        // The server refuses empty selectors; should there be one, it selects nothing and not everything.
        if deployment.spec.selector.is_everything() {
            return Ok(Requeue::Done);
        }
        let replica_sets = self.claim(&deployment).await?;
        let pods = &self.context.informers.pods;
        let pods: Vec<Arc<Pod>> = match deployment.spec.strategy.kind {
            StrategyType::RollingUpdate => Vec::new(),
            StrategyType::Recreate => replica_sets
                .iter()
                .flat_map(|set| pods.owned_by(&set.metadata.uid))
                .collect(),
        };
        let decided = next_steps(&Observed {
            deployment: &deployment,
            replica_sets: &replica_sets,
            pods: &pods,
            now: self.context.now(),
        });
        for step in decided.steps {
            if let Done::Overtaken = self.execute(&deployment, step).await? {
                return Ok(Requeue::Done);
            }
        }
        Ok(match decided.look_again_at {
            Some(at) => Requeue::After(self.context.until(at)),
            None => Requeue::Done,
        })
    }
}

/// How a step ended.
enum Done {
    Written,
    /// Something changed meanwhile: the next look, which that change asks for, decides anew.
    Overtaken,
}

impl Deployments {
    /// Adopts orphans that the selector matches and lets go of ReplicaSets that it no longer does; answers with those that
    /// are the deployment's.
    async fn claim(&self, deployment: &Deployment) -> Result<Vec<Arc<ReplicaSet>>, ReconcileError> {
        let sets = &self.context.informers.replica_sets;
        let orphans = sets.orphans_in(&deployment.metadata.namespace);
        let candidates = sets.owned_by(&deployment.metadata.uid).into_iter().chain(orphans);
        let claims = claims::claim(&deployment.metadata, &deployment.spec.selector, candidates);
        for set in &claims.release {
            let patch = claims::release(deployment, &set.metadata.uid);
            unless_gone(
                self.context
                    .patch(&**set, "", PatchType::StrategicMerge, &patch)
                    .await,
            )?;
        }
        let mut owned = claims.owned;
        if !claims.adopt.is_empty() && self.context.is_still_there(deployment).await? {
            for set in &claims.adopt {
                let patch = claims::adoption(deployment, &set.metadata.uid);
                let adopted = self
                    .context
                    .patch(&**set, "", PatchType::StrategicMerge, &patch)
                    .await;
                owned.extend(unless_gone(adopted)?);
            }
        }
        Ok(owned)
    }

    async fn execute(&self, deployment: &Deployment, step: Step) -> Result<Done, ReconcileError> {
        match step {
            Step::CreateReplicaSet { name, body, replicas } => {
                self.create(deployment, &name, &body, replicas).await
            }
            Step::ChangeReplicaSet { name, patch, scaled } => {
                let Some(set) = self.replica_set(deployment, &name) else {
                    return Ok(Done::Overtaken);
                };
                let done = self.patch(&*set, "", patch).await?;
                if let (Done::Written, Some((from, to))) = (&done, scaled) {
                    self.say_scaled(deployment, &name, from, to);
                }
                Ok(done)
            }
            Step::DeleteReplicaSet { name } => {
                if let Some(set) = self.replica_set(deployment, &name) {
                    self.context.delete(&*set, DeleteParams::default()).await?;
                }
                Ok(Done::Written)
            }
            Step::WriteStatus(patch) => self.patch(deployment, "status", patch).await,
        }
    }

    fn replica_set(&self, deployment: &Deployment, name: &str) -> Option<Arc<ReplicaSet>> {
        let key = Key::new(&deployment.metadata.namespace, name);
        self.context.informers.replica_sets.get(&key)
    }

    /// Changes the very object, not one that was created under its name meanwhile.
    async fn patch<V: View>(
        &self,
        object: &V,
        subresource: &str,
        mut patch: Value,
    ) -> Result<Done, ReconcileError> {
        patch["metadata"]["uid"] = object.metadata().uid.as_str().into();
        let patched = self
            .context
            .patch(object, subresource, PatchType::Merge, &patch)
            .await;
        Ok(match unless_gone(patched)? {
            Some(_) => Done::Written,
            None => Done::Overtaken,
        })
    }

    async fn create(
        &self,
        deployment: &Deployment,
        name: &str,
        body: &Value,
        replicas: i32,
    ) -> Result<Done, ReconcileError> {
        let path = ReplicaSet::collection().in_namespace(&deployment.metadata.namespace);
        let error = match self.context.create::<ReplicaSet>(&path, body).await {
            Ok(_) => {
                if replicas > 0 {
                    self.say_scaled(deployment, name, 0, replicas);
                }
                return Ok(Done::Written);
            }
            Err(ReconcileError::Client(error)) => error,
            Err(error) => return Err(error),
        };
        if error.is_already_exists()
            && let Some(taken_by) = self.replica_set(deployment, name)
        {
            return match creation::name_taken(deployment, &taken_by) {
                NameTaken::ByOurs => Ok(Done::Overtaken),
                NameTaken::ByAnother { status } => {
                    info!(
                        namespace = deployment.metadata.namespace,
                        name = deployment.metadata.name,
                        replica_set = name,
                        "the hash of a pod template is taken, trying another one"
                    );
                    self.patch(deployment, "status", status).await?;
                    Ok(Done::Overtaken)
                }
            };
        }
        if is_namespace_terminating(&error) {
            return Ok(Done::Overtaken);
        }
        let text = creation::failure_text(name, &error);
        if let Some(status) = creation::failure(deployment, &text, self.context.now()) {
            self.patch(deployment, "status", status).await?;
        }
        self.publish(deployment, EventType::Warning, "ReplicaSetCreateError", text);
        Err(error.into())
    }

    fn say_scaled(&self, deployment: &Deployment, name: &str, from: i32, to: i32) {
        let direction = if from < to { "up" } else { "down" };
        let text = format!("Scaled {direction} replica set {name} from {from} to {to}");
        self.publish(deployment, EventType::Normal, "ScalingReplicaSet", text);
    }

    fn publish(&self, deployment: &Deployment, kind: EventType, reason: &'static str, text: String) {
        let events = &self.context.events;
        events.publish(deployment, COMPONENT, kind, reason, text, self.context.now());
    }
}
