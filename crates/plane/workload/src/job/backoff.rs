//! How long a Job waits before it replaces a failed pod: 10 s, 20 s, 40 s … 10 min, counted from the last failure; a
//! success ends it.
//!
//! Source: `pkg/controller/job/backoff_utils.go`, Kubernetes 1.36.

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use crate::{
    context::CLOCKS_APART_MAX,
    view::{Job, Pod},
};

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);

/// The failures since the last success. It lives in memory as upstream's does; unlike that it is rebuilt from the pods
/// that are still there when the controller starts anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BackoffRecord {
    failures: u32,
    last_failure: Option<Timestamp>,
    /// Uids of pods that are in the record already.
    seen: BTreeSet<String>,
}

impl BackoffRecord {
    /// Takes note of pods that have ended since the last look.
    pub(super) fn observe(&mut self, job: &Job, pods: &[Arc<Pod>]) {
        let ended = |pod: &&Arc<Pod>| {
            let ended = pod.is_finished() || pod.has_failed(job);
            // Taken out by a smaller parallelism or a suspension: no failure.
            let was_stopped = !pod.is_tracked() && pod.metadata.is_deleting();
            ended && !was_stopped && (!job.spec.is_indexed() || pod.valid_index(job).is_some())
        };
        let new: Vec<&Arc<Pod>> = pods
            .iter()
            .filter(ended)
            .filter(|pod| !self.seen.contains(&pod.metadata.uid))
            .collect();
        let times = |failed: bool| {
            let pods = new.iter().filter(move |pod| pod.has_failed(job) == failed);
            pods.map(|pod| pod.finished_at())
        };
        if let Some(last_success) = times(false).max() {
            let later = |time: &Timestamp| *time > last_success;
            self.failures = u32::try_from(times(true).filter(later).count()).unwrap_or(u32::MAX);
            self.last_failure = times(true).filter(later).max();
        } else if let Some(last_failure) = times(true).max() {
            let failures = u32::try_from(times(true).count()).unwrap_or(u32::MAX);
            self.failures = self.failures.saturating_add(failures);
            self.last_failure = Some(last_failure);
        }
        self.seen.extend(new.iter().map(|pod| pod.metadata.uid.clone()));
        let here: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.uid.as_str()).collect();
        self.seen.retain(|uid| here.contains(uid.as_str()));
    }

    /// When the next pod may be created; nothing while none has failed.
    pub(super) fn over_at(&self) -> Option<Timestamp> {
        over_at(self.failures, self.last_failure?)
    }
}

/// When the pod that replaces `failed` in its index may be created.
pub(super) fn index_over_at(failed: &Pod) -> Option<Timestamp> {
    let (counted, ignored) = failed.index_failures();
    let failures = u32::try_from(counted.saturating_add(ignored)).unwrap_or_default();
    over_at(failures.saturating_add(1), failed.finished_at())
}

/// Whether a pause that is over then holds new pods back. One that is longer than any pause began before the clock was set
/// back, and is over.
pub(super) fn holds(over_at: Timestamp, now: Timestamp) -> bool {
    let left = over_at.duration_since(now);
    left > SignedDuration::ZERO && left <= LONGEST + CLOCKS_APART_MAX
}

fn over_at(failures: u32, last_failure: Timestamp) -> Option<Timestamp> {
    let doublings = failures.checked_sub(1)?.min(16);
    let pause = (FIRST * (1 << doublings)).min(LONGEST);
    last_failure.checked_add(pause).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).expect("in range")
    }

    fn pod(name: &str, phase: &str, seconds: i64) -> Arc<Pod> {
        let terminated = json!({"exitCode": 1, "finishedAt": at(seconds).to_string()});
        let pod = json!({"metadata": {"uid": name, "name": name, "finalizers": [super::super::own_pod::TRACKING_FINALIZER]},
            "status": {"phase": phase, "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]}});
        Arc::new(from_value(pod).expect("a pod"))
    }

    #[test]
    fn no_pause_outlasts_a_clock_that_was_set_back() {
        for (left, is_held) in [
            (-1, false),
            (0, false),
            (1, true),
            (660, true),
            (661, false),
            (86_400, false),
        ] {
            assert_eq!(holds(at(left), at(0)), is_held, "{left}");
        }
    }

    #[test]
    fn pauses_double_up_to_ten_minutes_and_end_with_a_success() {
        let job = Job::default();
        let mut record = BackoffRecord::default();
        let mut pods = Vec::new();
        for (name, phase, ended, pause) in [
            ("a", "Failed", 0, Some(10)),
            ("b", "Failed", 20, Some(20)),
            ("c", "Failed", 60, Some(40)),
            ("d", "Failed", 61, Some(80)),
            ("e", "Failed", 62, Some(160)),
            ("f", "Failed", 63, Some(320)),
            ("g", "Failed", 64, Some(600)),
            ("h", "Failed", 65, Some(600)),
            ("i", "Running", 0, Some(600)),
            ("j", "Succeeded", 70, None),
            ("k", "Failed", 80, Some(10)),
        ] {
            pods.push(pod(name, phase, ended));
            record.observe(&job, &pods);
            // Looking twice changes nothing.
            record.observe(&job, &pods);
            let last = pods
                .iter()
                .filter(|pod| pod.status.phase == "Failed")
                .map(|pod| pod.finished_at())
                .max();
            let expected = pause.and_then(|pause| last?.checked_add(SignedDuration::from_secs(pause)).ok());
            assert_eq!(record.over_at(), expected, "{name}");
        }
        // A controller that starts anew knows as much.
        let mut rebuilt = BackoffRecord::default();
        rebuilt.observe(&job, &pods);
        assert_eq!(rebuilt.over_at(), record.over_at());
        // Failures of pods that are gone still count.
        record.observe(&job, &[]);
        assert_eq!(record.over_at(), Some(at(90)));
        assert!(record.seen.is_empty());
    }

    #[test]
    fn only_failures_after_the_last_success_count_in_one_look() {
        let mut record = BackoffRecord::default();
        let pods = [
            pod("a", "Failed", 5),
            pod("b", "Succeeded", 7),
            pod("c", "Failed", 9),
            pod("d", "Failed", 8),
        ];
        record.observe(&Job::default(), &pods);
        assert_eq!((record.failures, record.over_at()), (2, Some(at(29))));
    }

    #[test]
    fn the_end_of_a_pod_is_its_last_container_or_the_next_best() {
        let ended = |seconds: i64| json!({"state": {"terminated": {"exitCode": 0, "finishedAt": at(seconds).to_string()}}});
        let named = |name: &str, mut status: Value| {
            status["name"] = name.into();
            status
        };
        for (what, pod, expected) in [
            (
                "the last container",
                json!({"status": {"containerStatuses": [ended(1), ended(3), ended(2)]}}),
                3,
            ),
            (
                "a sidecar ends later",
                json!({"spec": {"initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]},
                "status": {"containerStatuses": [ended(1)], "initContainerStatuses": [named("s", ended(5)), named("i", ended(9))]}}),
                5,
            ),
            (
                "one runs still",
                json!({"metadata": {"creationTimestamp": at(1)}, "status": {"containerStatuses": [ended(3), {"name": "x"}]}}),
                1,
            ),
            (
                "unready",
                json!({"metadata": {"creationTimestamp": at(1)}, "status": {"conditions":
                [{"type": "Ready", "status": "False", "lastTransitionTime": at(7)}]}}),
                7,
            ),
            (
                "deleted",
                json!({"metadata": {"creationTimestamp": at(1), "deletionTimestamp": at(40), "deletionGracePeriodSeconds": 30}}),
                10,
            ),
            (
                "nothing known",
                json!({"metadata": {"creationTimestamp": at(1)}}),
                1,
            ),
        ] {
            let pod: Pod = from_value(pod).expect("a pod");
            assert_eq!(pod.finished_at(), at(expected), "{what}");
        }
    }
}
