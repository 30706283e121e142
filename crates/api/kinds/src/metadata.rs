//! Rules of `metadata`, whatever the kind.
//!
//! Rules follow `apimachinery/pkg/api/validation/objectmeta.go`, Kubernetes 1.36. Maps are walked in the order of their
//! keys; upstream's order is random.

use std::collections::BTreeSet;

use hotmap_object::{FieldError, GroupVersionKind, names};
use serde_json::{Map, Value};

use crate::{
    NameRule, Resource,
    fields::Fields,
    rules::{
        Errors, IMMUTABLE, NOT_NEGATIVE, broken, dns_1035, in_range, index, label, subdomain,
        without_trailing_dash,
    },
};

/// Keys and values of all annotations together.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
const FIELD_MANAGER_MAX: i64 = 128;
const SUBRESOURCE_NAME_MAX: usize = 256;

/// Fields of metadata that stay what they are; the server restores times before this is checked.
const IMMUTABLE_FIELDS: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Checks the metadata of an object as it will be stored: after name generation, with its namespace filled in.
pub fn validate_metadata(object: &Map<String, Value>, resource: &Resource) -> Vec<FieldError> {
    let metadata = object.map("metadata");
    let mut errors = Vec::new();
    names_of(&mut errors, metadata, resource);
    if let Some(generation) = metadata.int("generation").filter(|number| *number < 0) {
        errors.push(FieldError::invalid(
            "metadata.generation",
            generation,
            NOT_NEGATIVE,
        ));
    }
    labels(&mut errors, "metadata.labels", metadata.map("labels"));
    annotations(&mut errors, "metadata.annotations", metadata.map("annotations"));
    owners(&mut errors, metadata.list("ownerReferences"));
    finalizers(&mut errors, metadata.list("finalizers"));
    managed_fields(&mut errors, metadata.list("managedFields"));
    errors
}

/// Checks how metadata changes; what holds of the new metadata alone is [`validate_metadata`]'s.
///
/// The server has kept `creationTimestamp`, `deletionTimestamp` and `deletionGracePeriodSeconds` from the stored object
/// and has filled in `resourceVersion` for an unconditional update.
pub fn validate_metadata_update(new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<FieldError> {
    let (new, old) = (new.map("metadata"), old.map("metadata"));
    let mut errors = Vec::new();
    if old.has("deletionTimestamp") {
        no_new_finalizers(&mut errors, new, old);
    }
    let (generation, before) = (new.int("generation"), old.int("generation"));
    if generation.unwrap_or_default() < before.unwrap_or_default() {
        let number = generation.unwrap_or_default();
        errors.push(FieldError::invalid(
            "metadata.generation",
            number,
            "must not be decremented",
        ));
    }
    for field in IMMUTABLE_FIELDS {
        if new.member(field) != old.member(field) {
            let value = new.member(field).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(format!("metadata.{field}"), value, IMMUTABLE));
        }
    }
    errors
}

/// Drops exact duplicates among `metadata.ownerReferences`; returns the warning upstream sends about them.
pub fn drop_duplicate_owners(object: &mut Map<String, Value>) -> Option<String> {
    let owners = object
        .get_mut("metadata")?
        .get_mut("ownerReferences")?
        .as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut duplicates: Vec<String> = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            let uid = owner.text("uid").to_owned();
            if !duplicates.contains(&uid) {
                duplicates.push(uid);
            }
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    (!duplicates.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            duplicates.join(" ")
        )
    })
}

fn names_of(errors: &mut Errors, metadata: &Map<String, Value>, resource: &Resource) {
    let rule = |name: &str| match resource.name_rule {
        NameRule::Subdomain => subdomain(name),
        NameRule::Label => label(name),
        NameRule::Dns1035 => dns_1035(name),
        NameRule::PathSegment => names::path_segment(name),
    };
    let prefix = metadata.text("generateName");
    if !prefix.is_empty() {
        broken(
            errors,
            "metadata.generateName",
            prefix,
            rule(&without_trailing_dash(prefix)),
        );
    }
    match metadata.text("name") {
        "" => errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        )),
        name => broken(errors, "metadata.name", name, rule(name)),
    }
    match (resource.namespaced, metadata.text("namespace")) {
        (true, "") => errors.push(FieldError::required("metadata.namespace", "")),
        (true, namespace) => broken(errors, "metadata.namespace", namespace, label(namespace)),
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(
            "metadata.namespace",
            "not allowed on this type",
        )),
    }
}

/// Checks keys and values of labels, also of selectors that are spelt as labels.
pub(crate) fn labels(errors: &mut Errors, path: &str, labels: &Map<String, Value>) {
    for (key, value) in labels {
        let value = value.as_str().unwrap_or_default();
        broken(errors, path, key, names::qualified_name(key));
        broken(errors, path, value, names::label_value(value));
    }
}

/// Checks keys and the size of annotations.
pub(crate) fn annotations(errors: &mut Errors, path: &str, annotations: &Map<String, Value>) {
    let mut total = 0;
    for (key, value) in annotations {
        let rules = names::qualified_name(&key.to_lowercase());
        broken(errors, path, key, rules);
        total += key.len() + value.as_str().map_or(0, str::len);
    }
    if total > ANNOTATIONS_MAX_BYTES {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX_BYTES));
    }
}

fn owners(errors: &mut Errors, owners: &[Value]) {
    const PATH: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for owner in owners {
        owner_reference(errors, PATH, owner);
        if !owner.is_set("controller") {
            continue;
        }
        let name = format!("{}/{}", owner.text("kind"), owner.text("name"));
        match &controller {
            None => controller = Some(name),
            Some(first) => errors.push(FieldError::invalid(
                PATH,
                owners.to_vec(),
                format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                ),
            )),
        }
    }
}

fn owner_reference(errors: &mut Errors, path: &str, owner: &Value) {
    let of = GroupVersionKind::parse(owner.text("apiVersion"), owner.text("kind"));
    if of.version.is_empty() {
        let value = owner.text("apiVersion");
        errors.push(FieldError::invalid(
            format!("{path}.apiVersion"),
            value,
            "version must not be empty",
        ));
    }
    for field in ["kind", "name", "uid"] {
        if owner.text(field).is_empty() {
            errors.push(FieldError::invalid(
                format!("{path}.{field}"),
                "",
                "must not be empty",
            ));
        }
    }
    if of == GroupVersionKind::fixed("", "v1", "Event") {
        errors.push(FieldError::invalid(
            path,
            owner.clone(),
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
}

fn finalizers(errors: &mut Errors, finalizers: &[Value]) {
    const PATH: &str = "metadata.finalizers";
    let held: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
    for finalizer in &held {
        broken(errors, PATH, finalizer, names::qualified_name(finalizer));
    }
    if held.contains(&"orphan") && held.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            PATH,
            finalizers.to_vec(),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
}

fn no_new_finalizers(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    let names = |metadata: &Map<String, Value>| -> BTreeSet<String> {
        let held = metadata.list("finalizers").iter().filter_map(Value::as_str);
        held.map(str::to_owned).collect()
    };
    let before = names(old);
    let extra: Vec<String> = names(new)
        .difference(&before)
        .map(|one| format!("{one:?}"))
        .collect();
    if !extra.is_empty() {
        errors.push(FieldError::forbidden(
            "metadata.finalizers",
            format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                extra.join(", ")
            ),
        ));
    }
}

fn managed_fields(errors: &mut Errors, entries: &[Value]) {
    for (at, entry) in entries.iter().enumerate() {
        let path = index("metadata.managedFields", at);
        let operation = entry.text("operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(FieldError::invalid(
                format!("{path}.operation"),
                operation,
                "must be `Apply` or `Update`",
            ));
        }
        let fields_type = entry.text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(
                format!("{path}.fieldsType"),
                fields_type,
                "must be `FieldsV1`",
            ));
        }
        let manager = entry.text("manager");
        let length = i64::try_from(manager.len()).unwrap_or(i64::MAX);
        if !in_range(length, 0, FIELD_MANAGER_MAX).is_empty() {
            errors.push(FieldError::too_long(
                format!("{path}.manager"),
                FIELD_MANAGER_MAX as usize,
            ));
        }
        if entry.text("subresource").len() > SUBRESOURCE_NAME_MAX {
            errors.push(FieldError::too_long(
                format!("{path}.subresource"),
                SUBRESOURCE_NAME_MAX,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, resource, texts};

    fn check(metadata: Value, wanted: &[&str]) {
        let object = map(json!({ "metadata": metadata }));
        let found = texts(&validate_metadata(&object, resource("configmaps")));
        assert_eq!(found, wanted, "{object:?}");
    }

    #[test]
    fn metadata_is_checked_with_the_known_sentences() {
        check(json!({"name": "a", "namespace": "default"}), &[]);
        check(
            json!({"namespace": "default"}),
            &["metadata.name: Required value: name or generateName is required"],
        );
        check(json!({"name": "a"}), &["metadata.namespace: Required value"]);
        check(
            json!({"name": "a-x", "generateName": "a-", "namespace": "n"}),
            &[],
        );
        check(
            json!({"name": "a", "namespace": "n.x"}),
            &["metadata.namespace: Invalid value: \"n.x\": must not contain dots"],
        );
        check(
            json!({"name": "A", "namespace": "n"}),
            &[
                "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        );
        check(
            json!({"name": "a", "namespace": "n", "finalizers": ["orphan", "foregroundDeletion"]}),
            &[
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
            ],
        );
        check(
            json!({"name": "a", "namespace": "n", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}),
            &["metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"],
        );
    }

    #[test]
    fn only_one_owner_controls() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
        let object = map(
            json!({"metadata": {"name": "a", "namespace": "n", "ownerReferences": [owner("a"), owner("b")]}}),
        );
        let found = texts(&validate_metadata(&object, resource("configmaps")));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].ends_with(
                "Only one reference can have Controller set to true. Found \"true\" in references for Pod/a and Pod/b"
            ),
            "{found:?}"
        );
    }

    #[test]
    fn annotations_have_a_common_limit() {
        for (bytes, refused) in [(ANNOTATIONS_MAX_BYTES - 1, false), (ANNOTATIONS_MAX_BYTES, true)] {
            let object = map(
                json!({"metadata": {"name": "a", "namespace": "n", "annotations": {"k": "v".repeat(bytes)}}}),
            );
            let found = texts(&validate_metadata(&object, resource("configmaps")));
            let wanted: &[&str] = if refused {
                &["metadata.annotations: Too long: may not be more than 262144 bytes"]
            } else {
                &[]
            };
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn identity_does_not_change() {
        let old = map(json!({"metadata": {"name": "a", "namespace": "n", "uid": "1", "generation": 2}}));
        let table = [
            (
                json!({"name": "a", "namespace": "n", "uid": "1", "generation": 3}),
                vec![],
            ),
            (
                json!({"name": "b", "namespace": "n", "uid": "1", "generation": 2}),
                vec!["metadata.name: Invalid value: \"b\": field is immutable"],
            ),
            (
                json!({"name": "a", "namespace": "n", "uid": "2", "generation": 1}),
                vec![
                    "metadata.generation: Invalid value: 1: must not be decremented",
                    "metadata.uid: Invalid value: \"2\": field is immutable",
                ],
            ),
        ];
        for (metadata, wanted) in table {
            let new = map(json!({ "metadata": metadata }));
            assert_eq!(texts(&validate_metadata_update(&new, &old)), wanted);
        }
    }

    #[test]
    fn nothing_new_holds_up_a_deletion() {
        let old = map(
            json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}}),
        );
        let new = map(
            json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b", "c/d"]}}),
        );
        assert_eq!(
            texts(&validate_metadata_update(&new, &old)),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"c/d\"}"
            ]
        );
        assert_eq!(texts(&validate_metadata_update(&old, &new)), [""; 0]);
    }

    #[test]
    fn equal_owners_are_merged_with_a_warning() {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"});
        let mut object = map(json!({"metadata": {"ownerReferences": [owner, owner]}}));
        let warning = drop_duplicate_owners(&mut object).expect("a warning");
        assert!(warning.ends_with("duplicate UID(s) observed: u1"), "{warning}");
        assert_eq!(object.map("metadata").list("ownerReferences").len(), 1);
        assert_eq!(drop_duplicate_owners(&mut object), None);
    }
}
