//! A pod as the node reads it: a narrow view of the API's document, defaults already filled in by the server.
//!
//! Fields that are not here are judged by name in `hotmap_support`; none is passed over in silence.

mod environment;
mod hook;
mod network;
mod probe;
mod security;
mod volume;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub(crate) use environment::{
    EnvFromSource, EnvVar, EnvVarSource, KeySelector, ObjectFieldSelector, ResourceFieldSelector,
};
pub(crate) use hook::{Hook, Lifecycle};
#[cfg(test)]
pub(crate) use network::DnsOption;
pub(crate) use network::{ContainerPort, DnsConfig, DnsPolicy, HostAlias};
pub(crate) use probe::{HttpGetAction, Port, Probe};
pub(crate) use security::{GroupsPolicy, PodSecurityContext, SecurityContext};
pub(crate) use volume::{
    ConfigMapSource, DownwardFile, DownwardSource, EmptyDirSource, HostPathSource, KeyToPath, SecretSource,
    TokenSource, Volume, VolumeMount,
};

/// One pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    pub(crate) spec: PodSpec,
    pub(crate) status: Value,
    /// Its spec holds something of a shape that this view has no place for; there is only metadata.
    #[serde(skip)]
    pub(crate) is_unreadable: bool,
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
    pub(crate) deletion_grace_period_seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
    pub(crate) hostname: String,
    pub(crate) hostname_override: String,
    pub(crate) subdomain: String,
    #[serde(rename = "setHostnameAsFQDN")]
    pub(crate) set_hostname_as_fqdn: bool,
    pub(crate) host_network: bool,
    pub(crate) host_aliases: Vec<HostAlias>,
    pub(crate) dns_policy: DnsPolicy,
    pub(crate) dns_config: Option<DnsConfig>,
    pub(crate) service_account_name: String,
    pub(crate) restart_policy: RestartPolicy,
    pub(crate) termination_grace_period_seconds: Option<i64>,
    pub(crate) active_deadline_seconds: Option<i64>,
    pub(crate) share_process_namespace: bool,
    pub(crate) readiness_gates: Vec<ReadinessGate>,
    pub(crate) init_containers: Vec<Container>,
    pub(crate) containers: Vec<Container>,
    /// Put beside the others while the pod runs, to look at it.
    pub(crate) ephemeral_containers: Vec<Container>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) security_context: PodSecurityContext,
    /// Of all containers together.
    pub(crate) resources: Option<Resources>,
}

/// A condition that somebody else sets and that readiness waits for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReadinessGate {
    pub(crate) condition_type: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

/// Where a message comes from whose container left none in its file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum TerminationMessagePolicy {
    #[default]
    File,
    FallbackToLogsOnError,
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
    pub(crate) startup_probe: Option<Probe>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) security_context: SecurityContext,
    pub(crate) tty: bool,
    pub(crate) termination_message_path: String,
    pub(crate) termination_message_policy: TerminationMessagePolicy,
    pub(crate) stdin: bool,
    pub(crate) stdin_once: bool,
    /// Of its own: `Always` makes a sidecar of an init container, nothing else is run here.
    pub(crate) restart_policy: Option<RestartPolicy>,
    /// Of an ephemeral container: whose processes it shares.
    pub(crate) target_container_name: String,
}

/// Limits and requests as canonical quantities, by resource name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    pub(crate) limits: BTreeMap<String, String>,
    pub(crate) requests: BTreeMap<String, String>,
}

impl Pod {
    /// Puts a status that this node has written in the place of the one it has read. The class is the API server's: no node writes it.
    pub(crate) fn set_status(&mut self, written: Value) {
        let class = self.status.get("qosClass").cloned();
        self.status = written;
        if let (Some(status), Some(class)) = (self.status.as_object_mut(), class) {
            status.insert("qosClass".to_owned(), class);
        }
    }

    /// Reads the view out of an API document. `null` is as good as nothing, wherever it stands.
    pub(crate) fn from_document(document: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(without_nulls(document))
    }

    /// A pod that nobody can read is a pod still: it has to fail, and to go when it is deleted.
    pub(crate) fn from_any_document(document: &Value) -> Option<Self> {
        Self::from_document(document).ok().or_else(|| {
            let metadata = &document["metadata"];
            let text = |field: &str| metadata[field].as_str().map(str::to_owned);
            let metadata = Metadata {
                name: text("name")?,
                namespace: text("namespace")?,
                uid: text("uid")?,
                resource_version: text("resourceVersion").unwrap_or_default(),
                generation: metadata["generation"].as_i64().unwrap_or_default(),
                deletion_timestamp: text("deletionTimestamp"),
                deletion_grace_period_seconds: metadata["deletionGracePeriodSeconds"].as_i64(),
                ..Metadata::default()
            };
            Some(Self {
                metadata,
                status: document["status"].clone(),
                is_unreadable: true,
                ..Self::default()
            })
        })
    }

    /// Init containers first, in the order they run; ephemeral ones last.
    pub(crate) fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.workload().chain(&self.spec.ephemeral_containers)
    }

    /// What the pod was made of: all but ephemeral containers. What concerns the pod as a whole follows from these.
    pub(crate) fn workload(&self) -> impl Iterator<Item = &Container> {
        self.spec.init_containers.iter().chain(&self.spec.containers)
    }

    /// Init containers that stay, in the order they start.
    pub(crate) fn sidecars(&self) -> impl DoubleEndedIterator<Item = &Container> {
        self.spec.init_containers.iter().filter(|one| one.is_lasting())
    }

    /// What runs for as long as the pod does: sidecars and main containers, in the order they start.
    pub(crate) fn lasting_containers(&self) -> impl Iterator<Item = &Container> {
        self.sidecars().chain(&self.spec.containers)
    }

    /// Whether an init container has this name.
    pub(crate) fn is_init(&self, container: &str) -> bool {
        self.spec.init_containers.iter().any(|one| one.name == container)
    }

    /// Whether an ephemeral container has this name.
    pub(crate) fn is_ephemeral(&self, container: &str) -> bool {
        let mut ephemeral = self.spec.ephemeral_containers.iter();
        ephemeral.any(|one| one.name == container)
    }

    /// What follows from the end of a container. An init container has to succeed once, a sidecar runs whatever the pod
    /// says, and an ephemeral container runs once.
    pub(crate) fn restart_policy_of(&self, container: &str) -> RestartPolicy {
        match self.spec.restart_policy {
            _ if self.sidecars().any(|one| one.name == container) => RestartPolicy::Always,
            _ if self.is_ephemeral(container) => RestartPolicy::Never,
            RestartPolicy::Always if self.is_init(container) => RestartPolicy::OnFailure,
            policy => policy,
        }
    }

    /// Whether the API wants this pod gone.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

impl Container {
    /// Whether this init container is a sidecar.
    pub(crate) fn is_lasting(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }
}

/// The document without the members that are null: Go writes nothing at all as null here and there.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let held = members.iter().filter(|(_, member)| !member.is_null());
            held.map(|(name, member)| (name.clone(), without_nulls(member)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_are_nothing_and_a_shape_nobody_knows_leaves_the_metadata() {
        let document = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": null,
                "deletionGracePeriodSeconds": -1},
            "spec": {"containers": [{"name": "c", "command": null, "env": null, "livenessProbe": null,
                "resources": {"limits": null}, "securityContext": {"capabilities": {"add": null}, "runAsUser": 2147483647}}],
                "initContainers": null, "volumes": [{"name": "v", "configMap": {"name": "c", "items": null}}]}, "status": null});
        let pod = Pod::from_document(&document).expect("a pod");
        assert_eq!(
            pod.spec.containers[0].security_context.run_as_user,
            Some(2_147_483_647)
        );
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(-1));

        let odd = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": "none"}});
        assert!(Pod::from_document(&odd).is_err());
        let pod = Pod::from_any_document(&odd).expect("metadata");
        assert!(pod.is_unreadable && pod.is_deleting() && pod.metadata.uid == "u");
    }

    #[test]
    fn a_written_status_leaves_the_class_that_the_api_has_given() {
        for (read, written, expected) in [
            (
                json!({"qosClass": "Burstable", "phase": "Pending"}),
                json!({"phase": "Running"}),
                json!({"qosClass": "Burstable", "phase": "Running"}),
            ),
            (
                json!(null),
                json!({"phase": "Running"}),
                json!({"phase": "Running"}),
            ),
        ] {
            let mut pod = Pod {
                status: read,
                ..Pod::default()
            };
            pod.set_status(written);
            assert_eq!(pod.status, expected);
        }
    }
}
