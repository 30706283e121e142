//! The nodes and pods of a DaemonSet as its decisions see them.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    daemon_pod::{GENERATION_LABEL, HASH_LABEL, node_of},
    decision::{DaemonPod, NodeState, Progress, Update},
    eligibility::{Eligibility, Fit},
};
use crate::view::{DaemonSet, IntOrPercent, Node, Pod};

/// The template as it is, by hash and by number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Generation<'a> {
    pub(super) hash: &'a str,
    pub(super) number: Option<i64>,
}

impl Generation<'_> {
    /// Source: `IsPodUpdated` in `pkg/controller/daemon/util/daemonset_util.go`, Kubernetes 1.36.
    fn is_of(&self, pod: &Pod) -> bool {
        let number = self.number.map(|number| number.to_string());
        pod.metadata.label(HASH_LABEL) == Some(self.hash)
            || number.is_some_and(|number| pod.metadata.label(GENERATION_LABEL) == Some(&number))
    }
}

/// How the set replaces old pods.
pub(super) fn update(set: &DaemonSet) -> Update {
    let strategy = &set.spec.update_strategy;
    match strategy.kind.as_str() {
        "OnDelete" => Update::OnDelete,
        _ => Update::Rolling {
            max_unavailable: strategy
                .rolling_update
                .max_unavailable
                .unwrap_or(IntOrPercent::Int(1)),
            max_surge: strategy.rolling_update.max_surge.unwrap_or(IntOrPercent::Int(0)),
        },
    }
}

/// Every node with its pods, and nodes that are gone and still have some.
pub(super) fn node_states<'a>(
    set: &DaemonSet,
    eligibility: &Eligibility,
    nodes: &'a [Arc<Node>],
    pods: &'a [Arc<Pod>],
    generation: Generation<'_>,
    now: Timestamp,
) -> Vec<NodeState<'a>> {
    let mut states: BTreeMap<&str, NodeState<'a>> = BTreeMap::new();
    for node in nodes {
        let (name, fit) = (node.metadata.name.as_str(), eligibility.on(node));
        states.insert(
            name,
            NodeState {
                name,
                fit,
                pods: Vec::new(),
            },
        );
    }
    for pod in pods
        .iter()
        .filter(|pod| !(pod.is_finished() && pod.metadata.is_deleting()))
    {
        // A pod that is bound nowhere and meant for no node was adopted: the scheduler finds it one.
        let Some(name) = node_of(pod) else {
            continue;
        };
        let gone = || NodeState {
            name,
            fit: Fit::Gone,
            pods: Vec::new(),
        };
        let state = states.entry(name).or_insert_with(gone);
        state.pods.push(DaemonPod {
            name: &pod.metadata.name,
            created: pod.metadata.creation_timestamp,
            is_bound: !pod.spec.node_name.is_empty(),
            progress: progress(pod, set.spec.min_ready_seconds, now),
            is_terminating: pod.metadata.is_deleting(),
            is_updated: generation.is_of(pod),
        });
    }
    states.into_values().collect()
}

fn progress(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Progress {
    match pod.status.phase.as_str() {
        "Failed" => Progress::Failed,
        "Succeeded" => Progress::Succeeded,
        _ if pod.is_available(min_ready_seconds, now) => Progress::Available,
        _ if pod.is_ready() => Progress::Ready,
        _ => Progress::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pods_stand_on_the_node_they_run_on_or_are_meant_for() {
        let set: DaemonSet = serde_json::from_value(json!({"spec": {"minReadySeconds": 5}})).expect("a set");
        let node = |name: &str| {
            let node = json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
            Arc::new(serde_json::from_value::<Node>(node).expect("a node"))
        };
        let meant = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}}}});
        let pod = |name: &str, labels: Value, spec: Value, phase: &str, is_deleting: bool| {
            let ready =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T15:04:00Z"}]);
            let pod = json!({
                "metadata": {"name": name, "labels": labels, "deletionTimestamp": is_deleting.then_some("2026-01-02T15:04:05Z")},
                "spec": spec,
                "status": {"phase": phase, "conditions": if phase == "Running" { ready } else { json!([]) }},
            });
            Arc::new(serde_json::from_value::<Pod>(pod).expect("a pod"))
        };
        let (hash, number) = (
            json!({"controller-revision-hash": "h"}),
            json!({"pod-template-generation": "3"}),
        );
        let on = |node: &str| json!({"nodeName": node});
        let pods = [
            pod("1", hash, on("a"), "Running", false),
            pod("2", number, meant, "Pending", true),
            pod(
                "3",
                json!({"controller-revision-hash": "old"}),
                on("z"),
                "Failed",
                false,
            ),
            pod("4", json!({}), on("a"), "Failed", true),
            pod("5", json!({}), json!({}), "Pending", false),
        ];
        let nodes = [node("a"), node("b"), node("c")];
        let eligibility = Eligibility::of(&json!({"spec": {}})).expect("a template");
        let generation = Generation {
            hash: "h",
            number: Some(3),
        };
        let now = "2026-01-02T15:04:05Z".parse().expect("a time");
        let states = node_states(&set, &eligibility, &nodes, &pods, generation, now);
        let seen: Vec<_> = states
            .iter()
            .map(|state| {
                let pods = state.pods.iter();
                let pods = pods.map(|pod| {
                    (
                        pod.name,
                        pod.is_bound,
                        pod.progress,
                        pod.is_terminating,
                        pod.is_updated,
                    )
                });
                (state.name, state.fit, pods.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(
            seen,
            [
                (
                    "a",
                    Fit::Runs,
                    vec![("1", true, Progress::Available, false, true)]
                ),
                ("b", Fit::Runs, vec![("2", false, Progress::Waiting, true, true)]),
                ("c", Fit::Runs, vec![]),
                ("z", Fit::Gone, vec![("3", true, Progress::Failed, false, false)]),
            ]
        );
    }

    #[test]
    fn the_strategy_is_read_with_the_defaults_of_the_kind() {
        let rolling = |max_unavailable, max_surge| Update::Rolling {
            max_unavailable,
            max_surge,
        };
        for (strategy, expected) in [
            (json!({}), rolling(IntOrPercent::Int(1), IntOrPercent::Int(0))),
            (json!({"type": "OnDelete"}), Update::OnDelete),
            (
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "30%"}}),
                rolling(IntOrPercent::Int(0), IntOrPercent::Percent(30)),
            ),
        ] {
            let set = serde_json::from_value(json!({"spec": {"updateStrategy": strategy}})).expect("a set");
            assert_eq!(update(&set), expected);
        }
    }
}
