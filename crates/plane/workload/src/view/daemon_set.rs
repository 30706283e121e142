//! What the controller sees of a DaemonSet.

use serde::Deserialize;

use super::{IntOrPercent, Metadata, PodTemplate, Selector, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct DaemonSet {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: DaemonSetSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: DaemonSetStatus,
}

/// Fields with a default are set by the server in every stored object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DaemonSetSpec {
    #[serde(deserialize_with = "or_default")]
    pub(crate) selector: Selector,
    pub(crate) template: PodTemplate,
    #[serde(deserialize_with = "or_default")]
    pub(crate) update_strategy: DaemonSetUpdateStrategy,
    #[serde(deserialize_with = "or_default")]
    pub(crate) min_ready_seconds: i32,
    pub(crate) revision_history_limit: Option<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DaemonSetUpdateStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) rolling_update: DaemonSetRollingUpdate,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DaemonSetRollingUpdate {
    pub(crate) max_unavailable: Option<IntOrPercent>,
    pub(crate) max_surge: Option<IntOrPercent>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DaemonSetStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) observed_generation: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) desired_number_scheduled: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) current_number_scheduled: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) number_misscheduled: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) number_ready: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) updated_number_scheduled: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) number_available: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) number_unavailable: i64,
    pub(crate) collision_count: Option<i32>,
}

impl View for DaemonSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "DaemonSet";
    const PLURAL: &'static str = "daemonsets";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.daemon_sets
    }
}
