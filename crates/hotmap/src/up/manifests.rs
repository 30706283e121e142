//! `-f`: applies manifests once, as `kubectl apply` would.
//!
//! What a file said the last time is kept in the annotation that kubectl uses, so that a field taken out of the file goes
//! from the object too, and kubectl can go on from there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use hotmap_client::{Client, PatchType, ResourcePath, WriteParams};
use serde_json::{Map, Value, json};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const FIELD_MANAGER: &str = "hotmap-up";
/// Endings of the files that a directory is searched for, as kubectl's.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Applies every manifest, file by file in order; returns a line about each object.
///
/// Stops at the first that is refused: what was applied before it stays.
pub(super) async fn apply(client: &Client, paths: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for file in files(paths)? {
        let documents = read(&file)?;
        for document in documents {
            let line = apply_one(client, document)
                .await
                .with_context(|| file.display().to_string())?;
            lines.push(line);
        }
    }
    Ok(lines)
}

fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let cannot_read = || format!("cannot read {}", path.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(path).with_context(cannot_read)? {
            let file = entry.with_context(cannot_read)?.path();
            if file
                .extension()
                .and_then(|ending| ending.to_str())
                .is_some_and(|ending| ENDINGS.contains(&ending))
            {
                found.push(file);
            }
        }
        if found.is_empty() {
            bail!("{} holds no .yaml, .yml or .json file", path.display());
        }
        found.sort_unstable();
        files.extend(found);
    }
    Ok(files)
}

/// The objects of a file: several documents, and lists taken apart.
fn read(file: &Path) -> anyhow::Result<Vec<Value>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let parsed = hotmap_schema::yaml::parse_all(&bytes).with_context(|| file.display().to_string())?;
    let mut objects = Vec::new();
    for (document, duplicates) in parsed {
        if let Some(duplicate) = duplicates.first() {
            bail!("{}: {duplicate}", file.display());
        }
        match document {
            Value::Null => {}
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                let items = list.remove("items").unwrap_or_default();
                objects.extend(items.as_array().cloned().unwrap_or_default());
            }
            object => objects.push(object),
        }
    }
    Ok(objects)
}

async fn apply_one(client: &Client, mut wanted: Value) -> anyhow::Result<String> {
    let target = Target::of(&wanted)?;
    let written = wanted.to_string();
    wanted["metadata"]["annotations"][LAST_APPLIED] = written.clone().into();
    let write = WriteParams {
        field_manager: FIELD_MANAGER.to_owned(),
        field_validation: "Strict",
        ..WriteParams::default()
    };
    let outcome = match client.get(&target.object()).await {
        Err(error) if error.is_not_found() => {
            client
                .create(&target.collection, &wanted, &write)
                .await
                .map_err(|error| target.refused(error))?;
            "created"
        }
        Err(error) => return Err(target.refused(error)),
        Ok(held) => {
            let current: Value = held.parse()?;
            let last = current["metadata"]["annotations"][LAST_APPLIED].as_str();
            if last == Some(&written) {
                "unchanged"
            } else {
                let last = last
                    .and_then(|text| serde_json::from_str(text).ok())
                    .unwrap_or(Value::Null);
                let patch = removals(&last, &wanted);
                let patch = overlaid(patch, &wanted);
                let patched = client
                    .patch(&target.object(), PatchType::StrategicMerge, &patch, &write)
                    .await;
                patched.map_err(|error| target.refused(error))?;
                "configured"
            }
        }
    };
    Ok(format!("{} {outcome}", target.printed))
}

/// The URL of one object, and what people call it.
struct Target {
    collection: ResourcePath,
    name: String,
    /// As errors name its kind: `configmaps`, `events.events.k8s.io`.
    label: String,
    /// As kubectl prints it: `configmap/a`, `event.events.k8s.io/b`.
    printed: String,
}

impl Target {
    fn of(object: &Value) -> anyhow::Result<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let name = text(&object["metadata"]["name"]);
        if kind.is_empty() || api_version.is_empty() {
            bail!("an object has no apiVersion or no kind");
        }
        if name.is_empty() {
            bail!("a {kind} has no metadata.name");
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let Some(resource) =
            hotmap_kinds::find_kind(group, version, &kind).filter(|one| !one.prefix.is_empty())
        else {
            bail!("no matches for kind {kind:?} in version {api_version:?}");
        };
        let mut collection = ResourcePath::new(resource.group, resource.version, resource.plural);
        if resource.namespaced {
            let namespace = text(&object["metadata"]["namespace"]);
            collection = collection.in_namespace(if namespace.is_empty() {
                "default".to_owned()
            } else {
                namespace
            });
        }
        Ok(Self {
            collection,
            label: resource.group_resource().to_string(),
            printed: match resource.group {
                "" => format!("{}/{name}", resource.singular),
                group => format!("{}.{group}/{name}", resource.singular),
            },
            name,
        })
    }

    fn object(&self) -> ResourcePath {
        self.collection.clone().name(self.name.as_str())
    }

    fn refused(&self, error: hotmap_client::ClientError) -> anyhow::Error {
        anyhow::Error::new(error).context(format!("{} {:?}", self.label, self.name))
    }
}

/// A merge patch that takes away what `last` had and `wanted` has no more.
fn removals(last: &Value, wanted: &Value) -> Value {
    let (Value::Object(last), Value::Object(wanted)) = (last, wanted) else {
        return json!({});
    };
    let mut patch = Map::new();
    for (key, held) in last {
        match wanted.get(key) {
            None => drop(patch.insert(key.clone(), Value::Null)),
            Some(still) if held.is_object() => {
                let below = removals(held, still);
                if below.as_object().is_some_and(|below| !below.is_empty()) {
                    patch.insert(key.clone(), below);
                }
            }
            Some(_) => {}
        }
    }
    patch.into()
}

/// `wanted` over a patch of removals.
fn overlaid(patch: Value, wanted: &Value) -> Value {
    match (patch, wanted) {
        (Value::Object(mut patch), Value::Object(wanted)) => {
            for (key, value) in wanted {
                let below = patch.remove(key).unwrap_or(Value::Null);
                patch.insert(key.clone(), overlaid(below, value));
            }
            patch.into()
        }
        (_, wanted) => wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_the_file_leaves_the_object() {
        let last = json!({"data": {"a": "1", "b": "2"}, "immutable": false});
        let wanted = json!({"data": {"a": "3"}, "metadata": {"name": "x"}});
        let patch = overlaid(removals(&last, &wanted), &wanted);
        assert_eq!(
            patch,
            json!({"data": {"a": "3", "b": null}, "immutable": null, "metadata": {"name": "x"}})
        );
    }

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
            assert_eq!(Target::of(&object).err().expect(text).to_string(), text);
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
            assert_eq!(Target::of(&object).expect(printed).printed, printed);
        }
    }
}
