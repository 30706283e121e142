//! What a pod says about names and ports.

use serde::Deserialize;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum DnsPolicy {
    #[default]
    ClusterFirst,
    ClusterFirstWithHostNet,
    Default,
    None,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct DnsConfig {
    pub(crate) nameservers: Vec<String>,
    pub(crate) searches: Vec<String>,
    pub(crate) options: Vec<DnsOption>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct DnsOption {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct HostAlias {
    pub(crate) ip: String,
    pub(crate) hostnames: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerPort {
    pub(crate) name: String,
    pub(crate) container_port: u16,
    pub(crate) protocol: String,
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: String,
}
