//! On which nodes a DaemonSet runs a pod.
//!
//! Source: `NodeShouldRunDaemonPod` in `pkg/controller/daemon/daemon_controller.go`, Kubernetes 1.36.

use serde_json::{Value, json};

use super::daemon_pod::add_tolerations;
use crate::{
    binding::{repelling_taints, selects, tolerates},
    view::{Node, Pod},
};

/// What a DaemonSet and a node have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The node shall have a pod.
    Runs,
    /// The node keeps the pod it has, and gets no new one: it repels pods that are not there yet.
    Stays,
    /// The node shall have no pod.
    Leaves,
    /// There is no such node.
    Gone,
}

/// The template as nodes see it.
pub(super) struct Eligibility {
    pod: Pod,
}

impl Eligibility {
    /// Of the pods of this `PodTemplateSpec`. One that cannot be read fits nowhere.
    pub(super) fn of(template: &Value) -> Result<Self, serde_json::Error> {
        let mut spec = template["spec"].clone();
        add_tolerations(&mut spec);
        let pod = serde_json::from_value(json!({"spec": spec}))?;
        Ok(Self { pod })
    }

    pub(super) fn on(&self, node: &Node) -> Fit {
        let named = &self.pod.spec.node_name;
        if (!named.is_empty() && *named != node.metadata.name) || !selects(&self.pod, node) {
            return Fit::Leaves;
        }
        let untolerated: Vec<_> = repelling_taints(node)
            .filter(|taint| !tolerates(&self.pod, taint))
            .collect();
        match untolerated.iter().any(|taint| taint.effect == "NoExecute") {
            true => Fit::Leaves,
            false if untolerated.is_empty() => Fit::Runs,
            false => Fit::Stays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_names_and_taints_decide() {
        let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "effect": effect}]}});
        let of_node = |key: &str, effect: &str| json!({"spec": {"taints": [{"key": format!("node.kubernetes.io/{key}"), "effect": effect}]}});
        let plain = json!({});
        let ssd = json!({"metadata": {"labels": {"disk": "ssd"}}});
        let affinity = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}}});
        let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
        for (spec, node, fit) in [
            (json!({}), &plain, Fit::Runs),
            (json!({"nodeName": "n"}), &plain, Fit::Runs),
            (json!({"nodeName": "m"}), &plain, Fit::Leaves),
            (json!({"nodeSelector": {"disk": "ssd"}}), &ssd, Fit::Runs),
            (json!({"nodeSelector": {"disk": "ssd"}}), &plain, Fit::Leaves),
            (affinity.clone(), &ssd, Fit::Runs),
            (affinity, &plain, Fit::Leaves),
            (json!({}), &taint("NoSchedule"), Fit::Stays),
            (json!({}), &taint("NoExecute"), Fit::Leaves),
            (json!({}), &taint("PreferNoSchedule"), Fit::Runs),
            (tolerant.clone(), &taint("NoExecute"), Fit::Runs),
            (json!({}), &json!({"spec": {"unschedulable": true}}), Fit::Runs),
            (json!({}), &of_node("unschedulable", "NoSchedule"), Fit::Runs),
            (json!({}), &of_node("disk-pressure", "NoSchedule"), Fit::Runs),
            (json!({}), &of_node("unreachable", "NoExecute"), Fit::Runs),
            (json!({}), &of_node("not-ready", "NoExecute"), Fit::Runs),
            (
                json!({}),
                &of_node("network-unavailable", "NoSchedule"),
                Fit::Stays,
            ),
            (
                json!({"hostNetwork": true}),
                &of_node("network-unavailable", "NoSchedule"),
                Fit::Runs,
            ),
            (json!({}), &json!({"ready": "False"}), Fit::Stays),
            (tolerant, &json!({"ready": "Unknown"}), Fit::Runs),
        ] {
            let mut with_name = node.clone();
            with_name["metadata"]["name"] = "n".into();
            let ready = node.get("ready").cloned().unwrap_or(json!("True"));
            with_name["status"] = json!({"conditions": [{"type": "Ready", "status": ready}]});
            let with_name = serde_json::from_value(with_name).expect("a node");
            let eligibility = Eligibility::of(&json!({"spec": spec})).expect("a template");
            assert_eq!(eligibility.on(&with_name), fit, "{spec} on {node}");
        }
    }
}
