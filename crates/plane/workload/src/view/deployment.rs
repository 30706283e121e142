//! What controllers see of a Deployment.

use jiff::Timestamp;
use serde::Deserialize;

use super::{IntOrPercent, Metadata, PodTemplate, Selector, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Deployment {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: DeploymentSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: DeploymentStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DeploymentSpec {
    /// The server's default is 1 and is always there.
    #[serde(deserialize_with = "or_default")]
    pub(crate) replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) selector: Selector,
    pub(crate) template: PodTemplate,
    #[serde(deserialize_with = "or_default")]
    pub(crate) strategy: Strategy,
    #[serde(deserialize_with = "or_default")]
    pub(crate) min_ready_seconds: i32,
    pub(crate) revision_history_limit: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) paused: bool,
    pub(crate) progress_deadline_seconds: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Strategy {
    #[serde(rename = "type")]
    pub(crate) kind: StrategyType,
    #[serde(deserialize_with = "or_default")]
    pub(crate) rolling_update: RollingUpdate,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum StrategyType {
    #[default]
    RollingUpdate,
    Recreate,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RollingUpdate {
    pub(crate) max_surge: Option<IntOrPercent>,
    pub(crate) max_unavailable: Option<IntOrPercent>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DeploymentStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) observed_generation: i64,
    #[serde(deserialize_with = "or_default")]
    pub(crate) replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) updated_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ready_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) available_replicas: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) unavailable_replicas: i32,
    pub(crate) terminating_replicas: Option<i32>,
    pub(crate) collision_count: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<DeploymentCondition>,
}

/// A condition that also says when it was last confirmed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct DeploymentCondition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: String,
    pub(crate) last_update_time: Option<Timestamp>,
    pub(crate) last_transition_time: Option<Timestamp>,
}

impl DeploymentStatus {
    pub(crate) fn condition(&self, kind: &str) -> Option<&DeploymentCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

impl View for Deployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
    const PLURAL: &'static str = "deployments";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.deployments
    }
}
