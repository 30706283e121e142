//! What controllers see of a CronJob.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Metadata, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CronJob {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: CronJobSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: CronJobStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CronJobSpec {
    pub(crate) schedule: String,
    pub(crate) time_zone: Option<String>,
    /// Seconds.
    pub(crate) starting_deadline_seconds: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) concurrency_policy: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) suspend: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) job_template: JobTemplate,
    pub(crate) successful_jobs_history_limit: Option<i32>,
    pub(crate) failed_jobs_history_limit: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct JobTemplate {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: JobTemplateMetadata,
    /// A `JobSpec`.
    pub(crate) spec: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct JobTemplateMetadata {
    pub(crate) labels: Value,
    pub(crate) annotations: Value,
}

/// All of a CronJob's status: its controller writes it whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct CronJobStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) active: Vec<JobReference>,
    pub(crate) last_schedule_time: Option<Timestamp>,
    pub(crate) last_successful_time: Option<Timestamp>,
}

/// An `ObjectReference` to a Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JobReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
}

impl View for CronJob {
    const API_VERSION: &'static str = "batch/v1";
    const KIND: &'static str = "CronJob";
    const PLURAL: &'static str = "cronjobs";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.cron_jobs
    }
}
