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
    pub(crate) grpc: Option<GrpcAction>,
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

impl HttpGetAction {
    pub(crate) fn is_https(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("https")
    }

    /// The same request for anybody to read: what authorizes is left out.
    pub(crate) fn over_plain_http(&self) -> Self {
        let mut plain = self.clone();
        plain.scheme = "HTTP".to_owned();
        plain
            .http_headers
            .retain(|one| !one.name.eq_ignore_ascii_case("authorization"));
        plain
    }
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

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GrpcAction {
    pub(crate) port: u16,
    /// `""` asks for the health of the server itself.
    pub(crate) service: String,
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
