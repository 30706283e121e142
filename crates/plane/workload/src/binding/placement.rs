//! Which node takes a pod, and if none does, why. The same cluster always gives the same answer.
//!
//! The order of the checks and their texts are those of `pkg/scheduler/framework/plugins` (nodeunschedulable,
//! tainttoleration, nodeaffinity) and of `FitError` in `pkg/scheduler/framework`, Kubernetes 1.36.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use crate::view::{Node, NodeRequirement, NodeSelectorTerm, Pod, Taint, Toleration};

const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// What shall become of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placement {
    /// Somebody holds it back with a scheduling gate.
    Gated,
    /// This node takes it.
    On { node: String },
    /// No node takes it.
    Nowhere { message: String },
}

/// Places a pod on the node that takes it and has the fewest pods; among equals the first by name.
pub(super) fn place(pod: &Pod, nodes: &[Arc<Node>], pods_on: impl Fn(&str) -> usize) -> Placement {
    if !pod.spec.scheduling_gates.is_empty() {
        return Placement::Gated;
    }
    let mut fitting = Vec::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for node in nodes {
        match refusal(pod, node) {
            None => fitting.push(node.metadata.name.as_str()),
            Some(reason) => *reasons.entry(reason).or_default() += 1,
        }
    }
    match fitting.into_iter().min_by_key(|&name| (pods_on(name), name)) {
        Some(node) => Placement::On {
            node: node.to_owned(),
        },
        None => Placement::Nowhere {
            message: message(nodes.len(), &reasons),
        },
    }
}

fn message(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut counted: Vec<_> = reasons
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    counted.sort_unstable();
    format!(
        "0/{nodes} nodes are available: {}. preemption: 0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling.",
        counted.join(", ")
    )
}

/// The first reason against a node.
fn refusal(pod: &Pod, node: &Node) -> Option<String> {
    if node.spec.unschedulable && !tolerates(pod, &no_schedule(UNSCHEDULABLE_TAINT)) {
        return Some("node(s) were unschedulable".to_owned());
    }
    if let Some(taint) = repelling_taints(node).find(|taint| !tolerates(pod, taint)) {
        return Some(format!(
            "node(s) had untolerated taint {{{}: {}}}",
            taint.key, taint.value
        ));
    }
    if !selects(pod, node) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    None
}

/// The taints of a node that keep pods away. No controller turns readiness into a taint here, so it is read as one.
pub(crate) fn repelling_taints(node: &Node) -> impl Iterator<Item = Cow<'_, Taint>> {
    let taints = node.spec.taints.iter();
    let repelling = taints.filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
    let not_ready = (!node.is_ready()).then(|| Cow::Owned(no_schedule(NOT_READY_TAINT)));
    repelling.map(Cow::Borrowed).chain(not_ready)
}

fn no_schedule(key: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: String::new(),
        effect: "NoSchedule".to_owned(),
    }
}

/// Whether one of the pod's tolerations covers the taint.
pub(crate) fn tolerates(pod: &Pod, taint: &Taint) -> bool {
    let mut tolerations = pod.spec.tolerations.iter();
    tolerations.any(|toleration| matches_taint(toleration, taint))
}

/// Source: `staging/src/k8s.io/api/core/v1/toleration.go`.
pub(crate) fn matches_taint(toleration: &Toleration, taint: &Taint) -> bool {
    if !toleration.effect.is_empty() && toleration.effect != taint.effect {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != taint.key {
        return false;
    }
    match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    }
}

/// Whether the pod's node selector and required affinity allow the node.
///
/// Source: `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity`. Terms are alternatives, and a term
/// without requirements matches nothing.
pub(crate) fn selects(pod: &Pod, node: &Node) -> bool {
    let labels = &node.metadata.labels;
    let by_selector = pod
        .spec
        .node_selector
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value));
    let required = pod.spec.affinity.node_affinity.required.as_ref();
    by_selector
        && required.is_none_or(|required| {
            required
                .node_selector_terms
                .iter()
                .any(|term| term_matches(term, node))
        })
}

fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let label = |key: &str| node.metadata.labels.get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(node.metadata.name.as_str());
    let is_empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
    !is_empty
        && term
            .match_expressions
            .iter()
            .all(|requirement| requirement_matches(requirement, label(&requirement.key)))
        && term
            .match_fields
            .iter()
            .all(|requirement| requirement_matches(requirement, field(&requirement.key)))
}

fn requirement_matches(requirement: &NodeRequirement, value: Option<&str>) -> bool {
    let listed = |value: &str| requirement.values.iter().any(|one| one == value);
    let compared = || {
        let bound = requirement.values.first()?.parse::<i64>().ok()?;
        Some(value?.parse::<i64>().ok()?.cmp(&bound))
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(std::cmp::Ordering::is_gt),
        "Lt" => compared().is_some_and(std::cmp::Ordering::is_lt),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a pod")
    }

    fn nodes(nodes: Value) -> Vec<Arc<Node>> {
        let parse = |(name, mut node): (&String, Value)| {
            node["metadata"]["name"] = name.as_str().into();
            let ready = node
                .as_object_mut()
                .and_then(|node| node.remove("ready"))
                .unwrap_or(json!("True"));
            node["status"] = json!({"conditions": [{"type": "Ready", "status": ready}]});
            Arc::new(serde_json::from_value(node).expect("a node"))
        };
        nodes
            .as_object()
            .expect("by name")
            .iter()
            .map(|(name, node)| parse((name, node.clone())))
            .collect()
    }

    fn refused(reason: &str) -> Placement {
        let preemption = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
        Placement::Nowhere {
            message: format!("0/1 nodes are available: 1 {reason}. {preemption}"),
        }
    }

    fn on(node: &str) -> Placement {
        Placement::On {
            node: node.to_owned(),
        }
    }

    #[test]
    fn a_node_takes_what_it_has_no_reason_to_refuse() {
        let plain = json!({});
        let ssd = json!({"metadata": {"labels": {"disk": "ssd", "cores": "8"}}});
        let cordoned = json!({"spec": {"unschedulable": true}});
        let tainted = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
        let soft = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]}});
        let not_ready = json!({"ready": "Unknown"});
        let affinity = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        let expression = |key: &str, operator: &str, values: Value| {
            affinity(json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
        };
        let unmatched = refused("node(s) didn't match Pod's node affinity/selector");
        let untolerated = refused("node(s) had untolerated taint {k: v}");
        for (spec, node, placement) in [
            (json!({}), &plain, on("n")),
            (
                json!({"schedulingGates": [{"name": "a"}]}),
                &plain,
                Placement::Gated,
            ),
            (json!({"nodeSelector": {"disk": "ssd"}}), &ssd, on("n")),
            (
                json!({"nodeSelector": {"disk": "ssd"}}),
                &plain,
                unmatched.clone(),
            ),
            (
                json!({"nodeSelector": {"disk": "ssd"}}),
                &not_ready,
                refused("node(s) had untolerated taint {node.kubernetes.io/not-ready: }"),
            ),
            (json!({}), &cordoned, refused("node(s) were unschedulable")),
            (
                json!({"tolerations": [{"operator": "Exists"}]}),
                &cordoned,
                on("n"),
            ),
            (json!({}), &tainted, untolerated.clone()),
            (json!({}), &soft, on("n")),
            (
                json!({"tolerations": [{"key": "k", "value": "v"}]}),
                &tainted,
                on("n"),
            ),
            (
                json!({"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]}),
                &tainted,
                on("n"),
            ),
            (
                json!({"tolerations": [{"key": "k", "value": "w"}]}),
                &tainted,
                untolerated.clone(),
            ),
            (
                json!({"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]}),
                &tainted,
                untolerated,
            ),
            (expression("disk", "In", json!(["hdd", "ssd"])), &ssd, on("n")),
            (
                expression("disk", "NotIn", json!(["ssd"])),
                &ssd,
                unmatched.clone(),
            ),
            (expression("gpu", "NotIn", json!(["a"])), &ssd, on("n")),
            (expression("disk", "Exists", Value::Null), &ssd, on("n")),
            (
                expression("disk", "DoesNotExist", Value::Null),
                &ssd,
                unmatched.clone(),
            ),
            (expression("cores", "Gt", json!(["4"])), &ssd, on("n")),
            (expression("cores", "Lt", json!(["4"])), &ssd, unmatched.clone()),
            (expression("disk", "Gt", json!(["4"])), &ssd, unmatched.clone()),
            (
                affinity(
                    json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]),
                ),
                &plain,
                on("n"),
            ),
            (affinity(json!([])), &plain, unmatched.clone()),
            (affinity(json!([{}])), &plain, unmatched),
        ] {
            assert_eq!(
                place(&pod(spec.clone()), &nodes(json!({"n": node})), |_| 0),
                placement,
                "{spec} on {node}"
            );
        }
    }

    #[test]
    fn the_fewest_pods_come_first_and_reasons_are_counted() {
        let two = nodes(json!({"a": {}, "b": {}}));
        for (counts, node) in [([0, 0], "a"), ([1, 0], "b"), ([1, 2], "a")] {
            let pods_on = |name: &str| counts[usize::from(name == "b")];
            assert_eq!(place(&pod(json!({})), &two, pods_on), on(node));
        }
        let three = nodes(json!({"a": {}, "b": {}, "c": {"spec": {"unschedulable": true}}}));
        let Placement::Nowhere { message } = place(&pod(json!({"nodeSelector": {"x": "y"}})), &three, |_| 0)
        else {
            panic!("placed");
        };
        assert_eq!(
            message,
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. \
             preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        );
        let Placement::Nowhere { message } = place(&pod(json!({})), &nodes(json!({})), |_| 0) else {
            panic!("placed")
        };
        assert_eq!(message, "no nodes available to schedule pods");
    }
}
