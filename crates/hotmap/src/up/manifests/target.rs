//! Which object a manifest means.

use anyhow::bail;
use hotmap_client::ResourcePath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The URL of one object, and what people call it.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) collection: ResourcePath,
    name: String,
    /// As errors name its kind: `configmaps`, `events.events.k8s.io`.
    label: String,
    /// As kubectl prints it: `configmap/a`, `event.events.k8s.io/b`.
    pub(super) printed: String,
    pub(super) id: ObjectId,
}

/// What makes an object the same one, whichever version of its kind a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectId {
    group: &'static str,
    plural: &'static str,
    namespace: String,
    name: String,
}

/// What names an object in a manifest and in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reference {
    pub(super) api_version: String,
    pub(super) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Reference {
    /// What an object says of itself.
    pub(super) fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
        }
    }
}

impl Target {
    /// # Errors
    /// A sentence when the object lacks a name or is of a kind that is not served.
    pub(super) fn of(reference: &Reference) -> anyhow::Result<Self> {
        let Reference {
            api_version,
            kind,
            namespace,
            name,
        } = reference;
        if kind.is_empty() || api_version.is_empty() {
            bail!("an object has no apiVersion or no kind");
        }
        if name.is_empty() {
            bail!("a {kind} has no metadata.name");
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let Some(resource) =
            hotmap_kinds::find_kind(group, version, kind).filter(|one| !one.prefix.is_empty())
        else {
            bail!("no matches for kind {kind:?} in version {api_version:?}");
        };
        let mut collection = ResourcePath::new(resource.group, resource.version, resource.plural);
        let namespace = match (resource.namespaced, namespace.as_str()) {
            (false, _) => "",
            (true, "") => "default",
            (true, namespace) => namespace,
        };
        if resource.namespaced {
            collection = collection.in_namespace(namespace);
        }
        Ok(Self {
            collection,
            label: resource.group_resource().to_string(),
            printed: match resource.group {
                "" => format!("{}/{name}", resource.singular),
                group => format!("{}.{group}/{name}", resource.singular),
            },
            id: ObjectId {
                group: resource.group,
                plural: resource.plural,
                namespace: namespace.to_owned(),
                name: name.clone(),
            },
            name: name.clone(),
        })
    }

    pub(super) fn object(&self) -> ResourcePath {
        self.collection.clone().name(self.name.as_str())
    }

    pub(super) fn refused(&self, error: hotmap_client::ClientError) -> anyhow::Error {
        anyhow::Error::new(error).context(format!("{} {:?}", self.label, self.name))
    }

    /// Whether everything with its namespace goes with it.
    pub(super) fn is_namespace(&self) -> bool {
        self.id.plural == "namespaces" && self.id.group.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_without_a_kind_or_name_is_named() {
        for (object, text) in [
            (
                json!({"metadata": {"name": "x"}}),
                "an object has no apiVersion or no kind",
            ),
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap"}),
                "a ConfigMap has no metadata.name",
            ),
            (
                json!({"apiVersion": "apps/v2", "kind": "Deployment", "metadata": {"name": "x"}}),
                r#"no matches for kind "Deployment" in version "apps/v2""#,
            ),
        ] {
            let refused = Target::of(&Reference::of(&object));
            assert_eq!(refused.expect_err(text).to_string(), text);
        }
    }

    #[test]
    fn objects_are_printed_as_kubectl_prints_them() {
        for (object, printed) in [
            (
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
                "configmap/a",
            ),
            (
                json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "b"}}),
                "lease.coordination.k8s.io/b",
            ),
        ] {
            let target = Target::of(&Reference::of(&object)).expect(printed);
            assert_eq!(target.printed, printed);
        }
    }

    #[test]
    fn the_namespace_that_is_left_away_is_default() {
        let id = |namespace: Value| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": namespace}});
            Target::of(&Reference::of(&object)).expect("a ConfigMap").id
        };
        assert_eq!(id(Value::Null), id("default".into()));
        assert_ne!(id(Value::Null), id("other".into()));
    }
}
