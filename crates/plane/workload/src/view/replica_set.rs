//! What controllers see of a ReplicaSet.

use serde::Deserialize;

use super::{Condition, Metadata, PodTemplate, Selector, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReplicaSet {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: ReplicaSetSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: ReplicaSetStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReplicaSetSpec {
    /// The server's default is 1 and is always there.
    #[serde(deserialize_with = "or_default")]
    pub(crate) replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) min_ready_seconds: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) selector: Selector,
    pub(crate) template: PodTemplate,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReplicaSetStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) observed_generation: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) fully_labeled_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ready_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) available_replicas: i32,
    pub(crate) terminating_replicas: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<Condition>,
}

impl View for ReplicaSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "ReplicaSet";
    const PLURAL: &'static str = "replicasets";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.replica_sets
    }
}
