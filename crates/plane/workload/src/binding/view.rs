//! The few fields of pods and nodes that placement looks at.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// `null` reads as absent: objects in JSON have both.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodView {
    #[serde(deserialize_with = "or_default")]
    pub(super) metadata: PodMetadata,
    #[serde(deserialize_with = "or_default")]
    pub(super) spec: PodSpec,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodMetadata {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    #[serde(deserialize_with = "or_default")]
    pub(super) node_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) scheduler_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) scheduling_gates: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "or_default")]
    pub(super) node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "or_default")]
    pub(super) affinity: Affinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Affinity {
    #[serde(deserialize_with = "or_default")]
    pub(super) node_affinity: NodeAffinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(super) required: Option<NodeSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NodeSelector {
    #[serde(deserialize_with = "or_default")]
    pub(super) node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NodeSelectorTerm {
    #[serde(deserialize_with = "or_default")]
    pub(super) match_expressions: Vec<NodeRequirement>,
    #[serde(deserialize_with = "or_default")]
    pub(super) match_fields: Vec<NodeRequirement>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeRequirement {
    pub(super) key: String,
    pub(super) operator: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) values: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Toleration {
    #[serde(deserialize_with = "or_default")]
    pub(super) key: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) operator: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) value: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    #[serde(deserialize_with = "or_default")]
    pub(super) phase: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
}

impl PodView {
    /// Whether it is this scheduler's business at all.
    pub(super) fn wants_a_node(&self, scheduler: &str) -> bool {
        self.spec.node_name.is_empty()
            && self.spec.scheduler_name == scheduler
            && self.metadata.deletion_timestamp.is_none()
            && !matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.kind == kind)
    }

    /// Whether its status says already that it fits nowhere, for this reason.
    pub(super) fn is_told_unschedulable(&self, message: &str) -> bool {
        self.condition("PodScheduled").is_some_and(|condition| {
            condition.status == "False" && condition.reason == "Unschedulable" && condition.message == message
        })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct NodeView {
    #[serde(deserialize_with = "or_default")]
    pub(super) metadata: NodeMetadata,
    #[serde(deserialize_with = "or_default")]
    pub(super) spec: NodeSpec,
    #[serde(deserialize_with = "or_default")]
    pub(super) status: NodeStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct NodeMetadata {
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct NodeSpec {
    #[serde(deserialize_with = "or_default")]
    pub(super) unschedulable: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) taints: Vec<Taint>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Taint {
    pub(super) key: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) value: String,
    pub(super) effect: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatus {
    #[serde(deserialize_with = "or_default")]
    pub(super) conditions: Vec<Readiness>,
}

/// A node's condition without its times: a heartbeat is no change.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Readiness {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
}

impl NodeView {
    pub(super) fn is_ready(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}
