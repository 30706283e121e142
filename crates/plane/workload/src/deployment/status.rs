//! The status of a deployment: counts, availability, progress and its deadline.
//!
//! Source: `calculateStatus` in `pkg/controller/deployment/sync.go` and `pkg/controller/deployment/progress.go`, Kubernetes
//! 1.36. `kubectl rollout status` reads the reasons, people the texts.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    conditions::{self, AVAILABLE, PROGRESSING, REPLICA_FAILURE},
    plan::{Plan, Step},
    revision::REVISION,
};
use crate::view::{
    Deployment, ReplicaSet,
    deployment::{DeploymentCondition, DeploymentStatus},
};

const NEW_AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

impl Deployment {
    /// Whether somebody wants to know that a rollout is stuck.
    pub(super) fn has_progress_deadline(&self) -> bool {
        self.progress_deadline().is_some()
    }

    fn progress_deadline(&self) -> Option<SignedDuration> {
        let seconds = self
            .spec
            .progress_deadline_seconds
            .filter(|seconds| *seconds != i32::MAX)?;
        Some(SignedDuration::from_secs(seconds.into()))
    }
}

impl Plan<'_> {
    /// A pause stops the clock of the deadline; its end starts it anew. A deadline that has passed stays passed.
    pub(super) fn note_pause(&mut self) {
        let reason = self
            .status
            .condition(PROGRESSING)
            .map(|held| held.reason.as_str());
        match (self.deployment.spec.paused, reason) {
            (_, Some(TIMED_OUT)) | (true, Some(PAUSED)) => {}
            (true, _) => self.note_progress("Unknown", PAUSED, "Deployment is paused"),
            (false, Some(PAUSED)) => {
                self.note_progress("Unknown", "DeploymentResumed", "Deployment is resumed");
            }
            (false, _) => {}
        }
    }

    /// The first we know of a rollout: somebody else began it, or nobody cared about its progress until now.
    pub(super) fn note_found(&mut self, name: &str) {
        if self.status.condition(PROGRESSING).is_none() {
            self.note_progress(
                "True",
                "FoundNewReplicaSet",
                format!("Found new replica set {name:?}"),
            );
        }
    }

    pub(super) fn note_progress(&mut self, status: &str, reason: &str, message: impl Into<String>) {
        if self.deployment.has_progress_deadline() {
            let condition = conditions::condition(PROGRESSING, status, reason, message, self.now);
            conditions::set(&mut self.status.conditions, condition);
        }
    }

    /// Writes what is, without a word on progress.
    pub(super) fn sync_status(&mut self) {
        let status = self.counted();
        self.write(status);
    }

    /// Writes what is, how the rollout goes, and plans a look at the deadline.
    pub(super) fn sync_rollout_status(&mut self) {
        let mut status = self.counted();
        self.judge_progress(&mut status);
        match self.replica_failure() {
            Some(failure) => conditions::set(&mut status.conditions, failure),
            None => conditions::remove(&mut status.conditions, REPLICA_FAILURE),
        }
        self.look_again_at = self.deadline(&status);
        self.write(status);
    }

    /// Whether all pods are new and available, and there are no others.
    pub(super) fn is_complete(&self, status: &DeploymentStatus) -> bool {
        let replicas = self.deployment.spec.replicas;
        status.updated_replicas == replicas
            && status.replicas == replicas
            && status.available_replicas == replicas
            && status.observed_generation >= self.deployment.metadata.generation
    }

    fn counted(&self) -> DeploymentStatus {
        let sum = |count: fn(&ReplicaSet) -> i32| self.all().map(count).fold(0, i32::saturating_add);
        let available_replicas = sum(|set| set.status.available_replicas);
        let mut status = DeploymentStatus {
            observed_generation: self.deployment.metadata.generation,
            replicas: sum(|set| set.status.replicas),
            updated_replicas: self.new.as_ref().map_or(0, |new| new.status.replicas),
            ready_replicas: sum(|set| set.status.ready_replicas),
            available_replicas,
            unavailable_replicas: sum(|set| set.spec.replicas)
                .saturating_sub(available_replicas)
                .max(0),
            terminating_replicas: self.terminating(),
            collision_count: self.status.collision_count,
            conditions: self.status.conditions.clone(),
        };
        let is_available = i64::from(available_replicas) >= self.replicas() - self.bounds.max_unavailable;
        let (value, reason, message) = if is_available {
            (
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
            )
        } else {
            (
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        let condition = conditions::condition(AVAILABLE, value, reason, message, self.now);
        conditions::set(&mut status.conditions, condition);
        status
    }

    /// Nothing as long as one that was looked at does not say how many of its pods terminate.
    fn terminating(&self) -> Option<i32> {
        self.all()
            .try_fold(0_i32, |sum, set| match set.status.terminating_replicas {
                Some(count) => Some(sum.saturating_add(count)),
                None if set.status.observed_generation == 0 => Some(sum),
                None => None,
            })
    }

    fn judge_progress(&self, status: &mut DeploymentStatus) {
        if !self.deployment.has_progress_deadline() {
            return conditions::remove(&mut status.conditions, PROGRESSING);
        }
        let current = self.status.condition(PROGRESSING);
        let was_complete = status.replicas == status.updated_replicas
            && current.is_some_and(|current| current.reason == NEW_AVAILABLE);
        if was_complete {
            // Pods that fail after a rollout are no rollout that is stuck.
            return;
        }
        let subject = match &self.new {
            Some(new) => format!("ReplicaSet {:?}", new.metadata.name),
            None => format!("Deployment {:?}", self.deployment.metadata.name),
        };
        let condition = |value, reason, text: &str| {
            conditions::condition(PROGRESSING, value, reason, format!("{subject} {text}"), self.now)
        };
        if self.is_complete(status) {
            let complete = condition("True", NEW_AVAILABLE, "has successfully progressed.");
            conditions::set(&mut status.conditions, complete);
        } else if self.progresses(status) {
            let mut progress = condition("True", "ReplicaSetUpdated", "is progressing.");
            if let Some(current) = current.filter(|current| current.status == "True") {
                progress.last_transition_time = current.last_transition_time;
            }
            // Replaced also when its reason stays: its time is that of the latest progress.
            conditions::remove(&mut status.conditions, PROGRESSING);
            status.conditions.push(progress);
        } else if self.timed_out(status) {
            let late = condition("False", TIMED_OUT, "has timed out progressing.");
            conditions::set(&mut status.conditions, late);
        }
    }

    fn progresses(&self, status: &DeploymentStatus) -> bool {
        let old = |status: &DeploymentStatus| status.replicas - status.updated_replicas;
        status.updated_replicas > self.status.updated_replicas
            || old(status) < old(&self.status)
            || status.ready_replicas > self.status.ready_replicas
            || status.available_replicas > self.status.available_replicas
    }

    fn timed_out(&self, status: &DeploymentStatus) -> bool {
        status
            .condition(PROGRESSING)
            .is_some_and(|held| held.reason == TIMED_OUT || self.due(held).is_some_and(|due| due <= self.now))
    }

    /// When a rollout that shows no progress is given up; nothing while none is going on.
    fn deadline(&self, status: &DeploymentStatus) -> Option<Timestamp> {
        let held = status.condition(PROGRESSING)?;
        let is_over = self.is_complete(status) || held.reason == TIMED_OUT;
        if is_over { None } else { self.due(held) }
    }

    fn due(&self, held: &DeploymentCondition) -> Option<Timestamp> {
        if held.reason == NEW_AVAILABLE {
            return None;
        }
        held.last_update_time?
            .checked_add(self.deployment.progress_deadline()?)
            .ok()
    }

    /// A failure of the new ReplicaSet, else of an old one.
    fn replica_failure(&self) -> Option<DeploymentCondition> {
        self.new
            .iter()
            .chain(&self.old)
            .flat_map(|set| &set.status.conditions)
            .find(|condition| condition.kind == REPLICA_FAILURE)
            .map(conditions::promoted)
    }

    fn write(&mut self, status: DeploymentStatus) {
        let revision = self.revision.as_deref();
        // Through the status, like upstream: annotations written elsewhere make a new generation.
        let is_new_revision = revision.is_some() && revision != self.deployment.metadata.annotation(REVISION);
        if is_new_revision || status != self.deployment.status {
            let mut patch = patch(&status);
            if is_new_revision {
                patch["metadata"] = json!({"annotations": {REVISION: revision}});
            }
            self.steps.push(Step::WriteStatus(patch));
        }
        self.status = status;
    }
}

/// The merge patch that makes this the status. Counts of zero are absent, as upstream writes them.
fn patch(status: &DeploymentStatus) -> Value {
    let count = |count: i32| (count != 0).then_some(count);
    json!({"status": {
        "observedGeneration": status.observed_generation,
        "replicas": count(status.replicas),
        "updatedReplicas": count(status.updated_replicas),
        "readyReplicas": count(status.ready_replicas),
        "availableReplicas": count(status.available_replicas),
        "unavailableReplicas": count(status.unavailable_replicas),
        "terminatingReplicas": status.terminating_replicas,
        "collisionCount": status.collision_count,
        "conditions": conditions::to_json(&status.conditions),
    }})
}
