//! What to do next about a Job: a pure function of the Job, its pods and the time.
//!
//! ```text
//!   look ─▶ one step ─▶ look again …      until there is nothing to do but wait
//!
//!   end of a pod:   uid (or index) into status ─▶ finalizer off the pod ─▶ uid out of status, counter up
//!   end of a Job:   FailureTarget or SuccessCriteriaMet ─▶ pods stopped ─▶ all counted ─▶ Failed or Complete
//! ```
//!
//! Every step is decided from what the server has, so that a controller that dies between any two of them goes on where
//! it was: a pod's end is counted once, because its finalizer stays until the status knows of it, and its uid stays in
//! the status until the finalizer is gone.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{
    backoff::{BackoffRecord, holds, index_over_at},
    indexes::Indexes,
    own_pod::TRACKING_FINALIZER,
    policies::{FailureAction, failure_action},
    tally::{Tally, Verdict, time_left},
};
use crate::{
    events::EventType,
    view::{
        Job, Pod,
        job::{JobCondition, JobStatus},
    },
};

/// Pods created or stopped in one step; keeps one Job from starving the others.
const PODS_PER_STEP_MAX: usize = 500;
/// Uids in a status, about 20 kB of them.
const UNCOUNTED_MAX: usize = 500;
/// The value of `spec.managedBy` that means us.
const OUR_NAME: &str = "kubernetes.io/job-controller";

/// Everything a decision is made of.
pub(super) struct World<'a> {
    pub(super) job: &'a Job,
    /// The pods that the Job controls.
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) backoff: &'a BackoffRecord,
    pub(super) now: Timestamp,
    /// How long the Job has been active, by a clock that nobody sets.
    pub(super) active: SignedDuration,
    /// Pods cannot be created now; everything else goes on.
    pub(super) creation_failed: bool,
}

/// One thing to do.
#[derive(Debug)]
pub(super) enum Step {
    /// Create pods.
    Create(Vec<NewPod>),
    /// Delete running pods.
    Stop {
        pods: Vec<Arc<Pod>>,
        /// Whether they count as failed. Those of a suspension or a smaller parallelism do not: they lose their
        /// finalizer first.
        counted: bool,
    },
    /// Write the status, and say what that means.
    Write { status: Box<JobStatus>, news: Vec<News> },
    /// Take the finalizer off pods: what they came to is written down.
    Release(Vec<Arc<Pod>>),
}

/// A pod to be created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NewPod {
    /// For Indexed Jobs.
    pub(super) index: Option<u32>,
    /// How often the index failed before: counted and ignored. For Jobs that limit it.
    pub(super) index_failures: Option<(i32, i32)>,
}

/// An event to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct News {
    pub(super) kind: EventType,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The next step, or when to look again without one.
#[derive(Debug, Default)]
pub(super) struct Decision {
    pub(super) step: Option<Step>,
    pub(super) again_at: Option<Timestamp>,
}

impl From<Step> for Decision {
    fn from(step: Step) -> Self {
        Self {
            step: Some(step),
            again_at: None,
        }
    }
}

/// The same world always leads to the same step.
pub(super) fn decide(world: &World<'_>) -> Decision {
    let job = world.job;
    if job
        .spec
        .managed_by
        .as_deref()
        .is_some_and(|manager| manager != OUR_NAME)
    {
        return Decision::default();
    }
    if job.is_finished() {
        let left: Vec<_> = world
            .pods
            .iter()
            .filter(|pod| pod.is_tracked())
            .cloned()
            .collect();
        let step = (!left.is_empty()).then_some(Step::Release(left));
        return Decision { step, again_at: None };
    }
    let tally = Tally::of(job, world.pods);
    match tally.verdict(job, world.pods, world.active) {
        Some(verdict) => conclude(world, &tally, verdict),
        None => go_on(world, &tally),
    }
}

/// The Job ends: that is written down first, then its pods are stopped and counted.
fn conclude(world: &World<'_>, tally: &Tally, verdict: Verdict) -> Decision {
    if verdict.is_recorded && !tally.active.is_empty() {
        let pods = tally.active.iter().take(PODS_PER_STEP_MAX).cloned().collect();
        return Step::Stop { pods, counted: true }.into();
    }
    let step = track(world, tally, Some(&verdict), false);
    Decision { step, again_at: None }
}

/// The Job does not end yet: it has as many pods as it should, and their ends are counted.
fn go_on(world: &World<'_>, tally: &Tally) -> Decision {
    let mut managed = match world.job.metadata.is_deleting() {
        true => Decision::default(),
        false => manage(world, tally),
    };
    if managed.step.is_some() {
        return managed;
    }
    if tally.is_complete(world.job) {
        let message = "Reached expected number of succeeded pods";
        return conclude(world, tally, Verdict::new(true, "CompletionsReached", message));
    }
    managed.step = track(world, tally, None, !world.job.metadata.is_deleting());
    let deadline = time_left(world.job, world.active).and_then(|left| world.now.checked_add(left).ok());
    managed.again_at = earliest(managed.again_at, deadline);
    managed
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// Brings the number of running pods to what it should be.
///
/// Source: `manageJob` in `pkg/controller/job/job_controller.go`, Kubernetes 1.36.
fn manage(world: &World<'_>, tally: &Tally) -> Decision {
    let (spec, active) = (&world.job.spec, tally.active.len());
    let size = |number: i32| usize::try_from(number).unwrap_or(0);
    let parallelism = size(spec.parallelism.unwrap_or(1));
    let wanted = match spec.completions {
        _ if spec.suspend => 0,
        // Once one has succeeded, those that run may end and none is added.
        None if tally.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => size(completions.saturating_sub(tally.succeeded)).min(parallelism),
    };
    let surplus = surplus(world.job, &tally.active, active.saturating_sub(wanted));
    if !surplus.is_empty() {
        return Step::Stop {
            pods: surplus,
            counted: false,
        }
        .into();
    }
    let leaving = match spec.replaces_only_failed() {
        true => size(tally.terminating),
        false => 0,
    };
    let missing = wanted.saturating_sub(active + leaving).min(PODS_PER_STEP_MAX);
    if missing == 0 {
        return Decision::default();
    }
    let (new, again_at) = new_pods(world, tally, missing);
    let step = (!new.is_empty() && !world.creation_failed).then_some(Step::Create(new));
    Decision { step, again_at }
}

/// The pods to create now, and when more may be created.
fn new_pods(world: &World<'_>, tally: &Tally, missing: usize) -> (Vec<NewPod>, Option<Timestamp>) {
    let spec = &world.job.spec;
    if !spec.has_limit_per_index() {
        return match world.backoff.over_at() {
            Some(over_at) if holds(over_at, world.now) => (Vec::new(), Some(over_at)),
            _ if spec.is_indexed() => {
                let indexes = pending_indexes(world, tally, missing);
                let new = indexes.into_iter().map(|index| NewPod {
                    index: Some(index),
                    index_failures: None,
                });
                (new.collect(), None)
            }
            _ => (vec![NewPod::default(); missing], None),
        };
    }
    let (mut new, mut again_at) = (Vec::new(), None);
    for index in pending_indexes(world, tally, missing) {
        let before = tally.awaits_successor.get(&index);
        match before.and_then(|failed| index_over_at(failed)) {
            Some(over_at) if holds(over_at, world.now) => again_at = earliest(again_at, Some(over_at)),
            _ => new.push(NewPod {
                index: Some(index),
                index_failures: Some(before.map_or((0, 0), |failed| failed.index_failures_after(world.job))),
            }),
        }
    }
    (new, again_at)
}

/// The first indexes that are neither done nor failed nor in work.
fn pending_indexes(world: &World<'_>, tally: &Tally, count: usize) -> Vec<u32> {
    let only_failed = world.job.spec.replaces_only_failed();
    let in_work: Indexes = world
        .pods
        .iter()
        .filter(|pod| pod.is_active() || (only_failed && pod.is_terminating()))
        .filter_map(|pod| pod.completion_index())
        .collect();
    let mut taken = tally.succeeded_indexes.union(&in_work);
    if let Some(failed) = &tally.failed_indexes {
        taken = taken.union(failed);
    }
    taken.missing(count, world.job.spec.index_count())
}

/// At least `count` pods that are too many: those without index or with one that another has, then those that have
/// come least far.
fn surplus(job: &Job, active: &[Arc<Pod>], count: usize) -> Vec<Arc<Pod>> {
    let mut ranked = active.to_vec();
    ranked.sort_by_cached_key(|pod| rank(pod));
    let (mut remove, mut keep) = (Vec::new(), Vec::new());
    let mut indexes = BTreeSet::new();
    // From the one that is kept longest: of pods with the same index it is the one that stays.
    for pod in ranked.into_iter().rev() {
        let mut keeps_its_index = || pod.valid_index(job).is_some_and(|index| indexes.insert(index));
        match !job.spec.is_indexed() || keeps_its_index() {
            true => keep.push(pod),
            false => remove.push(pod),
        }
    }
    let more = count.saturating_sub(remove.len());
    remove.extend(keep.into_iter().rev().take(more));
    remove.truncate(PODS_PER_STEP_MAX);
    remove
}

/// Who goes first: without node, then pending, not ready, ready for a shorter time, restarted more often, younger.
///
/// Source: `ActivePods` in `pkg/controller/controller_utils.go`, Kubernetes 1.36.
fn rank(pod: &Pod) -> impl Ord + use<> {
    let phase = match pod.status.phase.as_str() {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    };
    let restarts = pod
        .status
        .container_statuses
        .iter()
        .map(|container| container.restart_count);
    (
        !pod.spec.node_name.is_empty(),
        phase,
        pod.is_ready(),
        pod.ready_since().is_some(),
        Reverse(pod.ready_since()),
        Reverse(restarts.max()),
        Reverse(pod.metadata.creation_timestamp),
        pod.metadata.name.clone(),
    )
}

/// Writes down what pods came to, and lets them go.
///
/// Source: `trackJobStatusAndRemoveFinalizers` in `pkg/controller/job/job_controller.go`, Kubernetes 1.36.
fn track(world: &World<'_>, tally: &Tally, verdict: Option<&Verdict>, is_managed: bool) -> Option<Step> {
    let (job, now) = (world.job, world.now);
    let mut status = Box::new(job.status.clone());
    let mut news = Vec::new();
    status.active = i32::try_from(tally.active.len()).unwrap_or(i32::MAX);
    status.ready = Some(tally.ready);
    status.terminating = Some(tally.terminating);
    if status.start_time.is_none() && !job.spec.suspend {
        status.start_time = Some(now);
    }
    if is_managed {
        note_suspension(job.spec.suspend, &mut status, &mut news, now);
    }
    count_released(&mut status, world.pods);
    // Only what is recorded is acted upon.
    let acted = verdict.filter(|verdict| verdict.is_recorded);
    let released = note_ends(world, tally, acted, &mut status);
    if job.spec.is_indexed() {
        status.completed_indexes = tally.succeeded_indexes.to_string();
        status.succeeded = i32::try_from(tally.succeeded_indexes.total()).unwrap_or(i32::MAX);
        status.failed_indexes = tally.failed_indexes.as_ref().map(Indexes::to_string);
    }
    match verdict {
        Some(verdict) if !verdict.is_recorded => status.conditions.push(condition(
            if verdict.success {
                "SuccessCriteriaMet"
            } else {
                "FailureTarget"
            },
            &verdict.reason,
            &verdict.message,
            now,
        )),
        Some(verdict)
            if released.is_empty()
                && status.uncounted_terminated_pods.is_empty()
                && tally.terminating == 0 =>
        {
            finish(job, verdict, &mut status, &mut news, now);
        }
        _ => {}
    }
    if *status != job.status {
        return Some(Step::Write { status, news });
    }
    (!released.is_empty()).then_some(Step::Release(released))
}

/// Uids whose pods have no finalizer any more become part of the counters.
fn count_released(status: &mut JobStatus, pods: &[Arc<Pod>]) {
    let tracked: BTreeSet<&str> = pods
        .iter()
        .filter(|pod| pod.is_tracked())
        .map(|pod| pod.metadata.uid.as_str())
        .collect();
    let settle = |uids: &mut Vec<String>| {
        let before = uids.len();
        uids.retain(|uid| tracked.contains(uid.as_str()));
        i32::try_from(before - uids.len()).unwrap_or(i32::MAX)
    };
    status.succeeded += settle(&mut status.uncounted_terminated_pods.succeeded);
    status.failed += settle(&mut status.uncounted_terminated_pods.failed);
}

/// Notes the ends of pods in the status, and answers with those that may go once that is written.
fn note_ends(
    world: &World<'_>,
    tally: &Tally,
    verdict: Option<&Verdict>,
    status: &mut JobStatus,
) -> Vec<Arc<Pod>> {
    let job = world.job;
    let known = Indexes::parse(&job.status.completed_indexes, job.spec.index_count());
    let mut pods: Vec<&Arc<Pod>> = world.pods.iter().filter(|pod| pod.is_tracked()).collect();
    pods.sort_by_key(|pod| pod.completion_index());
    let (mut released, mut new_indexes) = (Vec::new(), 0);
    for pod in pods {
        let has_failed = pod.has_failed(job);
        let awaits_successor = || {
            let waiting = pod
                .completion_index()
                .and_then(|index| tally.awaits_successor.get(&index));
            waiting.is_some_and(|waiting| waiting.metadata.uid == pod.metadata.uid)
        };
        let may_go = job.metadata.is_deleting()
            || verdict.is_some()
            || pod.has_succeeded()
            || (has_failed && !awaits_successor());
        if !may_go {
            continue;
        }
        released.push(pod.clone());
        let uncounted = &mut status.uncounted_terminated_pods;
        let uid = &pod.metadata.uid;
        let index = pod.valid_index(job);
        if pod.has_succeeded() && !uncounted.failed.contains(uid) {
            // The index tells that it was counted; otherwise its uid does.
            match job.spec.is_indexed() {
                true => new_indexes += usize::from(index.is_some_and(|index| !known.contains(index))),
                false if !uncounted.succeeded.contains(uid) => uncounted.succeeded.push(uid.clone()),
                false => {}
            }
        } else if (has_failed || verdict.is_some_and(|verdict| !verdict.success))
            && !uncounted.failed.contains(uid)
            && (!job.spec.is_indexed() || index.is_some())
            && failure_action(job.spec.pod_failure_policy.as_ref(), pod) != FailureAction::Ignore
        {
            uncounted.failed.push(uid.clone());
        }
        if new_indexes + uncounted.succeeded.len() + uncounted.failed.len() >= UNCOUNTED_MAX {
            break;
        }
    }
    released
}

fn note_suspension(suspend: bool, status: &mut JobStatus, news: &mut Vec<News>, now: Timestamp) {
    let (value, reason, message, event) = match suspend {
        true => ("True", "JobSuspended", "Job suspended", "Suspended"),
        false => ("False", "JobResumed", "Job resumed", "Resumed"),
    };
    let noted = JobCondition {
        status: value.to_owned(),
        ..condition("Suspended", reason, message, now)
    };
    match status
        .conditions
        .iter_mut()
        .find(|condition| condition.kind == "Suspended")
    {
        Some(known) if (&known.status, &known.reason) == (&noted.status, &noted.reason) => return,
        Some(known) => *known = noted,
        None if suspend => status.conditions.push(noted),
        // From nothing to "not suspended" is no news.
        None => return,
    }
    // The deadline counts from when it was resumed.
    status.start_time = (!suspend).then_some(now);
    news.push(News {
        kind: EventType::Normal,
        reason: event,
        message: message.to_owned(),
    });
}

/// The last write: nothing of the Job is left to run or to count.
fn finish(job: &Job, verdict: &Verdict, status: &mut JobStatus, news: &mut Vec<News>, now: Timestamp) {
    let kind = if verdict.success { "Complete" } else { "Failed" };
    status
        .conditions
        .push(condition(kind, &verdict.reason, &verdict.message, now));
    if !verdict.success {
        news.push(News {
            kind: EventType::Warning,
            reason: failure_reason(&verdict.reason),
            message: verdict.message.clone(),
        });
        return;
    }
    status.completion_time = Some(now);
    if job
        .spec
        .completions
        .is_some_and(|completions| status.succeeded > completions)
    {
        news.push(News {
            kind: EventType::Warning,
            reason: "TooManySucceededPods",
            message: "Too many succeeded pods running after completion count reached".to_owned(),
        });
    }
    news.push(News {
        kind: EventType::Normal,
        reason: "Completed",
        message: "Job completed".to_owned(),
    });
}

/// Reasons of events are words of ours; a verdict read back from a status has one of them.
fn failure_reason(reason: &str) -> &'static str {
    const KNOWN: [&str; 5] = [
        "PodFailurePolicy",
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "MaxFailedIndexesExceeded",
        "FailedIndexes",
    ];
    let known = KNOWN.into_iter().find(|known| *known == reason);
    known.unwrap_or("Failed")
}

/// A condition that is true from now on.
fn condition(kind: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        kind: kind.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_probe_time: Some(now),
        last_transition_time: Some(now),
    }
}

/// Whether a pod's finalizer is left over: no Job will ever count it.
pub(super) fn is_left_over(pod: &Pod, owner: Option<&Job>) -> bool {
    let by_others = |job: &Job| {
        job.spec
            .managed_by
            .as_deref()
            .is_some_and(|manager| manager != OUR_NAME)
    };
    let of_a_job = pod
        .metadata
        .controller()
        .is_none_or(|controller| controller.kind == "Job" && controller.api_version == "batch/v1");
    of_a_job
        && pod
            .metadata
            .finalizers
            .iter()
            .any(|finalizer| finalizer == TRACKING_FINALIZER)
        && owner.is_none_or(|job| job.is_finished() && !by_others(job))
}
