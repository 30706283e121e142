//! What controllers see of a Job.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Metadata, PodTemplate, Selector, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Job {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: JobSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: JobStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobSpec {
    pub(crate) parallelism: Option<i32>,
    pub(crate) completions: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) completion_mode: String,
    pub(crate) backoff_limit: Option<i32>,
    pub(crate) backoff_limit_per_index: Option<i32>,
    pub(crate) max_failed_indexes: Option<i32>,
    /// Seconds.
    pub(crate) active_deadline_seconds: Option<i64>,
    /// Seconds.
    pub(crate) ttl_seconds_after_finished: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) suspend: bool,
    pub(crate) managed_by: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) pod_replacement_policy: String,
    pub(crate) pod_failure_policy: Option<PodFailurePolicy>,
    pub(crate) success_policy: Option<SuccessPolicy>,
    pub(crate) selector: Option<Selector>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) template: PodTemplate,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodFailurePolicy {
    #[serde(deserialize_with = "or_default")]
    pub(crate) rules: Vec<PodFailurePolicyRule>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodFailurePolicyRule {
    pub(crate) action: String,
    pub(crate) on_exit_codes: Option<OnExitCodes>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) on_pod_conditions: Vec<OnPodCondition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OnExitCodes {
    pub(crate) container_name: Option<String>,
    pub(crate) operator: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) values: Vec<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OnPodCondition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SuccessPolicy {
    #[serde(deserialize_with = "or_default")]
    pub(crate) rules: Vec<SuccessPolicyRule>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SuccessPolicyRule {
    pub(crate) succeeded_indexes: Option<String>,
    pub(crate) succeeded_count: Option<i32>,
}

/// All of a Job's status: its controller writes it whole.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) active: i32,
    pub(crate) ready: Option<i32>,
    pub(crate) terminating: Option<i32>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) succeeded: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) failed: i32,
    pub(crate) start_time: Option<Timestamp>,
    pub(crate) completion_time: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) completed_indexes: String,
    pub(crate) failed_indexes: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) uncounted_terminated_pods: UncountedTerminatedPods,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<JobCondition>,
}

/// Uids of pods whose end is known and not in the counters yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct UncountedTerminatedPods {
    #[serde(deserialize_with = "or_default")]
    pub(crate) succeeded: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) failed: Vec<String>,
}

impl UncountedTerminatedPods {
    pub(crate) fn is_empty(&self) -> bool {
        self.succeeded.is_empty() && self.failed.is_empty()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobCondition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: String,
    pub(crate) last_probe_time: Option<Timestamp>,
    pub(crate) last_transition_time: Option<Timestamp>,
}

/// How a Job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    Failed,
}

impl Ending {
    /// The condition that says so.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

impl Job {
    /// How it ended and when; nothing while it has not.
    pub(crate) fn ending(&self) -> Option<(Ending, Option<Timestamp>)> {
        self.status.conditions.iter().find_map(|condition| {
            let ending = match condition.kind.as_str() {
                "Complete" => Ending::Complete,
                "Failed" => Ending::Failed,
                _ => return None,
            };
            (condition.status == "True").then_some((ending, condition.last_transition_time))
        })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.ending().is_some()
    }
}

impl JobStatus {
    /// A condition that is true.
    pub(crate) fn true_condition(&self, kind: &str) -> Option<&JobCondition> {
        self.conditions
            .iter()
            .find(|condition| condition.kind == kind && condition.status == "True")
    }
}

impl View for Job {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "Job";
    const PLURAL: &'static str = "jobs";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.jobs
    }
}
