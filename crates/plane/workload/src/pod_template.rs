//! Pods out of a template.
//!
//! Source: `GetPodFromTemplate` in `pkg/controller/controller_utils.go`, Kubernetes 1.36.

use serde_json::{Map, Value, json};

use crate::{claims::controller_reference, view::View};

/// The longest beginning of a generated name: the server adds five characters, and a name has 63.
const GENERATE_NAME_CHARS_MAX: usize = 58;

/// The pod that `owner` creates from `template` (a `PodTemplateSpec`), with a generated name.
pub(crate) fn pod_from<V: View>(template: &Value, owner: &V) -> Value {
    let from = &template["metadata"];
    let mut metadata = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(held) = from.get(field).filter(|held| !held.is_null()) {
            metadata.insert(field.to_owned(), held.clone());
        }
    }
    metadata.insert(
        "generateName".to_owned(),
        generate_name(&owner.metadata().name).into(),
    );
    metadata.insert("namespace".to_owned(), owner.metadata().namespace.as_str().into());
    metadata.insert("ownerReferences".to_owned(), json!([controller_reference(owner)]));
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

/// What names of `owner`'s pods begin with.
pub(crate) fn generate_name(owner: &str) -> String {
    let mut prefix = format!("{owner}-");
    // Names are ASCII, the server has checked that.
    prefix.truncate(GENERATE_NAME_CHARS_MAX.min(prefix.len()));
    prefix
}
