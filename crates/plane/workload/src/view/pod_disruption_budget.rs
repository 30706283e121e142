//! What controllers see of a PodDisruptionBudget.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{IntOrPercent, Metadata, Selector, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodDisruptionBudget {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: PodDisruptionBudgetSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: PodDisruptionBudgetStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodDisruptionBudgetSpec {
    pub(crate) min_available: Option<IntOrPercent>,
    pub(crate) max_unavailable: Option<IntOrPercent>,
    /// An absent one selects nothing.
    pub(crate) selector: Option<Selector>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodDisruptionBudgetStatus {
    pub(crate) observed_generation: i64,
    /// Pods whose eviction was granted, and when.
    #[serde(deserialize_with = "or_default")]
    pub(crate) disrupted_pods: BTreeMap<String, Timestamp>,
    pub(crate) disruptions_allowed: i64,
    pub(crate) current_healthy: i64,
    pub(crate) desired_healthy: i64,
    pub(crate) expected_pods: i64,
    /// Whole: they are written as one list.
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<Value>,
}

impl View for PodDisruptionBudget {
    const API_VERSION: &'static str = "policy/v1";
    const KIND: &'static str = "PodDisruptionBudget";
    const PLURAL: &'static str = "poddisruptionbudgets";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.pod_disruption_budgets
    }
}
