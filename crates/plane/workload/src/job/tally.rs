//! What a Job's pods amount to, and whether that ends the Job.
//!
//! Source: `syncJob` in `pkg/controller/job/job_controller.go`, Kubernetes 1.36.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::SignedDuration;

use super::{
    indexes::Indexes,
    policies::{self, FailureAction, failure_action},
};
use crate::view::{Job, Pod};

/// Counts and indexes, of the status and of pods whose end is not in it yet.
pub(super) struct Tally {
    pub(super) active: Vec<Arc<Pod>>,
    pub(super) ready: i32,
    pub(super) terminating: i32,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    /// Empty unless the Job is Indexed.
    pub(super) succeeded_indexes: Indexes,
    /// Nothing unless the Job limits failures per index.
    pub(super) failed_indexes: Option<Indexes>,
    /// Per index the failed pod that stays until its successor carries its failure count on.
    pub(super) awaits_successor: BTreeMap<u32, Arc<Pod>>,
}

/// Why a Job ends, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) success: bool,
    pub(super) reason: String,
    pub(super) message: String,
    /// The status has it: it is final, whatever becomes of the pods that led to it.
    pub(super) is_recorded: bool,
}

impl Tally {
    pub(super) fn of(job: &Job, pods: &[Arc<Pod>]) -> Self {
        let active: Vec<Arc<Pod>> = pods.iter().filter(|pod| pod.is_active()).cloned().collect();
        let uncounted = &job.status.uncounted_terminated_pods;
        let counts =
            |pod: &&Arc<Pod>| pod.is_tracked() && (!job.spec.is_indexed() || pod.valid_index(job).is_some());
        let new_succeeded = pods
            .iter()
            .filter(counts)
            .filter(|pod| pod.has_succeeded() && !uncounted.succeeded.contains(&pod.metadata.uid));
        let new_failed = pods
            .iter()
            .filter(counts)
            .filter(|pod| pod.has_failed(job) && !uncounted.failed.contains(&pod.metadata.uid))
            .filter(|pod| failure_action(job.spec.pod_failure_policy.as_ref(), pod) != FailureAction::Ignore);
        let mut tally = Self {
            ready: count(active.iter().filter(|pod| pod.is_ready())),
            terminating: count(pods.iter().filter(|pod| pod.is_terminating())),
            succeeded: job.status.succeeded + count(new_succeeded) + count(&uncounted.succeeded),
            failed: job.status.failed + count(new_failed) + count(&uncounted.failed),
            active,
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            awaits_successor: BTreeMap::new(),
        };
        if job.spec.is_indexed() {
            tally.count_indexes(job, pods);
        }
        tally
    }

    fn count_indexes(&mut self, job: &Job, pods: &[Arc<Pod>]) {
        let completions = job.spec.index_count();
        let of = |pod: &Arc<Pod>| pod.valid_index(job).filter(|_| pod.is_tracked());
        let new: Indexes = pods
            .iter()
            .filter(|pod| pod.has_succeeded())
            .filter_map(of)
            .collect();
        self.succeeded_indexes = Indexes::parse(&job.status.completed_indexes, completions).union(&new);
        self.succeeded = i32::try_from(self.succeeded_indexes.total()).unwrap_or(i32::MAX);
        if job.spec.backoff_limit_per_index.is_some() {
            let before = job.status.failed_indexes.as_deref().unwrap_or_default();
            let new: Indexes = pods
                .iter()
                .filter(|pod| fails_its_index(job, pod))
                .filter_map(of)
                .collect();
            let failed_indexes = Indexes::parse(before, completions).union(&new);
            self.awaits_successor = self.awaiting_successor(job, pods, &failed_indexes);
            self.failed_indexes = Some(failed_indexes);
        }
    }

    /// Of each index that is neither done nor failed nor active: its last failed pod.
    fn awaiting_successor(&self, job: &Job, pods: &[Arc<Pod>], failed: &Indexes) -> BTreeMap<u32, Arc<Pod>> {
        let active: BTreeSet<u32> = self
            .active
            .iter()
            .filter_map(|pod| pod.completion_index())
            .collect();
        let mut last: BTreeMap<u32, Arc<Pod>> = BTreeMap::new();
        for pod in pods.iter().filter(|pod| pod.is_tracked() && pod.has_failed(job)) {
            let Some(index) = pod.valid_index(job) else {
                continue;
            };
            if self.succeeded_indexes.contains(index) || failed.contains(index) || active.contains(&index) {
                continue;
            }
            let order = |pod: &Pod| {
                let (counted, ignored) = pod.index_failures();
                (counted.saturating_add(ignored), pod.finished_at())
            };
            if last.get(&index).is_none_or(|known| order(known) <= order(pod)) {
                last.insert(index, pod.clone());
            }
        }
        last
    }

    /// Whether and how the Job ends now. What is recorded stays.
    pub(super) fn verdict(&self, job: &Job, pods: &[Arc<Pod>], active: SignedDuration) -> Option<Verdict> {
        self.recorded(job)
            .or_else(|| self.failure(job, pods, active))
            .or_else(|| {
                let spec = &job.spec;
                let met = policies::success(
                    spec.success_policy.as_ref(),
                    spec.index_count(),
                    &self.succeeded_indexes,
                );
                met.map(|message| Verdict::new(true, "SuccessPolicy", message))
            })
    }

    fn recorded(&self, job: &Job) -> Option<Verdict> {
        let recorded = |kind: &str, success: bool| {
            let condition = job.status.true_condition(kind)?;
            Some(Verdict {
                success,
                reason: condition.reason.clone(),
                message: condition.message.clone(),
                is_recorded: true,
            })
        };
        recorded("SuccessCriteriaMet", true).or_else(|| recorded("FailureTarget", false))
    }

    fn failure(&self, job: &Job, pods: &[Arc<Pod>], active: SignedDuration) -> Option<Verdict> {
        let spec = &job.spec;
        let fails = |reason: &str, message: &str| Some(Verdict::new(false, reason, message));
        let by_policy = pods.iter().filter(|pod| pod.has_failed(job)).find_map(|pod| {
            match failure_action(spec.pod_failure_policy.as_ref(), pod) {
                FailureAction::FailJob { message } => Some(message),
                _ => None,
            }
        });
        if let Some(message) = by_policy {
            return fails("PodFailurePolicy", &message);
        }
        let limit = spec.backoff_limit.unwrap_or(i32::MAX);
        if self.failed > limit || restarts_exceed(job, pods, limit) {
            return fails(
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            );
        }
        if time_left(job, active).is_some_and(|left| left <= SignedDuration::ZERO) {
            return fails(
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            );
        }
        let failed = self.failed_indexes.as_ref().map_or(0, Indexes::total);
        let max = spec
            .max_failed_indexes
            .map(|max| usize::try_from(max).unwrap_or(0));
        if self.failed_indexes.is_some() && max.is_some_and(|max| failed > max) {
            return fails(
                "MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes",
            );
        }
        if failed > 0 && failed + self.succeeded_indexes.total() >= spec.index_count() as usize {
            return fails("FailedIndexes", "Job has failed indexes");
        }
        None
    }

    /// Whether enough pods have succeeded and none is left. A Job without completions is done with the first success.
    pub(super) fn is_complete(&self, job: &Job) -> bool {
        let enough = match job.spec.completions {
            None => self.succeeded > 0,
            Some(completions) => self.succeeded >= completions,
        };
        enough && self.active.is_empty()
    }
}

impl Verdict {
    pub(super) fn new(success: bool, reason: &str, message: impl Into<String>) -> Self {
        Self {
            success,
            reason: reason.to_owned(),
            message: message.into(),
            is_recorded: false,
        }
    }
}

/// How long the Job may still be active; nothing for one without deadline, and while it is suspended.
pub(super) fn time_left(job: &Job, active: SignedDuration) -> Option<SignedDuration> {
    let limit = job.spec.active_deadline_seconds.filter(|_| !job.spec.suspend)?;
    Some(SignedDuration::from_secs(limit).saturating_sub(active))
}

fn count<T>(items: impl IntoIterator<Item = T>) -> i32 {
    i32::try_from(items.into_iter().count()).unwrap_or(i32::MAX)
}

/// Whether containers that are restarted in place (`restartPolicy: OnFailure`) were restarted too often.
fn restarts_exceed(job: &Job, pods: &[Arc<Pod>], limit: i32) -> bool {
    if job.spec.template.value()["spec"]["restartPolicy"] != "OnFailure" {
        return false;
    }
    let running = pods
        .iter()
        .filter(|pod| matches!(pod.status.phase.as_str(), "Running" | "Pending"));
    let restarts: i64 = running
        .flat_map(|pod| {
            pod.status
                .init_container_statuses
                .iter()
                .chain(&pod.status.container_statuses)
        })
        .map(|container| i64::from(container.restart_count))
        .sum();
    // At least one restart, also where none is allowed.
    restarts >= i64::from(limit.max(1))
}

fn fails_its_index(job: &Job, pod: &Pod) -> bool {
    if !pod.has_failed(job) {
        return false;
    }
    let limit = job.spec.backoff_limit_per_index.unwrap_or(i32::MAX);
    match failure_action(job.spec.pod_failure_policy.as_ref(), pod) {
        FailureAction::FailIndex => true,
        FailureAction::Ignore => false,
        _ => pod.index_failures().0 >= limit,
    }
}
