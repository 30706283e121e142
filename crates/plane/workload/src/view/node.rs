//! What controllers see of a Node.

use serde::Deserialize;

use super::{Metadata, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: NodeSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: NodeStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    #[serde(deserialize_with = "or_default")]
    pub(crate) unschedulable: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) taints: Vec<Taint>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) value: String,
    pub(crate) effect: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<Readiness>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) addresses: Vec<NodeAddress>,
}

/// Where a node is reached: an address, or a name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeAddress {
    pub(crate) address: String,
}

/// A node's condition without its times: a heartbeat is no change.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Readiness {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
}

impl Node {
    pub(crate) fn is_ready(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.kind == "Ready" && condition.status == "True")
    }

    /// The status of its Ready condition; nothing if it has never said how it is.
    pub(crate) fn ready(&self) -> Option<&str> {
        let mut conditions = self.status.conditions.iter();
        let ready = conditions.find(|condition| condition.kind == "Ready")?;
        Some(&ready.status)
    }

    /// Whether both take the same pods: heartbeats, annotations and versions apart.
    pub(crate) fn takes_the_same_pods(&self, other: &Self) -> bool {
        self.metadata.labels == other.metadata.labels
            && self.spec == other.spec
            && self.status == other.status
            && self.metadata.is_deleting() == other.metadata.is_deleting()
    }
}

impl View for Node {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Node";
    const PLURAL: &'static str = "nodes";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.nodes
    }
}
