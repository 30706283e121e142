//! The pod of a DaemonSet for one node, and the node of such a pod.
//!
//! Source: `pkg/controller/daemon/util/daemonset_util.go`, Kubernetes 1.36.

use serde_json::{Value, json};

use crate::view::Pod;

/// On pods: the hash of their template.
pub(super) const HASH_LABEL: &str = "controller-revision-hash";
/// On pods: what the annotation of the DaemonSet said.
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";
/// On DaemonSets: how often their template has changed; kept by the server.
pub(super) const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

/// The template of the pod for `node`.
pub(super) fn template_for(template: &Value, node: &str, hash: &str, generation: Option<i64>) -> Value {
    let mut template = template.clone();
    add_tolerations(&mut template["spec"]);
    pin(&mut template["spec"], node);
    let labels = &mut template["metadata"]["labels"];
    labels[HASH_LABEL] = hash.into();
    if let Some(generation) = generation {
        labels[GENERATION_LABEL] = generation.to_string().into();
    }
    template
}

/// Daemons run where other pods may not: on nodes in trouble and on cordoned ones.
pub(super) fn add_tolerations(spec: &mut Value) {
    let mut added = vec![
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    if spec["hostNetwork"] == true {
        added.push(("network-unavailable", "NoSchedule"));
    }
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for (key, effect) in added {
        let toleration =
            json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": effect});
        let same = |other: &&mut Value| {
            ["key", "operator", "effect", "value"]
                .iter()
                .all(|field| other.get(field) == toleration.get(field))
        };
        match tolerations.iter_mut().find(same) {
            Some(other) => *other = toleration,
            None => tolerations.push(toleration),
        }
    }
    spec["tolerations"] = tolerations.into();
}

/// Ties a pod to its node by required affinity, in place of what was required: the node has met that. The pod is still
/// bound like any other, so that it waits while the node takes no pods.
fn pin(spec: &mut Value, node: &str) {
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        json!([term]);
}

/// The node that a pod runs on or is meant for.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    if !pod.spec.node_name.is_empty() {
        return Some(&pod.spec.node_name);
    }
    let required = pod.spec.affinity.node_affinity.required.as_ref()?;
    let mut fields = required
        .node_selector_terms
        .iter()
        .flat_map(|term| &term.match_fields);
    let name = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match name.values.as_slice() {
        [node] => Some(node),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_labelled_tolerant_and_meant_for_its_node() {
        let template = json!({
            "metadata": {"labels": {"app": "log"}},
            "spec": {
                "affinity": {
                    "podAffinity": {},
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [],
                        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
                    },
                },
                "tolerations": [
                    {"key": "mine", "operator": "Exists"},
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                ],
            },
        });
        let made = template_for(&template, "edge", "5d9c", Some(3));
        assert_eq!(
            made["metadata"]["labels"],
            json!({"app": "log", "controller-revision-hash": "5d9c", "pod-template-generation": "3"})
        );
        let tolerations = made["spec"]["tolerations"].as_array().expect("tolerations");
        assert_eq!(tolerations.len(), 7);
        assert_eq!(tolerations[0]["key"], "mine");
        assert!(
            tolerations
                .iter()
                .all(|toleration| toleration.get("tolerationSeconds").is_none())
        );
        assert_eq!(made["spec"]["affinity"]["podAffinity"], json!({}));
        let pod: Pod = serde_json::from_value(made).expect("a pod");
        assert_eq!(node_of(&pod), Some("edge"));
        let made = template_for(
            &json!({"metadata": {"labels": {}}, "spec": {"affinity": null}}),
            "n",
            "h",
            None,
        );
        assert_eq!(
            node_of(&serde_json::from_value(made.clone()).expect("a pod")),
            Some("n")
        );
        assert_eq!(
            made["metadata"]["labels"],
            json!({"controller-revision-hash": "h"})
        );
    }

    #[test]
    fn the_node_of_a_pod_is_the_bound_one_or_the_only_one_it_may_run_on() {
        let fields = |fields: Value| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": fields}]}}}})
        };
        let name = |operator: &str, values: Value| json!([{"key": "metadata.name", "operator": operator, "values": values}]);
        for (spec, node) in [
            (json!({"nodeName": "a"}), Some("a")),
            (fields(name("In", json!(["a"]))), Some("a")),
            (fields(name("In", json!(["a", "b"]))), None),
            (fields(name("NotIn", json!(["a"]))), None),
            (fields(json!([])), None),
            (json!({}), None),
        ] {
            let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a pod");
            assert_eq!(node_of(&pod), node, "{spec}");
        }
    }
}
