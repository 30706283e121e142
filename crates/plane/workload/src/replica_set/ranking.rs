//! Which pods go first when there are too many.
//!
//! Source: `ActivePodsWithRanks` in `pkg/controller/controller_utils.go` and `getPodsToDelete` in
//! `pkg/controller/replicaset/replica_set.go`, Kubernetes 1.36.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

use crate::view::Pod;

/// On pods: the lower, the sooner it goes; zero without it.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The `count` pods of `active` that are to go. `related` are the pods of all ReplicaSets of the same deployment: of two
/// equals the one that shares its node with more of them goes.
pub(crate) fn pods_to_delete(
    active: &[Arc<Pod>],
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut pods = active.to_vec();
    if count < pods.len() {
        let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in related.iter().filter(|pod| pod.is_active()) {
            *on_node.entry(&pod.spec.node_name).or_default() += 1;
        }
        let neighbours = |pod: &Pod| on_node.get(pod.spec.node_name.as_str()).copied().unwrap_or(0);
        pods.sort_by_cached_key(|pod| rank(pod, neighbours(pod), now));
    }
    pods.truncate(count);
    pods
}

/// Sorted as a tuple, first the first to go. Ages count by their order of magnitude: among pods of about the same age
/// chance decides, by uid, so that a scale-down does not empty what came up last. Upstream lets chance decide before it
/// looks at restarts, which is no order that could be sorted by; here restarts come first.
type Rank = (
    (bool, u8, bool),
    (i32, Reverse<usize>),
    (Option<i8>, Reverse<i32>, Reverse<i32>),
    (Option<i8>, String),
);

fn rank(pod: &Pod, neighbours: usize, now: Timestamp) -> Rank {
    let phase = match pod.status.phase.as_str() {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let (restarts, sidecar_restarts) = restarts(pod);
    (
        (!pod.spec.node_name.is_empty(), phase, pod.is_ready()),
        (deletion_cost(pod), Reverse(neighbours)),
        (
            pod.ready_since().map(|since| magnitude(since, now)),
            Reverse(restarts),
            Reverse(sidecar_restarts),
        ),
        (
            pod.metadata.creation_timestamp.map(|since| magnitude(since, now)),
            pod.metadata.uid.clone(),
        ),
    )
}

/// The binary logarithm of an age; -1 for the future.
fn magnitude(since: Timestamp, now: Timestamp) -> i8 {
    let age = now.duration_since(since).as_nanos();
    i8::try_from(age.checked_ilog2().map_or(-1, i64::from)).unwrap_or(i8::MAX)
}

/// What cannot be understood counts as zero.
fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod.metadata.annotation(DELETION_COST).unwrap_or_default();
    let digits = cost.strip_prefix('-').unwrap_or(cost);
    let is_plain =
        digits.starts_with(|first: char| first.is_ascii_digit()) && (cost == "0" || !digits.starts_with('0'));
    if is_plain { cost.parse().unwrap_or(0) } else { 0 }
}

/// The most restarts of one container, and of one sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let sidecars: HashMap<&str, bool> = pod
        .spec
        .init_containers
        .iter()
        .map(|container| (container.name.as_str(), container.restart_policy == "Always"))
        .collect();
    let is_sidecar = |name: &str| sidecars.get(name).copied().unwrap_or(false);
    let regular = pod
        .status
        .container_statuses
        .iter()
        .map(|status| status.restart_count);
    let sidecar = pod.status.init_container_statuses.iter();
    let sidecar = sidecar
        .filter(|status| is_sidecar(&status.name))
        .map(|status| status.restart_count);
    (regular.max().unwrap_or(0), sidecar.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T00:00:00Z".parse().expect("valid")
    }

    /// A running, ready pod on a node of its own, up since midnight.
    fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Arc<Pod> {
        let mut pod = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {}},
            "spec": {"nodeName": format!("node-of-{name}")},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "containerStatuses": [{"name": "c", "restartCount": 0}],
            },
        });
        change(&mut pod);
        Arc::new(serde_json::from_value(pod).expect("a pod"))
    }

    fn first_to_go(pods: &[Arc<Pod>]) -> String {
        let gone = pods_to_delete(pods, pods, 1, now());
        gone[0].metadata.name.clone()
    }

    #[test]
    fn each_rule_decides_between_equals() {
        type Change = fn(&mut Value);
        let rules: [(&str, Change); 9] = [
            ("unassigned", |pod| pod["spec"]["nodeName"] = json!("")),
            ("pending", |pod| pod["status"]["phase"] = json!("Pending")),
            ("unknown", |pod| pod["status"]["phase"] = json!("Unknown")),
            ("unready", |pod| {
                pod["status"]["conditions"][0]["status"] = json!("False")
            }),
            ("cheap", |pod| {
                pod["metadata"]["annotations"][DELETION_COST] = json!("-1")
            }),
            ("ready of late", |pod| {
                pod["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-01-01T23:59:00Z");
            }),
            ("restarted", |pod| {
                pod["status"]["containerStatuses"][0]["restartCount"] = json!(3)
            }),
            ("restarted sidecar", |pod| {
                pod["spec"]["initContainers"] = json!([{"name": "s", "restartPolicy": "Always"}]);
                pod["status"]["initContainerStatuses"] = json!([{"name": "s", "restartCount": 1}]);
            }),
            ("young", |pod| {
                pod["metadata"]["creationTimestamp"] = json!("2026-01-01T23:00:00Z")
            }),
        ];
        for (rule, change) in rules {
            let pods = [pod("a", |_| {}), pod("z", change), pod("b", |_| {})];
            assert_eq!(first_to_go(&pods), "z", "{rule}");
        }
    }

    #[test]
    fn earlier_rules_outweigh_later_ones() {
        let dear = |pod: &mut Value| {
            pod["metadata"]["annotations"][DELETION_COST] = json!("100");
            pod["status"]["phase"] = json!("Pending");
        };
        assert_eq!(first_to_go(&[pod("cheap", |_| {}), pod("dear", dear)]), "dear");
        let restarted = |pod: &mut Value| pod["status"]["containerStatuses"][0]["restartCount"] = json!(9);
        let cheap = |pod: &mut Value| pod["metadata"]["annotations"][DELETION_COST] = json!("-2147483648");
        assert_eq!(
            first_to_go(&[pod("restarted", restarted), pod("cheap", cheap)]),
            "cheap"
        );
    }

    #[test]
    fn pods_that_share_a_node_go_first() {
        let on = |node: &'static str| move |pod: &mut Value| pod["spec"]["nodeName"] = json!(node);
        let pods = [pod("a", on("one")), pod("y", on("two")), pod("z", on("two"))];
        assert_eq!(first_to_go(&pods), "y");
        let alone = pods_to_delete(&pods, &[], 1, now());
        assert_eq!(
            alone[0].metadata.name, "a",
            "without a deployment nobody counts neighbours"
        );
    }

    #[test]
    fn ages_of_one_magnitude_leave_it_to_chance() {
        let young = |pod: &mut Value| pod["metadata"]["creationTimestamp"] = json!("2026-01-01T03:00:00Z");
        assert_eq!(first_to_go(&[pod("a", |_| {}), pod("b", young)]), "a");
        assert_eq!(first_to_go(&[pod("b", |_| {}), pod("a", young)]), "a");
    }

    #[test]
    fn costs_are_plain_numbers() {
        for (text, cost) in [
            ("5", 5),
            ("-5", -5),
            ("0", 0),
            ("+5", 0),
            ("05", 0),
            ("x", 0),
            ("", 0),
            ("99999999999", 0),
            ("-", 0),
        ] {
            let pod = pod("a", |pod| {
                pod["metadata"]["annotations"][DELETION_COST] = json!(text)
            });
            assert_eq!(deletion_cost(&pod), cost, "{text:?}");
        }
    }

    #[test]
    fn all_may_go() {
        let pods = [pod("a", |_| {}), pod("b", |_| {})];
        assert_eq!(pods_to_delete(&pods, &pods, 2, now()).len(), 2);
        assert_eq!(pods_to_delete(&pods, &pods, 0, now()).len(), 0);
    }
}
