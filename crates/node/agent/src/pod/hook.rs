//! Lifecycle hooks: what runs right after a container's start and right before its end.

use serde::Deserialize;

use super::{HttpGetAction, probe::ExecAction};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Lifecycle {
    pub(crate) post_start: Option<Hook>,
    pub(crate) pre_stop: Option<Hook>,
    /// Such as `SIGUSR1`; SIGTERM without.
    pub(crate) stop_signal: Option<String>,
}

/// Exactly one is set; the API server sees to it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Hook {
    pub(crate) exec: Option<ExecAction>,
    pub(crate) http_get: Option<HttpGetAction>,
    pub(crate) sleep: Option<SleepAction>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SleepAction {
    pub(crate) seconds: u64,
}
