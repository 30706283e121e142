//! The pods of a StatefulSet as it sees them, and as it makes them.
//!
//! Source: `pkg/controller/statefulset/stateful_set_utils.go`, Kubernetes 1.36.

use jiff::Timestamp;
use serde_json::Value;

use super::decision::{Desired, Member, Order, Progress, Update};
use crate::{
    pod_template::pod_from,
    view::{Pod, StatefulSet},
};

/// On pods: the name of their revision.
const REVISION_LABEL: &str = "controller-revision-hash";
/// On pods: their own name, so that a Service can select one of them.
const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// On pods: their ordinal.
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// The name of the pod with this ordinal.
pub(super) fn name(set: &str, ordinal: i64) -> String {
    format!("{set}-{ordinal}")
}

/// The ordinal that a pod of this name has in the set; nothing if it is no name of the set's.
///
/// Upstream also takes `web-01` for a pod with ordinal 1, and then has two of them.
pub(super) fn ordinal_of(set: &str, pod: &str) -> Option<i64> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: u32 = digits.parse().ok()?;
    (ordinal.to_string() == digits).then_some(ordinal.into())
}

/// A pod and what decisions know of it.
#[derive(Debug, Clone)]
pub(super) struct Replica<'a> {
    pub(super) pod: &'a Pod,
    pub(super) member: Member<'a>,
    /// When it becomes available if it stays as it is; nothing if it is, or is not ready.
    pub(super) available_at: Option<Timestamp>,
}

impl<'a> Replica<'a> {
    /// Nothing for a pod whose name is none of the set's.
    pub(super) fn of(set: &StatefulSet, pod: &'a Pod, now: Timestamp) -> Option<Self> {
        let min_ready_seconds = set.spec.min_ready_seconds;
        let progress = if pod.is_finished() {
            Progress::Finished
        } else if pod.status.phase != "Running" || !pod.is_ready() {
            Progress::Waiting
        } else if pod.is_available(min_ready_seconds, now) {
            Progress::Available
        } else {
            Progress::Ready
        };
        let member = Member {
            ordinal: ordinal_of(&set.metadata.name, &pod.metadata.name)?,
            revision: pod.metadata.label(REVISION_LABEL).unwrap_or_default(),
            progress,
            is_terminating: pod.metadata.is_deleting(),
            is_labelled: pod.metadata.label(POD_NAME_LABEL) == Some(&pod.metadata.name),
        };
        let is_close = progress == Progress::Ready;
        let available_at = is_close.then(|| pod.available_at(min_ready_seconds)).flatten();
        Some(Self {
            pod,
            member,
            available_at,
        })
    }
}

/// What the set asks for.
pub(super) fn desired<'a>(set: &StatefulSet, current: &'a str, update: &'a str) -> Desired<'a> {
    let spec = &set.spec;
    Desired {
        replicas: spec.replicas.into(),
        start: spec.ordinals.start.into(),
        order: match spec.pod_management_policy.as_str() {
            "Parallel" => Order::Parallel,
            _ => Order::OrderedReady,
        },
        update: match spec.update_strategy.kind.as_str() {
            "OnDelete" => Update::OnDelete,
            _ => Update::Rolling {
                partition: spec.update_strategy.rolling_update.partition.into(),
            },
        },
        is_deleting: set.metadata.is_deleting(),
        current_revision: current,
        update_revision: update,
    }
}

/// The labels that say which pod it is.
pub(super) fn identity_labels(pod: &str, ordinal: i64) -> impl Iterator<Item = (String, Value)> {
    let labels = [
        (POD_NAME_LABEL, pod.to_owned()),
        (POD_INDEX_LABEL, ordinal.to_string()),
    ];
    labels
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
}

/// The pod with this ordinal, as its revision's template has it.
pub(super) fn new_pod(set: &StatefulSet, template: &Value, ordinal: i64, revision: &str) -> Value {
    let mut pod = pod_from(template, set);
    let name = name(&set.metadata.name, ordinal);
    for (key, value) in identity_labels(&name, ordinal) {
        pod["metadata"]["labels"][key] = value;
    }
    pod["metadata"]["labels"][REVISION_LABEL] = revision.into();
    pod["spec"]["hostname"] = name.as_str().into();
    if !set.spec.service_name.is_empty() {
        pod["spec"]["subdomain"] = set.spec.service_name.as_str().into();
    }
    pod["metadata"]["name"] = name.into();
    pod
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_has_at_most_one_ordinal() {
        for (set, pod, ordinal) in [
            ("web", "web-0", Some(0)),
            ("web", "web-12", Some(12)),
            ("web", "web-4294967295", Some(4_294_967_295)),
            ("web", "web-4294967296", None),
            ("web", "web-01", None),
            ("web", "web-+1", None),
            ("web", "web-", None),
            ("web", "web", None),
            ("web", "web-a", None),
            ("web", "webs-1", None),
            ("web", "web-1-1", None),
            ("web-1", "web-1-1", Some(1)),
        ] {
            assert_eq!(ordinal_of(set, pod), ordinal, "{pod} of {set}");
        }
    }

    fn set(spec: Value) -> StatefulSet {
        let metadata = json!({"name": "web", "namespace": "shop", "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a set")
    }

    #[test]
    fn a_pod_knows_its_name_its_ordinal_and_its_revision() {
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}});
        let pod = new_pod(&set(json!({"serviceName": "nginx"})), &template, 2, "web-5d9c");
        assert_eq!(pod["metadata"]["name"], "web-2");
        assert_eq!(
            pod["metadata"]["labels"],
            json!({
                "app": "web",
                "controller-revision-hash": "web-5d9c",
                "statefulset.kubernetes.io/pod-name": "web-2",
                "apps.kubernetes.io/pod-index": "2",
            })
        );
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(
            pod["spec"],
            json!({"containers": [], "hostname": "web-2", "subdomain": "nginx"})
        );
        let pod = new_pod(&set(json!({})), &template, 2, "web-5d9c");
        assert_eq!(pod["spec"].get("subdomain"), None);
    }

    #[test]
    fn a_pod_is_seen_as_it_is() {
        let ready = |at: &str| json!([{"type": "Ready", "status": "True", "lastTransitionTime": at}]);
        let (early, late) = (ready("2026-01-02T15:04:00Z"), ready("2026-01-02T15:04:04Z"));
        let now = "2026-01-02T15:04:05Z".parse().expect("a time");
        for (status, progress, seconds) in [
            (json!({"phase": "Pending"}), Progress::Waiting, None),
            (json!({"phase": "Running"}), Progress::Waiting, None),
            (
                json!({"phase": "Pending", "conditions": early}),
                Progress::Waiting,
                None,
            ),
            (
                json!({"phase": "Running", "conditions": early}),
                Progress::Available,
                None,
            ),
            (
                json!({"phase": "Running", "conditions": late}),
                Progress::Ready,
                Some(4),
            ),
            (
                json!({"phase": "Failed", "conditions": early}),
                Progress::Finished,
                None,
            ),
            (json!({"phase": "Succeeded"}), Progress::Finished, None),
        ] {
            let pod = json!({"metadata": {"name": "web-3", "labels": {"controller-revision-hash": "r"}}, "status": status});
            let pod = serde_json::from_value(pod).expect("a pod");
            let replica = Replica::of(&set(json!({"minReadySeconds": 5})), &pod, now).expect("a member");
            assert_eq!(
                (
                    replica.member.ordinal,
                    replica.member.revision,
                    replica.member.is_labelled
                ),
                (3, "r", false)
            );
            let left = replica.available_at.map(|at| at.duration_since(now).as_secs());
            assert_eq!((replica.member.progress, left), (progress, seconds), "{status}");
        }
    }

    #[test]
    fn the_spec_is_read_with_the_defaults_of_the_kind() {
        let plain = set(json!({"replicas": 3}));
        let plain = desired(&plain, "a", "b");
        assert_eq!(
            (plain.replicas, plain.start, plain.order),
            (3, 0, Order::OrderedReady)
        );
        assert_eq!(plain.update, Update::Rolling { partition: 0 });
        let other = set(json!({
            "replicas": 2,
            "ordinals": {"start": 5},
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        }));
        let other = desired(&other, "a", "b");
        assert_eq!(
            (other.replicas, other.start, other.order),
            (2, 5, Order::Parallel)
        );
        assert_eq!(other.update, Update::Rolling { partition: 1 });
        let on_delete = set(json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}));
        assert_eq!(desired(&on_delete, "a", "b").update, Update::OnDelete);
    }
}
