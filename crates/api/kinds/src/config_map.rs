//! ConfigMap: keys that can be file names, a common size limit, and the promise of `immutable`.
//!
//! Rules follow `pkg/apis/core/validation/validation.go` (`ValidateConfigMap`), Kubernetes 1.36.

use hotmap_object::{FieldError, names};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::Fields,
    rules::{Errors, FROZEN, broken, key},
    table,
};

/// Values of one ConfigMap or Secret together; keys do not count.
pub(crate) const VALUES_MAX_BYTES: usize = 1024 * 1024;

/// The rules of ConfigMaps.
pub(crate) struct ConfigMap;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Data", "integer", "Number of keys, binary ones included."),
    table::AGE,
];

impl Strategy for ConfigMap {
    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (data, binary) = (object.map("data"), object.map("binaryData"));
        for name in data.keys() {
            let path = key("data", name);
            broken(&mut errors, &path, name, names::config_key(name));
            if binary.contains_key(name) {
                errors.push(FieldError::invalid(
                    path,
                    name.as_str(),
                    "duplicate of key present in binaryData",
                ));
            }
        }
        for name in binary.keys() {
            broken(
                &mut errors,
                &key("binaryData", name),
                name,
                names::config_key(name),
            );
        }
        if text_bytes(data) + decoded_bytes(binary) > VALUES_MAX_BYTES {
            // The whole object is too large, which upstream writes as an empty path.
            errors.push(FieldError::too_long("[]", VALUES_MAX_BYTES));
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
        keeps_promise(&mut errors, new, old, &["data", "binaryData"]);
        errors.extend(self.validate(new));
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let count = object.map("data").len() + object.map("binaryData").len();
        vec![table::name(object), count.into(), table::age(object, now)]
    }
}

/// Once `immutable` is true it stays so, and `fields` stay what they are.
pub(crate) fn keeps_promise(
    errors: &mut Errors,
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    fields: &[&str],
) {
    if !old.is_set("immutable") {
        return;
    }
    if !new.is_set("immutable") {
        errors.push(FieldError::forbidden("immutable", FROZEN));
    }
    let changed = fields.iter().filter(|field| new.map(field) != old.map(field));
    errors.extend(changed.map(|field| FieldError::forbidden(*field, FROZEN)));
}

fn text_bytes(data: &Map<String, Value>) -> usize {
    data.values().filter_map(Value::as_str).map(str::len).sum()
}

/// How many bytes base64 values stand for; exact for the padded form that the schema has checked.
pub(crate) fn decoded_bytes(data: &Map<String, Value>) -> usize {
    data.values()
        .filter_map(Value::as_str)
        .map(|text| text.trim_end_matches('=').len() * 3 / 4)
        .sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn keys_and_sizes_are_checked() {
        let long = "k".repeat(254);
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
        let table = [
            (json!({"data": {"app.yaml": "x", "a..b": ""}}), vec![]),
            (
                json!({"data": {"..x": "x"}}),
                vec!["data[..x]: Invalid value: \"..x\": must not start with '..'".to_owned()],
            ),
            (
                json!({"data": {"a/b": "x"}}),
                vec![format!("data[a/b]: Invalid value: \"a/b\": {rule}")],
            ),
            (
                json!({"data": {"": "x"}}),
                vec![format!("data[]: Invalid value: \"\": {rule}")],
            ),
            (
                json!({"binaryData": {(long.clone()): "eA=="}}),
                vec![format!(
                    "binaryData[{long}]: Invalid value: \"{long}\": must be no more than 253 characters"
                )],
            ),
            (
                json!({"data": {"a": "x"}, "binaryData": {"a": "eA=="}}),
                vec!["data[a]: Invalid value: \"a\": duplicate of key present in binaryData".to_owned()],
            ),
        ];
        for (object, wanted) in table {
            assert_eq!(
                texts(&ConfigMap.validate(&map(object.clone()))),
                wanted,
                "{object}"
            );
        }
    }

    #[test]
    fn a_mebibyte_fits_and_one_byte_more_does_not() {
        let full = "x".repeat(VALUES_MAX_BYTES - 1);
        let fits = map(json!({"data": {"a": full}, "binaryData": {"b": "eA=="}}));
        assert_eq!(texts(&ConfigMap.validate(&fits)), [""; 0]);
        let over = map(json!({"data": {"a": full}, "binaryData": {"b": "eHg="}}));
        assert_eq!(
            texts(&ConfigMap.validate(&over)),
            ["[]: Too long: may not be more than 1048576 bytes"]
        );
    }

    #[test]
    fn immutable_is_a_promise() {
        let old = map(json!({"immutable": true, "data": {"a": "1"}}));
        let table = [
            (
                json!({"immutable": true, "data": {"a": "1"}, "metadata": {"labels": {"x": "y"}}}),
                vec![],
            ),
            (
                json!({"data": {"a": "1"}}),
                vec!["immutable: Forbidden: field is immutable when `immutable` is set"],
            ),
            (
                json!({"immutable": true, "data": {"a": "2"}, "binaryData": {"b": ""}}),
                vec![
                    "data: Forbidden: field is immutable when `immutable` is set",
                    "binaryData: Forbidden: field is immutable when `immutable` is set",
                ],
            ),
        ];
        for (new, wanted) in table {
            assert_eq!(texts(&ConfigMap.validate_update(&map(new), &old, "")), wanted);
        }
    }

    #[test]
    fn the_row_counts_keys() {
        let object = map(
            json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
                                "data": {"a": "", "b": ""}, "binaryData": {"c": ""}}),
        );
        let now = "2026-01-01T00:00:05Z".parse().expect("a time");
        assert_eq!(ConfigMap.cells(&object, now), [json!("a"), json!(3), json!("5s")]);
    }
}
