//! What the controller sees of a StatefulSet.

use serde::Deserialize;

use super::{Metadata, PodTemplate, Selector, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct StatefulSet {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: StatefulSetSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: StatefulSetStatus,
}

/// Fields with a default are set by the server in every stored object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatefulSetSpec {
    #[serde(deserialize_with = "or_default")]
    pub(crate) replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) selector: Selector,
    pub(crate) template: PodTemplate,
    #[serde(deserialize_with = "or_default")]
    pub(crate) service_name: String,
    /// `OrderedReady` or `Parallel`.
    #[serde(deserialize_with = "or_default")]
    pub(crate) pod_management_policy: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) update_strategy: StatefulSetUpdateStrategy,
    pub(crate) revision_history_limit: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) min_ready_seconds: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ordinals: Ordinals,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatefulSetUpdateStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) rolling_update: RollingUpdate,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RollingUpdate {
    #[serde(deserialize_with = "or_default")]
    pub(crate) partition: i32,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Ordinals {
    #[serde(deserialize_with = "or_default")]
    pub(crate) start: i32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatefulSetStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) observed_generation: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ready_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) available_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) current_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) updated_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) current_revision: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) update_revision: String,
    pub(crate) collision_count: Option<i32>,
}

impl View for StatefulSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "StatefulSet";
    const PLURAL: &'static str = "statefulsets";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.stateful_sets
    }
}
