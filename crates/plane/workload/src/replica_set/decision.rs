//! What a ReplicaSet needs, and what is said about it: pure functions of the set and its pods.
//!
//! Source: `manageReplicas` and `calculateStatus` in `pkg/controller/replicaset`, Kubernetes 1.36.

use std::sync::Arc;

use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ranking::pods_to_delete;
use crate::view::{Condition, Pod, ReplicaSet, replica_set::ReplicaSetStatus};

/// Pods that one look creates or deletes at most.
const BURST_PODS_MAX: usize = 500;
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The pods of a ReplicaSet.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// Those that count.
    pub(crate) active: Vec<Arc<Pod>>,
    /// How many are on their way out.
    pub(crate) terminating: usize,
}

impl Members {
    /// Sorts the pods that a ReplicaSet controls and selects.
    pub(crate) fn of(pods: impl IntoIterator<Item = Arc<Pod>>) -> Self {
        let mut members = Self::default();
        for pod in pods {
            if pod.is_active() {
                members.active.push(pod);
            } else if !pod.is_finished() {
                members.terminating += 1;
            }
        }
        members
    }
}

/// How the number of pods is to change.
#[derive(Debug)]
pub(crate) enum Scale {
    Enough,
    Create(usize),
    Delete(Vec<Arc<Pod>>),
}

/// Decides on pods. A set that is being deleted is left to its end.
pub(crate) fn scale(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    related: impl FnOnce() -> Vec<Arc<Pod>>,
    now: Timestamp,
) -> Scale {
    if set.metadata.is_deleting() {
        return Scale::Enough;
    }
    let wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
    match active.len() {
        held if held < wanted => Scale::Create((wanted - held).min(BURST_PODS_MAX)),
        held if held > wanted => {
            let count = (held - wanted).min(BURST_PODS_MAX);
            Scale::Delete(pods_to_delete(active, &related(), count, now))
        }
        _ => Scale::Enough,
    }
}

/// What went wrong with the pods, as the status tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `FailedCreate` or `FailedDelete`.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The status that is true now.
pub(crate) fn status(
    set: &ReplicaSet,
    members: &Members,
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let count = |holds: &dyn Fn(&Pod) -> bool| {
        let pods = members.active.iter().filter(|pod| holds(pod)).count();
        i32::try_from(pods).unwrap_or(i32::MAX)
    };
    let is_fully_labeled = |pod: &Pod| {
        let mut labels = set.spec.template.labels();
        labels.all(|(key, value)| pod.metadata.label(key) == Some(value))
    };
    let mut conditions = set.status.conditions.clone();
    let told = conditions
        .iter()
        .any(|condition| condition.kind == REPLICA_FAILURE);
    match failure {
        Some(failure) if !told => conditions.push(Condition {
            kind: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: failure.reason.to_owned(),
            message: failure.message.clone(),
            last_transition_time: Some(now),
        }),
        Some(_) => {}
        None => conditions.retain(|condition| condition.kind != REPLICA_FAILURE),
    }
    ReplicaSetStatus {
        observed_generation: set.metadata.generation,
        replicas: count(&|_| true),
        fully_labeled_replicas: count(&is_fully_labeled),
        ready_replicas: count(&Pod::is_ready),
        available_replicas: count(&|pod| pod.is_available(set.spec.min_ready_seconds, now)),
        terminating_replicas: Some(i32::try_from(members.terminating).unwrap_or(i32::MAX)),
        conditions,
    }
}

/// The merge patch that makes this the status. Counts of zero are absent, as upstream writes them, but for `replicas` and
/// `terminatingReplicas`.
pub(crate) fn status_patch(status: &ReplicaSetStatus) -> Value {
    let count = |count: i32| (count != 0).then_some(count);
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| {
            json!({
                "type": condition.kind,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": condition.last_transition_time.map(timestamp::seconds),
            })
        })
        .collect();
    json!({"status": {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "fullyLabeledReplicas": count(status.fully_labeled_replicas),
        "readyReplicas": count(status.ready_replicas),
        "availableReplicas": count(status.available_replicas),
        "terminatingReplicas": status.terminating_replicas,
        "conditions": (!conditions.is_empty()).then_some(conditions),
    }})
}

/// When the next ready pod becomes available; nothing if none waits for that.
pub(crate) fn next_availability(set: &ReplicaSet, active: &[Arc<Pod>], now: Timestamp) -> Option<Timestamp> {
    let seconds = set.spec.min_ready_seconds;
    let times = active.iter().filter_map(|pod| pod.available_at(seconds));
    times.filter(|at| *at > now).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(spec: Value, status: Value) -> ReplicaSet {
        let set = json!({"metadata": {"name": "web-1", "generation": 3}, "spec": spec, "status": status});
        serde_json::from_value(set).expect("a ReplicaSet")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn pod(name: &str, phase: &str, ready_since: Option<i64>, deleting: bool, labels: Value) -> Arc<Pod> {
        let conditions = ready_since.map(|second| {
            json!([{"type": "Ready", "status": "True", "lastTransitionTime": timestamp::seconds(at(second))}])
        });
        let pod = json!({
            "metadata": {"name": name, "labels": labels, "deletionTimestamp": deleting.then_some("2026-01-01T00:00:00Z")},
            "status": {"phase": phase, "conditions": conditions},
        });
        Arc::new(serde_json::from_value(pod).expect("a pod"))
    }

    fn members() -> Members {
        let full = json!({"app": "web", "tier": "a"});
        Members::of([
            pod("old", "Running", Some(10), false, full.clone()),
            pod("young", "Running", Some(95), false, full.clone()),
            pod("starting", "Pending", None, false, json!({"app": "web"})),
            pod("leaving", "Running", Some(10), true, full.clone()),
            pod("left", "Failed", None, true, full.clone()),
            pod("done", "Succeeded", None, false, full),
        ])
    }

    #[test]
    fn pods_are_counted_as_upstream_counts_them() {
        let set = set(
            json!({"replicas": 3, "minReadySeconds": 10, "template": {"metadata": {"labels": {"app": "web", "tier": "a"}}}}),
            json!({}),
        );
        let status = status(&set, &members(), None, at(100));
        let expected = ReplicaSetStatus {
            observed_generation: 3,
            replicas: 3,
            fully_labeled_replicas: 2,
            ready_replicas: 2,
            available_replicas: 1,
            terminating_replicas: Some(1),
            conditions: Vec::new(),
        };
        assert_eq!(status, expected);
        let patch = status_patch(&status);
        assert_eq!(patch["status"]["conditions"], Value::Null);
        let empty = status_patch(&ReplicaSetStatus {
            terminating_replicas: Some(0),
            ..ReplicaSetStatus::default()
        });
        assert_eq!(
            (&empty["status"]["replicas"], &empty["status"]["readyReplicas"]),
            (&json!(0), &Value::Null)
        );
        assert_eq!(empty["status"]["terminatingReplicas"], 0);
    }

    #[test]
    fn the_next_look_is_when_the_next_pod_becomes_available() {
        let active = members().active;
        for (seconds, expected) in [(0, None), (10, Some(105)), (100, Some(110)), (5, None)] {
            let set = set(
                json!({"replicas": 3, "minReadySeconds": seconds, "template": {}}),
                json!({}),
            );
            assert_eq!(
                next_availability(&set, &active, at(100)),
                expected.map(at),
                "{seconds}"
            );
        }
    }

    #[test]
    fn pods_come_and_go_until_there_are_as_many_as_wanted() {
        let active = members().active;
        for (replicas, expected) in [(0, "-3"), (2, "-1"), (3, "0"), (5, "+2"), (2000, "+500")] {
            let set = set(json!({"replicas": replicas, "template": {}}), json!({}));
            let found = match scale(&set, &active, Vec::new, at(100)) {
                Scale::Enough => "0".to_owned(),
                Scale::Create(count) => format!("+{count}"),
                Scale::Delete(pods) => format!("-{}", pods.len()),
            };
            assert_eq!(found, expected, "{replicas}");
        }
        let mut dying = set(json!({"replicas": 0, "template": {}}), json!({}));
        dying.metadata.deletion_timestamp = Some(at(1));
        assert!(matches!(scale(&dying, &active, Vec::new, at(100)), Scale::Enough));
    }

    #[test]
    fn a_failure_is_told_once_and_until_it_is_over() {
        let failure = |text: &str| Failure {
            reason: "FailedCreate",
            message: text.to_owned(),
        };
        let fresh = set(json!({"replicas": 3, "template": {}}), json!({}));
        let told = status(&fresh, &members(), Some(&failure("first")), at(100));
        assert_eq!(told.conditions[0].message, "first");
        let held = set(
            json!({"replicas": 3, "template": {}}),
            json!({"conditions": status_patch(&told)["status"]["conditions"]}),
        );
        let again = status(&held, &members(), Some(&failure("second")), at(200));
        assert_eq!(again.conditions, told.conditions);
        assert_eq!(status(&held, &members(), None, at(300)).conditions, []);
    }
}
