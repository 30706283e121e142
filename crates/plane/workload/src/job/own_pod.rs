//! What a pod says to the Job that owns it.

use jiff::{SignedDuration, Timestamp};

use super::policies::{FailureAction, failure_action};
use crate::view::{Job, Pod, job::JobSpec};

/// On every pod of a Job until its end is written down.
pub(super) const TRACKING_FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label: the index of the pod.
pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often the index failed before this pod.
pub(super) const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// How many failures of the index did not count.
pub(super) const INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

impl JobSpec {
    pub(super) fn is_indexed(&self) -> bool {
        self.completion_mode == "Indexed"
    }

    /// Completions of an Indexed Job, which always has some; 0 for others without.
    pub(super) fn index_count(&self) -> u32 {
        self.completions
            .unwrap_or_default()
            .try_into()
            .unwrap_or_default()
    }

    /// Whether a pod on its way out is not replaced before it has ended.
    pub(super) fn replaces_only_failed(&self) -> bool {
        self.pod_replacement_policy == "Failed" || self.pod_failure_policy.is_some()
    }

    pub(super) fn has_limit_per_index(&self) -> bool {
        self.is_indexed() && self.backoff_limit_per_index.is_some()
    }
}

impl Pod {
    pub(super) fn is_tracked(&self) -> bool {
        self.metadata
            .finalizers
            .iter()
            .any(|finalizer| finalizer == TRACKING_FINALIZER)
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }

    pub(super) fn is_terminating(&self) -> bool {
        !self.is_finished() && self.metadata.is_deleting()
    }

    /// Whether it counts as failed: it ended so, or it is on its way out and is replaced already.
    pub(super) fn has_failed(&self, job: &Job) -> bool {
        match self.status.phase.as_str() {
            "Failed" => true,
            "Succeeded" => false,
            _ => self.metadata.is_deleting() && !job.spec.replaces_only_failed(),
        }
    }

    pub(super) fn completion_index(&self) -> Option<u32> {
        self.metadata.annotation(COMPLETION_INDEX)?.parse().ok()
    }

    /// Its index, if the Job has one of that number.
    pub(super) fn valid_index(&self, job: &Job) -> Option<u32> {
        self.completion_index()
            .filter(|index| *index < job.spec.index_count())
    }

    fn count(&self, annotation: &str) -> i32 {
        let count = self
            .metadata
            .annotation(annotation)
            .and_then(|text| text.parse().ok());
        count.filter(|count| *count >= 0).unwrap_or_default()
    }

    /// How often its index has failed before it: what counts, and what does not.
    pub(super) fn index_failures(&self) -> (i32, i32) {
        (
            self.count(INDEX_FAILURE_COUNT),
            self.count(INDEX_IGNORED_FAILURE_COUNT),
        )
    }

    /// How often its index has failed when this pod is replaced.
    pub(super) fn index_failures_after(&self, job: &Job) -> (i32, i32) {
        let (counted, ignored) = self.index_failures();
        match failure_action(job.spec.pod_failure_policy.as_ref(), self) {
            FailureAction::Ignore => (counted, ignored.saturating_add(1)),
            _ => (counted.saturating_add(1), ignored),
        }
    }

    /// When it ended, as well as can be known: the last of its containers (and of its sidecars), the end of its
    /// readiness, its deletion, its creation.
    ///
    /// Source: `getFinishedTime` in `pkg/controller/job/backoff_utils.go`, Kubernetes 1.36.
    pub(super) fn finished_at(&self) -> Timestamp {
        self.containers_finished_at()
            .or_else(|| self.unready_since())
            .or_else(|| self.deletion_asked_at())
            .or(self.metadata.creation_timestamp)
            .unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Nothing as long as one of them has no end.
    fn containers_finished_at(&self) -> Option<Timestamp> {
        let sidecars = self.status.init_container_statuses.iter().filter(|status| {
            let mut containers = self.spec.init_containers.iter();
            containers.any(|container| container.name == status.name && container.restart_policy == "Always")
        });
        let ends = self.status.container_statuses.iter().chain(sidecars);
        ends.map(|status| status.state.terminated.as_ref()?.finished_at)
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()
    }

    fn unready_since(&self) -> Option<Timestamp> {
        let ready = self.condition("Ready").filter(|ready| ready.status == "False")?;
        ready.last_transition_time
    }

    fn deletion_asked_at(&self) -> Option<Timestamp> {
        let grace =
            SignedDuration::from_secs(self.metadata.deletion_grace_period_seconds.unwrap_or_default());
        self.metadata.deletion_timestamp?.checked_sub(grace).ok()
    }
}
