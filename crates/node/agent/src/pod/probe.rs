//! Probes: what is asked, how often, and what counts.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One probe; numbers are seconds and counts, defaulted by the API server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Probe {
    #[serde(flatten)]
    pub(crate) handler: ProbeHandler,
    pub(crate) initial_delay_seconds: u64,
    pub(crate) timeout_seconds: u64,
    pub(crate) period_seconds: u64,
    pub(crate) success_threshold: u32,
    pub(crate) failure_threshold: u32,
    pub(crate) termination_grace_period_seconds: Option<i64>,
}

/// Exactly one is set; the API server sees to it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProbeHandler {
    pub(crate) exec: Option<ExecAction>,
    pub(crate) http_get: Option<HttpGetAction>,
    pub(crate) tcp_socket: Option<TcpSocketAction>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ExecAction {
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HttpGetAction {
    pub(crate) path: String,
    pub(crate) port: Port,
    pub(crate) host: String,
    pub(crate) scheme: String,
    pub(crate) http_headers: Vec<HttpHeader>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HttpHeader {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TcpSocketAction {
    pub(crate) port: Port,
    pub(crate) host: String,
}

/// A port by number, or by its name among the container's ports.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Port {
    Number(u16),
    Name(String),
}

impl Default for Port {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Port {
    /// The number, looked up among `named` ports where this is a name.
    pub(crate) fn number(&self, named: &BTreeMap<&str, u16>) -> Option<u16> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(name) => named.get(name.as_str()).copied().or_else(|| name.parse().ok()),
        }
    }
}
