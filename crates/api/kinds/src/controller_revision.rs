//! ControllerRevision: what a workload looked like once.
//!
//! Rules follow `pkg/apis/apps/validation/validation.go` (`ValidateControllerRevisionCreate`), Kubernetes 1.36.

use hotmap_object::{FieldError, GroupVersionKind};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::Fields,
    rules::{IMMUTABLE, not_negative},
    table,
};

/// The rules of ControllerRevisions.
pub(crate) struct ControllerRevision;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Controller", "string", "The workload whose past this is."),
    table::column(
        "Revision",
        "string",
        "Number of the revision; the highest is the newest.",
    ),
    table::AGE,
];

impl Strategy for ControllerRevision {
    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        not_negative(&mut errors, "revision".to_owned(), object.int("revision"));
        match object.member("data") {
            Some(Value::Object(_)) => {}
            None => errors.push(FieldError::required("data", "data is mandatory")),
            Some(_) => errors.push(FieldError::required("data", "data must be a valid JSON object")),
        }
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        not_negative(&mut errors, "revision".to_owned(), new.int("revision"));
        if new.member("data") != old.member("data") {
            let value = new.member("data").cloned().unwrap_or_default();
            errors.push(FieldError::invalid("data", value, IMMUTABLE));
        }
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let owners = object.map("metadata").list("ownerReferences");
        let controller = owners
            .iter()
            .find(|owner| owner.is_set("controller"))
            .map(|owner| {
                let of = GroupVersionKind::parse(owner.text("apiVersion"), owner.text("kind"));
                let dot = if of.group.is_empty() { "" } else { "." };
                let kind = format!("{}{dot}{}", of.kind, of.group).to_lowercase();
                format!("{kind}/{}", owner.text("name"))
            });
        vec![
            table::name(object),
            table::or_none(&controller.unwrap_or_default()),
            object.int("revision").unwrap_or_default().into(),
            table::age(object, now),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{created, map, updated};

    #[test]
    fn data_is_an_object_and_stays() {
        let revision =
            |data: Value| json!({"metadata": {"name": "r", "namespace": "n"}, "data": data, "revision": 1});
        for (data, wanted) in [
            (json!({"spec": {}}), None),
            (Value::Null, Some("data: Required value: data is mandatory")),
            (
                json!([1]),
                Some("data: Required value: data must be a valid JSON object"),
            ),
        ] {
            let (_, errors) = created("apps", "controllerrevisions", revision(data.clone()));
            assert_eq!(errors, wanted.as_slice(), "{data}");
        }
        assert_eq!(
            updated(
                "apps",
                "controllerrevisions",
                revision(json!({"a": 1})),
                revision(json!({"a": 2})),
                ""
            ),
            ["data: Invalid value: {\"a\":2}: field is immutable"]
        );
    }

    #[test]
    fn a_row_names_the_controller_with_its_kind() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let object = map(json!({"metadata": {"name": "db-1", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": true}]}, "revision": 3}));
        assert_eq!(
            ControllerRevision.cells(&object, now),
            [
                json!("db-1"),
                json!("statefulset.apps/db"),
                json!(3),
                json!("<unknown>")
            ]
        );
        assert_eq!(ControllerRevision.cells(&Map::new(), now)[1], "<none>");
    }
}
