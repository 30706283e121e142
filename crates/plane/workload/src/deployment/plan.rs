//! What a deployment needs next: a pure function of what is.
//!
//! ```text
//!   pause noted ─▶ revision of the new ReplicaSet ─┬─ paused ─────────▶ scale, clean up ─▶ status
//!                                                  ├─ size was edited ▶ scale ───────────▶ status
//!                                                  └─ RollingUpdate · Recreate ──────────▶ status, progress, deadline
//! ```
//!
//! Steps are planned on copies that change as the steps would change the objects, so that one look plans all that one look
//! can. Source: `pkg/controller/deployment/{deployment_controller,sync}.go`, Kubernetes 1.36.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{bounds::Bounds, revision, template};
use crate::view::{
    Deployment, Pod, ReplicaSet,
    deployment::{DeploymentStatus, StrategyType},
};

/// On ReplicaSets: what the deployment's `replicas` was when their size was decided.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// On ReplicaSets: the same with `maxSurge` added.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// All that a decision looks at.
pub(crate) struct Observed<'a> {
    pub(crate) deployment: &'a Deployment,
    /// Those it controls and selects.
    pub(crate) replica_sets: &'a [Arc<ReplicaSet>],
    /// The pods that these control, also those on their way out.
    pub(crate) pods: &'a [Arc<Pod>],
    pub(crate) now: Timestamp,
}

/// What to do, in this order and not further than the first failure, and when to look again if nothing happens.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<Step>,
    pub(crate) look_again_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    CreateReplicaSet {
        name: String,
        body: Value,
        replicas: i32,
    },
    /// A merge patch of a ReplicaSet.
    ChangeReplicaSet {
        name: String,
        patch: Value,
        /// Its size before and after, if it changes.
        scaled: Option<(i32, i32)>,
    },
    DeleteReplicaSet {
        name: String,
    },
    /// A merge patch through the deployment's status, with the annotation that tells its revision.
    WriteStatus(Value),
}

/// The next steps of a deployment.
pub(crate) fn next_steps(observed: &Observed<'_>) -> Steps {
    let mut plan = Plan::new(observed);
    plan.decide();
    Steps {
        steps: plan.steps,
        look_again_at: plan.look_again_at,
    }
}

/// One look's work: what is, changed by what was planned so far.
pub(super) struct Plan<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
    pub(super) bounds: Bounds,
    pub(super) status: DeploymentStatus,
    /// The revision of the new one.
    pub(super) revision: Option<String>,
    /// The one with the deployment's template.
    pub(super) new: Option<ReplicaSet>,
    /// All others, oldest first.
    pub(super) old: Vec<ReplicaSet>,
    pub(super) steps: Vec<Step>,
    pub(super) look_again_at: Option<Timestamp>,
}

/// One of the ReplicaSets of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    New,
    Old(usize),
}

impl<'a> Plan<'a> {
    fn new(observed: &Observed<'a>) -> Self {
        let deployment = observed.deployment;
        let mut sets: Vec<ReplicaSet> = observed.replica_sets.iter().map(|set| (**set).clone()).collect();
        sets.sort_by(|one, other| age_and_name(one).cmp(&age_and_name(other)));
        // The oldest, should two have the same template.
        let new = sets
            .iter()
            .position(|set| template::are_same(&set.spec.template, &deployment.spec.template))
            .map(|at| sets.remove(at));
        Self {
            deployment,
            pods: observed.pods,
            now: observed.now,
            bounds: Bounds::of(deployment),
            status: deployment.status.clone(),
            revision: None,
            new,
            old: sets,
            steps: Vec::new(),
            look_again_at: None,
        }
    }

    fn decide(&mut self) {
        if self.deployment.metadata.is_deleting() {
            self.sync_revision();
            return self.sync_status();
        }
        self.note_pause();
        self.sync_revision();
        if self.deployment.spec.paused {
            self.scale();
            self.clean_up_history();
            return self.sync_status();
        }
        if self.was_resized() && self.scale() {
            return self.sync_status();
        }
        match self.deployment.spec.strategy.kind {
            StrategyType::RollingUpdate => self.roll(),
            StrategyType::Recreate => self.recreate(),
        }
        self.sync_rollout_status();
    }

    /// How many pods the deployment wants.
    pub(super) fn replicas(&self) -> i64 {
        self.deployment.spec.replicas.into()
    }

    pub(super) fn max_replicas(&self) -> i64 {
        self.replicas() + self.bounds.max_surge
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }

    /// Old ones first.
    pub(super) fn active(&self) -> Vec<Which> {
        let old = (0..self.old.len()).map(Which::Old);
        old.chain(self.new.is_some().then_some(Which::New))
            .filter(|which| self.get(*which).spec.replicas > 0)
            .collect()
    }

    pub(super) fn get(&self, which: Which) -> &ReplicaSet {
        match which {
            Which::Old(at) => &self.old[at],
            Which::New => self
                .new
                .as_ref()
                .expect("a plan names its new one only if it has one"),
        }
    }

    fn get_mut(&mut self, which: Which) -> &mut ReplicaSet {
        match which {
            Which::Old(at) => &mut self.old[at],
            Which::New => self
                .new
                .as_mut()
                .expect("a plan names its new one only if it has one"),
        }
    }

    /// The pods that all ReplicaSets together ask for.
    pub(super) fn asked_for(&self) -> i64 {
        self.all().map(|set| i64::from(set.spec.replicas)).sum()
    }

    /// Plans a new size. Without one, plans nothing, unless `with_annotations` and these say something else than the
    /// deployment. Answers whether the size changes.
    pub(super) fn resize(&mut self, which: Which, replicas: i64, with_annotations: bool) -> bool {
        let replicas = i32::try_from(replicas.max(0)).unwrap_or(i32::MAX);
        let before = self.get(which).spec.replicas;
        if before == replicas && !with_annotations {
            return false;
        }
        let annotations = self.size_annotations();
        let set = self.get_mut(which);
        let said = |(key, value): (&String, &String)| set.metadata.annotation(key) == Some(value.as_str());
        if before == replicas && annotations.iter().all(said) {
            return false;
        }
        let mut patch = json!({"metadata": {"annotations": annotations}});
        let mut scaled = None;
        if before != replicas {
            patch["spec"] = json!({"replicas": replicas});
            scaled = Some((before, replicas));
        }
        set.spec.replicas = replicas;
        set.metadata.annotations.extend(annotations);
        let name = set.metadata.name.clone();
        self.steps.push(Step::ChangeReplicaSet { name, patch, scaled });
        scaled.is_some()
    }

    pub(super) fn size_annotations(&self) -> BTreeMap<String, String> {
        let said = [
            (DESIRED_REPLICAS, self.replicas()),
            (MAX_REPLICAS, self.max_replicas()),
        ];
        said.map(|(key, count)| (key.to_owned(), count.to_string()))
            .into()
    }

    fn sync_revision(&mut self) {
        revision::sync(self);
    }
}

/// Oldest first; the name decides between two of the same second.
fn age_and_name(set: &ReplicaSet) -> (Option<Timestamp>, &str) {
    (set.metadata.creation_timestamp, &set.metadata.name)
}
