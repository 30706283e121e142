//! A pod as far as deliveries are concerned: which volumes and containers use an object.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{ObjectKind, Target};

/// How a pod uses an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// A volume that a container mounts.
    Volume(String),
    /// The variables of a container.
    Environment(String),
    /// A part of a volume, in a container.
    SubPath {
        /// The container.
        container: String,
        /// The volume.
        volume: String,
    },
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(volume) => write!(f, "volume/{volume}"),
            Self::Environment(container) => write!(f, "env/{container}"),
            Self::SubPath { container, volume } => write!(f, "subPath/{container}:{volume}"),
        }
    }
}

impl Serialize for Via {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What is read of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodView {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(deserialize_with = "or_default")]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) node_name: String,
    #[serde(deserialize_with = "or_default")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "or_default")]
    volumes: Vec<Volume>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: String,
    #[serde(deserialize_with = "or_default")]
    env: Vec<EnvVar>,
    #[serde(deserialize_with = "or_default")]
    env_from: Vec<EnvFrom>,
    #[serde(deserialize_with = "or_default")]
    volume_mounts: Vec<Mount>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mount {
    name: String,
    sub_path: String,
    sub_path_expr: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EnvVar {
    value_from: Option<ValueFrom>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ValueFrom {
    config_map_key_ref: Option<Named>,
    secret_key_ref: Option<Named>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EnvFrom {
    config_map_ref: Option<Named>,
    secret_ref: Option<Named>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    config_map: Option<Named>,
    secret: Option<Named>,
    projected: Option<Projected>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Projected {
    #[serde(deserialize_with = "or_default")]
    sources: Vec<Volume>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Named {
    name: String,
    secret_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) phase: String,
    pub(crate) start_time: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "or_default")]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    restart_count: u32,
    #[serde(deserialize_with = "or_default")]
    state: RunState,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RunState {
    running: Option<serde_json::Value>,
    terminated: Option<serde_json::Value>,
}

/// Go writes nothing at all as null here and there.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

/// How far a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Waits,
    Runs,
    Ended,
}

impl PodView {
    /// Whether it runs, or shall.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether any container has ever started: then its volumes were all there.
    pub(crate) fn has_started(&self) -> bool {
        let mut all = self
            .status
            .init_container_statuses
            .iter()
            .chain(&self.status.container_statuses);
        all.any(|one| one.state.running.is_some() || one.state.terminated.is_some() || one.restart_count > 0)
    }

    pub(crate) fn run(&self, container: &str) -> Run {
        let mut all = self
            .status
            .init_container_statuses
            .iter()
            .chain(&self.status.container_statuses);
        match all.find(|one| one.name == container) {
            Some(one) if one.state.running.is_some() => Run::Runs,
            Some(one) if one.state.terminated.is_some() => Run::Ended,
            _ => Run::Waits,
        }
    }

    /// Every way in which the pod uses the object.
    pub(crate) fn uses(&self, target: &Target) -> Vec<Via> {
        let containers = || self.spec.init_containers.iter().chain(&self.spec.containers);
        let volumes: Vec<&Volume> = self
            .spec
            .volumes
            .iter()
            .filter(|volume| volume.uses(target))
            .collect();
        let is_live = self
            .metadata
            .annotations
            .get("hotmap.dev/live-subpath")
            .is_some_and(|set| set == "true");
        let mut uses = Vec::new();
        for volume in &volumes {
            let mut mounts = containers().flat_map(|container| &container.volume_mounts);
            if mounts.any(|mount| mount.name == volume.name) {
                uses.push(Via::Volume(volume.name.clone()));
            }
        }
        for container in containers() {
            if container.reads(target) {
                uses.push(Via::Environment(container.name.clone()));
            }
            for mount in container
                .volume_mounts
                .iter()
                .filter(|mount| mount.is_part() && !is_live)
            {
                let via = Via::SubPath {
                    container: container.name.clone(),
                    volume: mount.name.clone(),
                };
                if volumes.iter().any(|volume| volume.name == mount.name) && !uses.contains(&via) {
                    uses.push(via);
                }
            }
        }
        uses
    }
}

impl Mount {
    fn is_part(&self) -> bool {
        !self.sub_path.is_empty() || !self.sub_path_expr.is_empty()
    }
}

impl Volume {
    fn uses(&self, target: &Target) -> bool {
        let of_kind = match target.kind {
            ObjectKind::ConfigMap => &self.config_map,
            ObjectKind::Secret => &self.secret,
        };
        let is_it = |one: &Named| one.name == target.name || one.secret_name == target.name;
        of_kind.as_ref().is_some_and(is_it)
            || self
                .projected
                .iter()
                .flat_map(|projected| &projected.sources)
                .any(|source| source.uses(target))
    }
}

impl Container {
    fn reads(&self, target: &Target) -> bool {
        let values = self
            .env
            .iter()
            .filter_map(|variable| variable.value_from.as_ref());
        let mut named = values
            .map(|value| match target.kind {
                ObjectKind::ConfigMap => &value.config_map_key_ref,
                ObjectKind::Secret => &value.secret_key_ref,
            })
            .chain(self.env_from.iter().map(|source| match target.kind {
                ObjectKind::ConfigMap => &source.config_map_ref,
                ObjectKind::Secret => &source.secret_ref,
            }))
            .flatten();
        named.any(|one| one.name == target.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_use_an_object_is_seen() {
        let pod: PodView = serde_json::from_value(json!({"metadata": {"name": "p", "annotations": null}, "spec": {
            "initContainers": [{"name": "i", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}],
            "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "a"}}], "volumeMounts": [
                {"name": "v", "mountPath": "/v"}, {"name": "x", "mountPath": "/x", "subPath": "k"}, {"name": "x", "mountPath": "/y", "subPath": "l"}]},
                {"name": "d", "env": [{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}, {"name": "C", "value": "a"}]}],
            "volumes": [{"name": "v", "configMap": {"name": "a"}}, {"name": "unmounted", "configMap": {"name": "a"}},
                {"name": "x", "projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "s"}}]}},
                {"name": "w", "secret": {"secretName": "s"}}]}}))
        .expect("a pod");
        let uses = |target: &str| -> String {
            let target = Target::parse(target, "default").expect("a target");
            let uses: Vec<String> = pod.uses(&target).iter().map(Via::to_string).collect();
            uses.join(" ")
        };
        assert_eq!(uses("cm/a"), "volume/v volume/x env/c subPath/c:x env/d");
        assert_eq!(uses("secret/s"), "volume/x env/i subPath/c:x");
        assert_eq!(uses("cm/s"), "");
    }
}
