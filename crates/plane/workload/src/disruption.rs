//! Keeps the status of PodDisruptionBudgets: how many pods may be evicted now.
//!
//! ```text
//!   budgets, pods, scales of their controllers ──▶ count ──▶ status, which the eviction of pods asks
//! ```
//!
//! Source: `pkg/controller/disruption/disruption.go`, Kubernetes 1.36.

mod budget;

use std::{collections::BTreeMap, sync::Arc};

use hotmap_client::PatchType;
use tokio::task::JoinSet;

use self::budget::{Scale, count, patch};
use crate::{
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    informers::Informers,
    queue::Queue,
    view::{Key, OwnerReference, Pod, PodDisruptionBudget, View},
};

/// Who says so in events; upstream's name.
const COMPONENT: &str = "controllermanager";

struct Disruption {
    context: Context,
}

/// Keeps budgets for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let informers = &context.informers;
    let budgets = queue.clone();
    informers
        .pod_disruption_budgets
        .on_change(move |change| budgets.add(change.object().metadata.key()));
    let (all, pods) = (informers.clone(), queue.clone());
    informers.pods.on_change(move |change| {
        let new = change.object();
        let old = match &change {
            Change::Applied { old: Some(old), .. } => Some(*old),
            _ => None,
        };
        for budget in all.pod_disruption_budgets.in_namespace(&new.metadata.namespace) {
            if selects(&budget, &new.metadata.labels)
                || old.is_some_and(|old| selects(&budget, &old.metadata.labels))
            {
                pods.add(budget.metadata.key());
            }
        }
    });
    follow_scales(&informers.deployments, informers, &queue, |one| one.spec.replicas);
    follow_scales(&informers.replica_sets, informers, &queue, |one| {
        one.spec.replicas
    });
    follow_scales(&informers.stateful_sets, informers, &queue, |one| {
        one.spec.replicas
    });
    let controller = Disruption {
        context: context.clone(),
    };
    context.start(controller, queue, tasks);
}

/// A changed scale may change every budget of its namespace.
fn follow_scales<V: View>(
    controllers: &crate::informer::Informer<V>,
    informers: &Arc<Informers>,
    queue: &Queue<Key>,
    replicas: impl Fn(&V) -> i32 + Send + Sync + 'static,
) {
    let (informers, queue) = (informers.clone(), queue.clone());
    controllers.on_change(move |change| {
        if let Change::Applied { old: Some(old), new } = &change
            && replicas(old) == replicas(new)
        {
            return;
        }
        let namespace = &change.object().metadata().namespace;
        let budgets = informers.pod_disruption_budgets.in_namespace(namespace);
        budgets.iter().for_each(|budget| queue.add(budget.metadata.key()));
    });
}

fn selects(budget: &PodDisruptionBudget, labels: &BTreeMap<String, String>) -> bool {
    let selector = budget.spec.selector.as_ref();
    selector.is_some_and(|selector| selector.matches(labels))
}

impl Controller for Disruption {
    const NAME: &'static str = "disruption";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let informers = &self.context.informers;
        let Some(budget) = informers.pod_disruption_budgets.get(key) else {
            return Ok(Requeue::Done);
        };
        let mut pods: Vec<Arc<Pod>> = informers.pods.in_namespace(&key.namespace);
        pods.retain(|pod| selects(&budget, &pod.metadata.labels));
        let now = self.context.now();
        let counted = count(
            &budget,
            &pods,
            |owner| scale_of(informers, &key.namespace, owner),
            now,
        );
        if let Some(patch) = patch(&budget, counted.as_ref().map_err(String::as_str), now) {
            self.tell(&budget, &pods, &counted, now);
            let patched = self.context.patch(&*budget, "status", PatchType::Merge, &patch);
            unless_gone(patched.await)?;
        }
        Ok(match counted.ok().and_then(|count| count.look_again_at) {
            Some(at) => Requeue::After(self.context.until(at)),
            None => Requeue::Done,
        })
    }
}

impl Disruption {
    /// News of what is odd about a budget, with each change of its status and not more often.
    fn tell(
        &self,
        budget: &PodDisruptionBudget,
        pods: &[Arc<Pod>],
        counted: &Result<budget::Count, String>,
        now: jiff::Timestamp,
    ) {
        let events = &self.context.events;
        if pods.is_empty() {
            let message = "No matching pods found";
            events.publish(budget, COMPONENT, EventType::Normal, "NoPods", message, now);
        }
        match counted {
            Err(why) => {
                let message = format!("Failed to calculate the number of expected pods: {why}");
                let reason = "CalculateExpectedPodCountFailed";
                events.publish(budget, COMPONENT, EventType::Warning, reason, message, now);
            }
            Ok(count) if !count.unmanaged.is_empty() => {
                let message = format!(
                    "pods without a controller are selected, and a share of them cannot be counted; \
                     give minAvailable as a number: {}",
                    count.unmanaged.join(", ")
                );
                events.publish(
                    budget,
                    COMPONENT,
                    EventType::Warning,
                    "UnmanagedPods",
                    message,
                    now,
                );
            }
            Ok(_) => {}
        }
    }
}

/// The scale of what controls a pod; a Deployment answers for its ReplicaSets.
fn scale_of(informers: &Informers, namespace: &str, owner: &OwnerReference) -> Scale {
    let key = Key::new(namespace, &owner.name);
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, owner.kind.as_str()) {
        ("apps", "ReplicaSet") => {
            let set = informers.replica_sets.get(&key);
            let set = set
                .filter(|set| set.metadata.uid == owner.uid)
                .ok_or_else(String::new)?;
            match set
                .metadata
                .controller()
                .filter(|above| above.kind == "Deployment")
            {
                None => Ok((owner.uid.clone(), set.spec.replicas.into())),
                Some(above) => {
                    let deployment = informers.deployments.get(&Key::new(namespace, &above.name));
                    let deployment = deployment
                        .filter(|deployment| deployment.metadata.uid == above.uid)
                        .ok_or_else(String::new)?;
                    Ok((above.uid.clone(), deployment.spec.replicas.into()))
                }
            }
        }
        ("apps", "StatefulSet") => {
            let set = informers.stateful_sets.get(&key);
            let set = set
                .filter(|set| set.metadata.uid == owner.uid)
                .ok_or_else(String::new)?;
            Ok((owner.uid.clone(), set.spec.replicas.into()))
        }
        (group, kind) => {
            let resources = hotmap_kinds::resources().iter();
            let mut same = resources.filter(|one| one.group == group && one.kind == kind);
            match same.next() {
                Some(resource) if resource.group.is_empty() => Err(format!(
                    "{} does not implement the scale subresource",
                    resource.plural
                )),
                Some(resource) => Err(format!(
                    "{}.{} does not implement the scale subresource",
                    resource.plural, resource.group
                )),
                None => Err(String::new()),
            }
        }
    }
}
