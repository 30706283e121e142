//! Binding: a pod gets its node, once.
//!
//! Rules follow `pkg/registry/core/pod/storage/storage.go` (`setPodNodeAndMetadata`) and `ValidatePodBinding`,
//! Kubernetes 1.36.

use hotmap_object::{FieldError, timestamp};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::fields::{Fields, map_mut};

/// Why a pod cannot be bound; each is a conflict with the state of the pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The pod is on its way out.
    #[error("pod {pod} is being deleted, cannot be assigned to a host")]
    Deleting {
        /// Name of the pod.
        pod: String,
    },
    /// The pod has a node already.
    #[error("pod {pod} is already assigned to node {node:?}")]
    Assigned {
        /// Name of the pod.
        pod: String,
        /// The node it has.
        node: String,
    },
    /// Somebody holds the pod back.
    #[error("pod {pod} has non-empty .spec.schedulingGates")]
    Gated {
        /// Name of the pod.
        pod: String,
    },
}

/// Everything that is wrong with the body of a POST to `pods/{name}/binding`.
pub fn validate_binding(binding: &Map<String, Value>) -> Vec<FieldError> {
    let target = binding.map("target");
    let mut errors = Vec::new();
    let kind = target.text("kind");
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(
            "target.kind",
            kind,
            &["Node", "<empty>"],
        ));
    }
    if !target.has("name") {
        errors.push(FieldError::required("target.name", ""));
    }
    errors
}

/// Gives the pod the node of the binding, with its annotations and labels, and notes that it is scheduled.
///
/// The pod is unchanged if this fails.
pub fn bind(
    pod: &mut Map<String, Value>,
    binding: &Map<String, Value>,
    now: Timestamp,
) -> Result<(), BindError> {
    check(pod)?;
    let node = binding.map("target").text("name");
    if let Some(spec) = map_mut(pod, "spec") {
        spec.insert("nodeName".to_owned(), node.into());
    }
    for field in ["annotations", "labels"] {
        let given = binding.map("metadata").map(field).clone();
        if !given.is_empty()
            && let Some(metadata) = map_mut(pod, "metadata")
            && let Some(held) = map_mut(metadata, field)
        {
            held.extend(given);
        }
    }
    if let Some(status) = map_mut(pod, "status") {
        status.remove("nominatedNodeName");
        scheduled(status, now);
    }
    Ok(())
}

fn check(pod: &Map<String, Value>) -> Result<(), BindError> {
    let (metadata, spec) = (pod.map("metadata"), pod.map("spec"));
    let pod = metadata.text("name").to_owned();
    if metadata.has("deletionTimestamp") {
        Err(BindError::Deleting { pod })
    } else if spec.has("nodeName") {
        let node = spec.text("nodeName").to_owned();
        Err(BindError::Assigned { pod, node })
    } else if spec.has("schedulingGates") {
        Err(BindError::Gated { pod })
    } else {
        Ok(())
    }
}

fn scheduled(status: &mut Map<String, Value>, now: Timestamp) {
    let mut conditions = status.list("conditions").to_vec();
    let before = conditions
        .iter()
        .position(|one| one.text("type") == "PodScheduled");
    let since = before
        .map(|at| &conditions[at])
        .filter(|condition| condition.text("status") == "True")
        .and_then(|condition| condition.member("lastTransitionTime").cloned())
        .unwrap_or_else(|| timestamp::seconds(now).into());
    let condition =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": since});
    match before {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    status.insert("conditions".to_owned(), conditions.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn a_pod_is_bound_once() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let mut pod = map(json!({"metadata": {"name": "p"}, "spec": {}}));
        let binding =
            map(json!({"metadata": {"annotations": {"a": "b"}}, "target": {"kind": "Node", "name": "n"}}));
        assert_eq!(texts(&validate_binding(&binding)), [""; 0]);
        bind(&mut pod, &binding, now).expect("free to bind");
        assert_eq!(
            Value::Object(pod.clone()),
            json!({"metadata": {"name": "p", "annotations": {"a": "b"}}, "spec": {"nodeName": "n"},
                   "status": {"conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": null,
                                              "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        );
        let error = bind(&mut pod, &binding, now).expect_err("bound already");
        assert_eq!(error.to_string(), "pod p is already assigned to node \"n\"");
    }

    #[test]
    fn a_binding_names_a_node() {
        assert_eq!(
            texts(&validate_binding(&map(json!({"target": {"kind": "Pod"}})))),
            [
                "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"",
                "target.name: Required value"
            ]
        );
    }
}
