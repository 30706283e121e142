//! Namespace: active until it is deleted, and gone when the last finalizer of its spec is.
//!
//! Rules follow `pkg/registry/core/namespace/strategy.go` and `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::{FieldError, names};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, map_mut, set_default},
    rules::{Errors, broken, index},
    table,
};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const FINALIZER: &str = "kubernetes";
const STANDARD_FINALIZERS: [&str; 3] = [FINALIZER, "orphan", "foregroundDeletion"];

/// The rules of Namespaces.
pub(crate) struct Namespace;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column(
        "Status",
        "string",
        "`Active`, or `Terminating` once it is being deleted.",
    ),
    table::AGE,
];

impl Strategy for Namespace {
    fn default(&self, object: &mut Map<String, Value>) {
        label_with_name(object);
        if let Some(status) = map_mut(object, "status") {
            set_default(status, "phase", "Active");
        }
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        // A generated name was not known yet when defaults were set.
        label_with_name(object);
        object.insert("status".to_owned(), json!({"phase": "Active"}));
        let Some(spec) = map_mut(object, "spec") else {
            return;
        };
        let mut finalizers = spec.list("finalizers").to_vec();
        if !finalizers.iter().any(|one| one == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        spec.insert("finalizers".to_owned(), finalizers.into());
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        match subresource {
            "status" => keep(new, old, "spec"),
            "finalize" => keep(new, old, "status"),
            _ => {
                keep(new, old, "status");
                if let Some(spec) = map_mut(new, "spec") {
                    keep(spec, old.map("spec"), "finalizers");
                }
            }
        }
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for finalizer in object.map("spec").list("finalizers") {
            finalizer_name(&mut errors, "spec.finalizers", finalizer);
        }
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        _old: &Map<String, Value>,
        subresource: &str,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        match subresource {
            "status" => phase(&mut errors, new),
            "finalize" => {
                for (at, finalizer) in new.map("spec").list("finalizers").iter().enumerate() {
                    finalizer_name(&mut errors, &index("spec.finalizers", at), finalizer);
                }
            }
            _ => errors = self.validate(new),
        }
        errors
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.phase"]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        vec![("status.phase", object.map("status").text("phase").to_owned())]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let phase = object.map("status").text("phase");
        vec![table::name(object), phase.into(), table::age(object, now)]
    }
}

fn label_with_name(object: &mut Map<String, Value>) {
    let name = object.map("metadata").text("name").to_owned();
    if !name.is_empty()
        && let Some(metadata) = map_mut(object, "metadata")
        && let Some(labels) = map_mut(metadata, "labels")
    {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

fn finalizer_name(errors: &mut Errors, path: &str, finalizer: &Value) {
    let finalizer = finalizer.as_str().unwrap_or_default();
    broken(errors, path, finalizer, names::qualified_name(finalizer));
    if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
        errors.push(FieldError::invalid(
            path,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        ));
    }
}

fn phase(errors: &mut Errors, new: &Map<String, Value>) {
    let phase = new.map("status").text("phase");
    let (wanted, rule) = if new.map("metadata").has("deletionTimestamp") {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase != wanted {
        errors.push(FieldError::invalid("status.Phase", phase, rule));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn a_new_namespace_is_active_finalized_and_labelled() {
        let mut object = map(json!({"metadata": {"name": "a"}, "status": {"phase": "Terminating"}}));
        Namespace.default(&mut object);
        Namespace.prepare_for_create(&mut object);
        assert_eq!(
            Value::Object(object),
            json!({"metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
                   "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})
        );
    }

    #[test]
    fn each_path_writes_its_own_part() {
        let old = map(json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}));
        let written = json!({"spec": {"finalizers": []}, "status": {"phase": "Terminating"}});
        let table = [
            (
                "",
                json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}),
            ),
            (
                "status",
                json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"}}),
            ),
            (
                "finalize",
                json!({"spec": {"finalizers": []}, "status": {"phase": "Active"}}),
            ),
        ];
        for (subresource, wanted) in table {
            let mut new = map(written.clone());
            Namespace.prepare_for_update(&mut new, &old, subresource);
            assert_eq!(Value::Object(new), wanted, "{subresource:?}");
        }
    }

    #[test]
    fn finalizers_and_phases_are_checked() {
        let object =
            map(json!({"spec": {"finalizers": ["kubernetes", "a/b", "own"]}, "status": {"phase": "X"}}));
        let rule = "name is neither a standard finalizer name nor is it fully qualified";
        let table = [
            ("", format!("spec.finalizers: Invalid value: \"own\": {rule}")),
            (
                "finalize",
                format!("spec.finalizers[2]: Invalid value: \"own\": {rule}"),
            ),
            (
                "status",
                "status.Phase: Invalid value: \"X\": may only be 'Active' if `deletionTimestamp` is empty"
                    .to_owned(),
            ),
        ];
        for (subresource, wanted) in table {
            assert_eq!(
                texts(&Namespace.validate_update(&object, &object, subresource)),
                [wanted],
                "{subresource:?}"
            );
        }
    }
}
