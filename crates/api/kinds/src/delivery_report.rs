//! DeliveryReport: what one node has delivered to its pods.
//!
//! A kind of ours, so all rules are ours: a node writes it, so nothing in it may grow without end.

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::Fields,
    rules::{Errors, broken, child, index, label, not_negative, subdomain},
    table,
};

/// Objects that one report speaks of. A full node (110 pods) that gives every pod a dozen objects of its own has room; all of
/// them with [`ROWS_MAX`] rows stay below the largest object that is stored, 1.5 MiB.
pub const OBJECTS_MAX: usize = 2_000;
/// Rows behind of one object: enough for people to see a pattern. The count beside them goes on.
pub const ROWS_PER_OBJECT_MAX: usize = 200;
/// Rows behind of one report.
pub const ROWS_MAX: usize = 1_000;
/// Bytes of a reason, a digest or a version.
pub const TEXT_BYTES_MAX: usize = 256;

/// The rules of DeliveryReports.
pub(crate) struct DeliveryReport;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column(
        "Objects",
        "integer",
        "ConfigMaps and Secrets that pods of the node refer to.",
    ),
    table::column(
        "Behind",
        "integer",
        "Volumes and containers that do not have the current content, or have not loaded it.",
    ),
    table::AGE,
];

impl Strategy for DeliveryReport {
    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let objects = object.list("objects");
        if objects.len() > OBJECTS_MAX {
            errors.push(FieldError::too_many("objects", objects.len(), OBJECTS_MAX));
            return errors;
        }
        let rows: usize = objects.iter().map(|one| one.list("behind").len()).sum();
        if rows > ROWS_MAX {
            errors.push(FieldError::forbidden(
                "objects",
                format!("must not hold more than {ROWS_MAX} rows behind"),
            ));
            return errors;
        }
        for (at, one) in objects.iter().enumerate() {
            check_object(&mut errors, &index("objects", at), one);
        }
        not_negative(
            &mut errors,
            "objectsOmitted".to_owned(),
            object.int("objectsOmitted"),
        );
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let objects = object.list("objects");
        let behind: i64 = objects.iter().filter_map(|one| one.int("behindCount")).sum();
        let omitted = object
            .int("objectsOmitted")
            .unwrap_or_default()
            .max(0)
            .unsigned_abs();
        vec![
            table::name(object),
            (objects.len() as u64).saturating_add(omitted).into(),
            behind.into(),
            table::age(object, now),
        ]
    }
}

fn check_object(errors: &mut Errors, path: &str, object: &Value) {
    let (of, at) = (object.map("ref"), child(path, "ref"));
    one_of(
        errors,
        child(&at, "kind"),
        of.text("kind"),
        &["ConfigMap", "Secret"],
    );
    broken(
        errors,
        &child(&at, "namespace"),
        of.text("namespace"),
        label(of.text("namespace")),
    );
    broken(
        errors,
        &child(&at, "name"),
        of.text("name"),
        subdomain(of.text("name")),
    );
    short(errors, path, object, "uid");
    let (current, at) = (object.map("current"), child(path, "current"));
    for field in ["resourceVersion", "digest"] {
        short(errors, &at, current, field);
    }
    let rows = object.list("behind");
    for field in ["consumers", "behindCount"] {
        not_negative(errors, child(path, field), object.int(field));
    }
    for field in ["reporting", "current"] {
        let counts = object.map("loaded");
        not_negative(errors, format!("{path}.loaded.{field}"), counts.int(field));
    }
    let at = child(path, "behind");
    if rows.len() > ROWS_PER_OBJECT_MAX {
        errors.push(FieldError::too_many(at, rows.len(), ROWS_PER_OBJECT_MAX));
        return;
    }
    if object.int("behindCount").unwrap_or_default() < rows.len() as i64 {
        let count = object.int("behindCount").unwrap_or_default();
        errors.push(FieldError::invalid(
            child(path, "behindCount"),
            count,
            "must not be less than the number of rows",
        ));
    }
    for (which, row) in rows.iter().enumerate() {
        check_row(errors, &index(&at, which), row);
    }
}

fn check_row(errors: &mut Errors, path: &str, row: &Value) {
    broken(
        errors,
        &child(path, "pod"),
        row.text("pod"),
        subdomain(row.text("pod")),
    );
    one_of(
        errors,
        child(path, "stage"),
        row.text("stage"),
        &["projected", "loaded"],
    );
    if !row.has("volume") && !row.has("container") {
        errors.push(FieldError::required(
            child(path, "volume"),
            "a row names a volume or a container",
        ));
    }
    for field in ["volume", "container"] {
        if row.has(field) {
            broken(
                errors,
                &child(path, field),
                row.text(field),
                label(row.text(field)),
            );
        }
    }
    if !row.has("reason") {
        errors.push(FieldError::required(child(path, "reason"), ""));
    }
    for field in ["podUID", "resourceVersion", "reason"] {
        short(errors, path, row, field);
    }
}

fn one_of(errors: &mut Errors, path: String, given: &str, allowed: &[&str]) {
    if !allowed.contains(&given) {
        errors.push(FieldError::not_supported(path, given, allowed));
    }
}

fn short(errors: &mut Errors, path: &str, object: &impl Fields, field: &str) {
    if object.text(field).len() > TEXT_BYTES_MAX {
        errors.push(FieldError::too_long(child(path, field), TEXT_BYTES_MAX));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        registry,
        testing::{map, texts, with},
    };

    fn row() -> Value {
        json!({"pod": "web-1", "podUID": "u", "volume": "cfg", "stage": "projected", "resourceVersion": "7",
            "since": "2026-01-01T00:00:00.000000Z", "reason": "references non-existent config key: b"})
    }

    fn report() -> Value {
        json!({"apiVersion": "hotmap.dev/v1alpha1", "kind": "DeliveryReport", "metadata": {"name": "node-1"}, "objects": [
            {"ref": {"kind": "ConfigMap", "namespace": "default", "name": "app"}, "uid": "u",
             "current": {"resourceVersion": "8", "digest": "sha256:00", "heardAt": "2026-01-01T00:00:00.000000Z",
                         "committedAt": "2026-01-01T00:00:00.000000Z"},
             "consumers": 2, "visibleAt": {"first": "2026-01-01T00:00:00.000000Z", "last": "2026-01-01T00:00:00.000000Z"},
             "loaded": {"reporting": 1, "current": 1}, "behind": [row()], "behindCount": 1}]})
    }

    fn check(report: Value, wanted: &[&str]) {
        let of = registry::find("hotmap.dev", "v1alpha1", "deliveryreports").expect("served");
        let conformed = hotmap_schema::conform(report, of.schema.message).expect("a report");
        assert!(conformed.unknown.is_empty(), "{:?}", conformed.unknown);
        assert_eq!(texts(&DeliveryReport.validate(&map(conformed.value))), wanted);
    }

    #[test]
    fn a_report_is_complete_and_bounded() {
        check(report(), &[]);
        let object = |changes: Value| {
            let mut report = report();
            report["objects"][0] = with(report["objects"][0].clone(), changes);
            report
        };
        check(
            object(json!({"ref": {"kind": "Pod"}})),
            &[r#"objects[0].ref.kind: Unsupported value: "Pod": supported values: "ConfigMap", "Secret""#],
        );
        check(
            object(json!({"behindCount": 0})),
            &["objects[0].behindCount: Invalid value: 0: must not be less than the number of rows"],
        );
        check(
            object(json!({"behind": vec![row(); 201], "behindCount": 201})),
            &["objects[0].behind: Too many: 201: must have at most 200 items"],
        );
        check(
            object(json!({"behind": vec![row(); 200], "behindCount": 4_000})),
            &[],
        );
        let full = with(
            report()["objects"][0].clone(),
            json!({"behind": vec![row(); 200], "behindCount": 200}),
        );
        check(
            json!({"metadata": {"name": "n"}, "objects": vec![full; 6]}),
            &["objects: Forbidden: must not hold more than 1000 rows behind"],
        );
        let row = |changes: Value| object(json!({"behind": [with(row(), changes)]}));
        check(
            row(json!({"stage": "lost", "volume": null, "reason": null})),
            &[
                r#"objects[0].behind[0].stage: Unsupported value: "lost": supported values: "projected", "loaded""#,
                "objects[0].behind[0].volume: Required value: a row names a volume or a container",
                "objects[0].behind[0].reason: Required value",
            ],
        );
        check(
            row(json!({"reason": "x".repeat(257)})),
            &["objects[0].behind[0].reason: Too long: may not be more than 256 bytes"],
        );
    }

    #[test]
    fn a_row_counts_objects_and_who_is_behind() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let mut report = report();
        report["objectsOmitted"] = json!(3);
        report["objects"][0]["behindCount"] = json!(500);
        assert_eq!(
            DeliveryReport.cells(&map(report), now),
            [json!("node-1"), json!(4), json!(500), json!("<unknown>")]
        );
    }
}
