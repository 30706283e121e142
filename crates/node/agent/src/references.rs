//! Which ConfigMaps and Secrets a pod reads: what the node follows on its behalf.
//!
//! The rule is `pkg/kubelet/util/manager` with `pkg/api/v1/pod/util.go`, Kubernetes 1.36: every container kind's env
//! and envFrom, and every volume, mounted or not. References stay in the pod's own namespace.

use std::collections::BTreeSet;

use crate::pod::{Container, Pod, Volume};

/// The two kinds that are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ObjectKind {
    ConfigMap,
    Secret,
}

impl ObjectKind {
    /// Plural, as in URLs.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    /// Singular in lower case, as the kubelet's errors say it.
    pub(crate) fn singular(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }

    /// As `kind` spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

/// One ConfigMap or Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectRef {
    pub(crate) kind: ObjectKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Everything the pod reads.
pub(crate) fn of_pod(pod: &Pod) -> BTreeSet<ObjectRef> {
    let mut found = Found {
        namespace: &pod.metadata.namespace,
        refs: BTreeSet::new(),
    };
    for container in pod.all_containers() {
        found.add_environment(container);
    }
    for volume in &pod.spec.volumes {
        found.add_volume(volume);
    }
    found.refs
}

/// What the environment of one container reads.
pub(crate) fn of_environment(namespace: &str, container: &Container) -> BTreeSet<ObjectRef> {
    let mut found = Found {
        namespace,
        refs: BTreeSet::new(),
    };
    found.add_environment(container);
    found.refs
}

/// What one volume reads.
pub(crate) fn of_volume(namespace: &str, volume: &Volume) -> BTreeSet<ObjectRef> {
    let mut found = Found {
        namespace,
        refs: BTreeSet::new(),
    };
    found.add_volume(volume);
    found.refs
}

struct Found<'a> {
    namespace: &'a str,
    refs: BTreeSet<ObjectRef>,
}

impl Found<'_> {
    fn add(&mut self, kind: ObjectKind, name: &str) {
        if !name.is_empty() {
            self.refs.insert(ObjectRef {
                kind,
                namespace: self.namespace.to_owned(),
                name: name.to_owned(),
            });
        }
    }

    fn add_environment(&mut self, container: &Container) {
        for source in &container.env_from {
            source
                .config_map_ref
                .iter()
                .for_each(|one| self.add(ObjectKind::ConfigMap, &one.name));
            source
                .secret_ref
                .iter()
                .for_each(|one| self.add(ObjectKind::Secret, &one.name));
        }
        for source in container
            .env
            .iter()
            .filter_map(|variable| variable.value_from.as_ref())
        {
            source
                .config_map_key_ref
                .iter()
                .for_each(|one| self.add(ObjectKind::ConfigMap, &one.name));
            source
                .secret_key_ref
                .iter()
                .for_each(|one| self.add(ObjectKind::Secret, &one.name));
        }
    }

    fn add_volume(&mut self, volume: &Volume) {
        volume
            .config_map
            .iter()
            .for_each(|one| self.add(ObjectKind::ConfigMap, &one.name));
        volume
            .secret
            .iter()
            .for_each(|one| self.add(ObjectKind::Secret, &one.secret_name));
        for source in volume.projected.iter().flat_map(|projected| &projected.sources) {
            source
                .config_map
                .iter()
                .for_each(|one| self.add(ObjectKind::ConfigMap, &one.name));
            source
                .secret
                .iter()
                .for_each(|one| self.add(ObjectKind::Secret, &one.secret_name));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_way_to_name_an_object_is_seen() {
        let document = json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {
            "initContainers": [{"name": "i", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s1", "key": "k"}}}]}],
            "containers": [{"name": "c",
                "envFrom": [{"configMapRef": {"name": "c1"}}, {"secretRef": {"name": "s2"}}],
                "env": [{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}}]}],
            "volumes": [{"name": "v", "configMap": {"name": "c3"}}, {"name": "w", "secret": {"secretName": "s3"}},
                {"name": "x", "projected": {"sources": [{"configMap": {"name": "c4"}}, {"secret": {"name": "s4"}}]}},
                {"name": "y", "emptyDir": {}}]}});
        let pod = Pod::from_document(&document).expect("a pod");
        let names: Vec<String> = of_pod(&pod)
            .into_iter()
            .map(|one| format!("{}/{}", one.kind.singular(), one.name))
            .collect();
        let expected = [
            "configmap/c1",
            "configmap/c2",
            "configmap/c3",
            "configmap/c4",
            "secret/s1",
            "secret/s2",
            "secret/s3",
            "secret/s4",
        ];
        assert_eq!(names, expected);
    }
}
