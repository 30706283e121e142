//! A pod as the node reads it: a narrow view of the API's document, defaults already filled in by the server.
//!
//! Fields that are not here are judged by name in `support`; none is passed over in silence.

mod environment;
mod probe;
mod security;
mod volume;

use std::collections::BTreeMap;

use serde::Deserialize;

pub(crate) use environment::{
    EnvFromSource, EnvVar, EnvVarSource, KeySelector, ObjectFieldSelector, ResourceFieldSelector,
};
pub(crate) use probe::{HttpGetAction, Port, Probe};
pub(crate) use security::{PodSecurityContext, SecurityContext};
pub(crate) use volume::{
    ConfigMapSource, DownwardFile, DownwardSource, EmptyDirSource, HostPathSource, KeyToPath, SecretSource,
    Volume, VolumeMount,
};

/// One pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    pub(crate) spec: PodSpec,
    pub(crate) status: serde_json::Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) deletion_grace_period_seconds: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
    pub(crate) hostname: String,
    pub(crate) service_account_name: String,
    pub(crate) restart_policy: RestartPolicy,
    pub(crate) termination_grace_period_seconds: Option<u64>,
    pub(crate) init_containers: Vec<Container>,
    pub(crate) containers: Vec<Container>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) security_context: PodSecurityContext,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) command: Vec<String>,
    pub(crate) args: Vec<String>,
    pub(crate) working_dir: String,
    pub(crate) env: Vec<EnvVar>,
    pub(crate) env_from: Vec<EnvFromSource>,
    pub(crate) ports: Vec<ContainerPort>,
    pub(crate) resources: Resources,
    pub(crate) volume_mounts: Vec<VolumeMount>,
    pub(crate) liveness_probe: Option<Probe>,
    pub(crate) readiness_probe: Option<Probe>,
    pub(crate) security_context: SecurityContext,
    pub(crate) tty: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerPort {
    pub(crate) name: String,
    pub(crate) container_port: u16,
}

/// Limits and requests as canonical quantities, by resource name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    pub(crate) limits: BTreeMap<String, String>,
    pub(crate) requests: BTreeMap<String, String>,
}

impl Pod {
    /// Reads the view out of an API document.
    pub(crate) fn from_document(document: &serde_json::Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(document)
    }

    /// Init containers first, in the order they run.
    pub(crate) fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.spec.init_containers.iter().chain(&self.spec.containers)
    }

    /// Whether the API wants this pod gone.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
