//! What the pods of a node refer to, read from the cache of pods. A pod is parsed once per revision.

use std::{collections::HashMap, sync::Arc};

use hotmap_kinds::find;
use hotmap_object::{Object, ObjectIndex, Revision};
use parking_lot::Mutex;
use serde_json::Value;

use super::Objects;
use crate::{
    authorization::references::{PodReferences, Referenced},
    cache::Selection,
};

/// Remembered pods beyond those that exist before the rest is forgotten.
const SPARE_ENTRIES: usize = 1_024;

/// What pods refer to, by uid.
#[derive(Default)]
pub(super) struct PodReferenceIndex {
    known: Mutex<HashMap<Box<str>, Known>>,
}

struct Known {
    revision: Revision,
    references: Arc<[(Referenced, Box<str>)]>,
}

impl PodReferences for Objects {
    fn node_refers_to(&self, node: &str, kind: Referenced, namespace: &str, name: &str) -> bool {
        let pods = self.pods_of(node, namespace);
        pods.iter().any(|pod| {
            let references = self.pod_references.of(pod, pods.len());
            references.iter().any(|(of, held)| *of == kind && **held == *name)
        })
    }

    fn node_of(&self, namespace: &str, pod: &str) -> Option<String> {
        let pods = find("", "v1", "pods").expect("pods are served");
        let pod = self.cache_of(pods).ok()?.get(&format!("{namespace}/{pod}"))?;
        pod.index()
            .field("spec.nodeName")
            .filter(|node| !node.is_empty())
            .map(str::to_owned)
    }
}

impl Objects {
    fn pods_of(&self, node: &str, namespace: &str) -> Vec<Arc<Object>> {
        let pods = find("", "v1", "pods").expect("pods are served");
        let Ok(cache) = self.cache_of(pods) else {
            return Vec::new();
        };
        let prefix = format!("{namespace}/");
        let matches = |index: &ObjectIndex| index.field("spec.nodeName") == Some(node);
        let selection = Selection {
            start: "",
            prefix: &prefix,
            key: None,
            limit: None,
            matches: &matches,
        };
        cache.list(&selection, self.revision()).items
    }
}

impl PodReferenceIndex {
    pub(super) fn of(&self, pod: &Object, pods: usize) -> Arc<[(Referenced, Box<str>)]> {
        let uid = &pod.index().uid;
        if let Some(known) = self.known.lock().get(uid)
            && known.revision == pod.revision()
        {
            return known.references.clone();
        }
        let references: Arc<[_]> = references(&Value::Object(pod.value())).into();
        let mut known = self.known.lock();
        if known.len() > 2 * pods + SPARE_ENTRIES {
            known.clear();
        }
        let entry = Known {
            revision: pod.revision(),
            references: references.clone(),
        };
        known.insert(uid.clone(), entry);
        references
    }
}

fn references(pod: &Value) -> Vec<(Referenced, Box<str>)> {
    let mut found = Vec::new();
    let mut note = |kind: Referenced, name: &Value| {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            found.push((kind, name.into()));
        }
    };
    let spec = &pod["spec"];
    for volume in list(&spec["volumes"]) {
        note(Referenced::ConfigMap, &volume["configMap"]["name"]);
        note(Referenced::Secret, &volume["secret"]["secretName"]);
        for source in list(&volume["projected"]["sources"]) {
            note(Referenced::ConfigMap, &source["configMap"]["name"]);
            note(Referenced::Secret, &source["secret"]["name"]);
        }
    }
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(&spec[containers]) {
            for variable in list(&container["env"]) {
                note(
                    Referenced::ConfigMap,
                    &variable["valueFrom"]["configMapKeyRef"]["name"],
                );
                note(Referenced::Secret, &variable["valueFrom"]["secretKeyRef"]["name"]);
            }
            for source in list(&container["envFrom"]) {
                note(Referenced::ConfigMap, &source["configMapRef"]["name"]);
                note(Referenced::Secret, &source["secretRef"]["name"]);
            }
        }
    }
    for secret in list(&spec["imagePullSecrets"]) {
        note(Referenced::Secret, &secret["name"]);
    }
    match &spec["serviceAccountName"] {
        Value::String(name) if !name.is_empty() => {
            note(Referenced::ServiceAccount, &spec["serviceAccountName"])
        }
        _ => note(Referenced::ServiceAccount, &Value::from("default")),
    }
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
