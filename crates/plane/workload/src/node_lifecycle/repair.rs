//! What a Node object has to say, given how the node is.
//!
//! Conditions, reasons and taints follow `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, Kubernetes 1.36.

use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::view::Node;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Which taint keeps pods away under which status of which condition.
const TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// What a node says of itself, and what nobody knows once it is silent.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// What is known of a node, as far as the rules below look at it.
pub(super) fn sketch(node: &Node) -> Value {
    let taints = node.spec.taints.iter();
    let taints: Vec<_> = taints
        .map(|taint| json!({"key": taint.key, "effect": taint.effect}))
        .collect();
    let conditions = node.status.conditions.iter();
    let conditions: Vec<_> = conditions
        .map(|condition| json!({"type": condition.kind, "status": condition.status}))
        .collect();
    json!({
        "spec": {"unschedulable": node.spec.unschedulable, "taints": taints},
        "status": {"conditions": conditions},
    })
}

/// The conditions that have to be written once a node is taken for dead; none if its status says so already.
pub(super) fn unknown_conditions(node: &Value, now: Timestamp) -> Vec<Value> {
    let now = timestamp::seconds(now);
    let mut changes = Vec::new();
    for kind in REPORTED {
        match condition(node, kind) {
            None => changes.push(json!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": node["metadata"]["creationTimestamp"], "lastTransitionTime": now,
            })),
            Some("Unknown") => {}
            Some(_) => changes.push(json!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.", "lastTransitionTime": now,
            })),
        }
    }
    changes
}

/// All taints of the node as they have to be; nothing if they are.
pub(super) fn taints(node: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let held: Vec<Value> = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let wanted = wanted(node);
    let is_wanted = |taint: &Value| {
        wanted
            .iter()
            .any(|(key, effect)| taint["key"] == *key && taint["effect"] == *effect)
    };
    let mut taints: Vec<Value> = held
        .iter()
        .filter(|taint| is_wanted(taint) || !is_ours(node, taint))
        .cloned()
        .collect();
    for (key, effect) in &wanted {
        let is_there = |taint: &Value| taint["key"] == *key && taint["effect"] == *effect;
        if !taints.iter().any(is_there) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": timestamp::seconds(now)}));
        }
    }
    (taints != held).then_some(taints)
}

fn wanted(node: &Value) -> Vec<(&'static str, &'static str)> {
    let holds = |kind, status| condition(node, kind) == Some(status);
    let mut wanted: Vec<_> = TAINTS
        .iter()
        .filter(|(kind, status, _)| holds(kind, status))
        .map(|(_, _, key)| (*key, "NoSchedule"))
        .collect();
    if node["spec"]["unschedulable"] == true {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    for (kind, status, key) in TAINTS.into_iter().filter(|(kind, ..)| *kind == "Ready") {
        if holds(kind, status) {
            wanted.push((key, "NoExecute"));
        }
    }
    wanted
}

/// Whether the taint is this controller's to take away.
fn is_ours(node: &Value, taint: &Value) -> bool {
    let key = taint["key"].as_str().unwrap_or_default();
    let is_about_ready = matches!(key, NOT_READY | UNREACHABLE);
    match taint["effect"].as_str() {
        // A node that has not said how it is yet keeps pods away as it was told to.
        Some("NoSchedule") if is_about_ready => condition(node, "Ready").is_some(),
        Some("NoSchedule") => key == UNSCHEDULABLE || TAINTS.iter().any(|(_, _, ours)| *ours == key),
        Some("NoExecute") => is_about_ready,
        _ => false,
    }
}

fn condition<'a>(node: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = node["status"]["conditions"].as_array()?.iter();
    let mut conditions = conditions.filter_map(Value::as_object);
    conditions
        .find(|one: &&Map<String, Value>| one.get("type").is_some_and(|held| held == kind))
        .and_then(|one| one.get("status")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T15:04:05Z".parse().expect("a time")
    }

    fn node(ready: &str, unschedulable: bool, taints: &[(&str, &str)]) -> Value {
        let conditions = match ready {
            "" => json!([]),
            ready => {
                json!([{"type": "Ready", "status": ready}, {"type": "MemoryPressure", "status": "False"}])
            }
        };
        let taints: Vec<_> = taints
            .iter()
            .map(|(key, effect)| json!({"key": key, "effect": effect, "value": "v"}))
            .collect();
        json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"unschedulable": unschedulable, "taints": taints},
            "status": {"conditions": conditions},
        })
    }

    #[test]
    fn what_nobody_knows_any_more_is_unknown() {
        let said: Vec<_> = unknown_conditions(&node("True", false, &[]), now())
            .iter()
            .map(|one| format!("{} {}", one["type"], one["reason"]).replace('"', ""))
            .collect();
        assert_eq!(
            said,
            [
                "Ready NodeStatusUnknown",
                "MemoryPressure NodeStatusUnknown",
                "DiskPressure NodeStatusNeverUpdated",
                "PIDPressure NodeStatusNeverUpdated",
            ]
        );
        let known = unknown_conditions(&node("Unknown", false, &[]), now());
        assert!(
            !known.iter().any(|one| one["type"] == "Ready"),
            "it says so already"
        );
    }

    #[test]
    fn taints_follow_conditions_and_cordon() {
        let other = ("example.com/mine", "NoSchedule");
        for (ready, cordoned, held, wanted) in [
            ("True", false, vec![], None),
            ("True", false, vec![other], None),
            (
                "Unknown",
                false,
                vec![other],
                Some(vec![
                    other,
                    (UNREACHABLE, "NoSchedule"),
                    (UNREACHABLE, "NoExecute"),
                ]),
            ),
            (
                "False",
                false,
                vec![(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")],
                Some(vec![(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
            ),
            (
                "True",
                false,
                vec![(UNREACHABLE, "NoExecute"), other],
                Some(vec![other]),
            ),
            ("True", true, vec![], Some(vec![(UNSCHEDULABLE, "NoSchedule")])),
            ("True", true, vec![(UNSCHEDULABLE, "NoSchedule")], None),
            ("True", false, vec![(UNSCHEDULABLE, "NoSchedule")], Some(vec![])),
            ("", false, vec![(NOT_READY, "NoSchedule")], None),
        ] {
            let found = taints(&node(ready, cordoned, &held), now()).map(|taints| {
                let pair = |taint: &Value| format!("{}:{}", taint["key"], taint["effect"]).replace('"', "");
                taints.iter().map(pair).collect::<Vec<_>>()
            });
            let wanted = wanted.map(|all| {
                all.iter()
                    .map(|(key, effect)| format!("{key}:{effect}"))
                    .collect::<Vec<_>>()
            });
            assert_eq!(found, wanted, "{ready:?} {cordoned} {held:?}");
        }
    }

    #[test]
    fn taints_of_others_stay_as_they_are() {
        let mut node = node("Unknown", false, &[]);
        node["spec"]["taints"] =
            json!([{"key": "a", "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}]);
        let taints = taints(&node, now()).expect("changes");
        assert_eq!(taints[0], node["spec"]["taints"][0]);
        assert_eq!(taints[1]["timeAdded"], "2026-01-02T15:04:05Z");
    }
}
