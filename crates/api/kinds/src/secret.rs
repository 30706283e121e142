//! Secret: a ConfigMap whose values no message ever shows, with a type that asks for certain keys.
//!
//! Rules follow `pkg/apis/core/validation/validation.go` (`ValidateSecret`), Kubernetes 1.36.

use base64::{Engine, engine::general_purpose::STANDARD};
use hotmap_object::{FieldError, names};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    config_map::{VALUES_MAX_BYTES, decoded_bytes, keeps_promise},
    fields::{Fields, map_mut, set_default},
    rules::{Errors, IMMUTABLE, broken, key},
    table,
};

const ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";
/// Stands in messages where a value would.
const REDACTED: &str = "<secret contents redacted>";

/// The rules of Secrets.
pub(crate) struct Secret;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column(
        "Type",
        "string",
        "What kind of credential it holds; decides which keys it must have.",
    ),
    table::column("Data", "integer", "Number of keys."),
    table::AGE,
];

impl Strategy for Secret {
    fn default(&self, object: &mut Map<String, Value>) {
        merge_string_data(object);
        set_default(object, "type", "Opaque");
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let data = object.map("data");
        for name in data.keys() {
            broken(&mut errors, &key("data", name), name, names::config_key(name));
        }
        if decoded_bytes(data) > VALUES_MAX_BYTES {
            errors.push(FieldError::too_long("data", VALUES_MAX_BYTES));
        }
        keys_of_type(&mut errors, object);
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if new.text("type") != old.text("type") {
            errors.push(FieldError::invalid("type", new.text("type"), IMMUTABLE));
        }
        keeps_promise(&mut errors, new, old, &["data"]);
        errors.extend(self.validate(new));
        errors
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["type"]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        vec![("type", object.text("type").to_owned())]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let count = object.map("data").len();
        vec![
            table::name(object),
            object.text("type").into(),
            count.into(),
            table::age(object, now),
        ]
    }
}

/// `stringData` is for writing only: its values win over those of `data` and it is never stored.
fn merge_string_data(object: &mut Map<String, Value>) {
    let Some(Value::Object(plain)) = object.remove("stringData") else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    if let Some(data) = map_mut(object, "data") {
        for (name, value) in plain {
            let value = STANDARD.encode(value.as_str().unwrap_or_default());
            data.insert(name, value.into());
        }
    }
}

fn keys_of_type(errors: &mut Errors, object: &Map<String, Value>) {
    let data = object.map("data");
    let annotations = object.map("metadata").map("annotations");
    let missing = |name: &str| FieldError::required(key("data", name), "");
    match object.text("type") {
        "kubernetes.io/service-account-token" if !annotations.has(ACCOUNT_ANNOTATION) => {
            let path = key("metadata.annotations", ACCOUNT_ANNOTATION);
            errors.push(FieldError::required(path, ""));
        }
        "kubernetes.io/dockercfg" => json_value(errors, data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json_value(errors, data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !data.contains_key("username") && !data.contains_key("password") => {
            errors.extend(["username", "password"].map(missing));
        }
        "kubernetes.io/ssh-auth" if data.text("ssh-privatekey").is_empty() => {
            errors.push(missing("ssh-privatekey"));
        }
        "kubernetes.io/tls" => {
            let absent = ["tls.crt", "tls.key"]
                .into_iter()
                .filter(|name| !data.contains_key(*name));
            errors.extend(absent.map(missing));
        }
        _ => {}
    }
}

/// The value must be there and be a JSON object; what is wrong with it would show a part of it.
fn json_value(errors: &mut Errors, data: &Map<String, Value>, name: &str) {
    let path = key("data", name);
    let Some(value) = data.get(name) else {
        errors.push(FieldError::required(path, ""));
        return;
    };
    let decoded = STANDARD.decode(value.as_str().unwrap_or_default());
    let is_object = decoded.is_ok_and(|bytes| serde_json::from_slice::<Map<String, Value>>(&bytes).is_ok());
    if !is_object {
        errors.push(FieldError::invalid(path, REDACTED, "must be a JSON object"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn string_data_is_merged_and_gone() {
        let mut object = map(json!({"data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "new"}}));
        Secret.default(&mut object);
        assert_eq!(
            Value::Object(object),
            json!({"data": {"a": "bmV3", "b": "eQ=="}, "type": "Opaque"})
        );
    }

    #[test]
    fn types_ask_for_their_keys() {
        let table = [
            (json!({"type": "Opaque"}), vec![]),
            (json!({"type": "example.com/own"}), vec![]),
            (
                json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}),
                vec!["data[tls.key]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/basic-auth"}),
                vec!["data[username]: Required value", "data[password]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/basic-auth", "data": {"password": ""}}),
                vec![],
            ),
            (
                json!({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}}),
                vec!["data[ssh-privatekey]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/service-account-token"}),
                vec!["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            ),
            (
                json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "c2VjcmV0"}}),
                vec![
                    "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": must be a JSON object",
                ],
            ),
            (
                json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}}),
                vec![],
            ),
            (
                json!({"type": "kubernetes.io/dockercfg"}),
                vec!["data[.dockercfg]: Required value"],
            ),
        ];
        for (object, wanted) in table {
            assert_eq!(texts(&Secret.validate(&map(object.clone()))), wanted, "{object}");
        }
    }

    #[test]
    fn a_mebibyte_fits_and_one_byte_more_does_not() {
        for (bytes, wanted) in [
            (VALUES_MAX_BYTES, vec![]),
            (
                VALUES_MAX_BYTES + 1,
                vec!["data: Too long: may not be more than 1048576 bytes"],
            ),
        ] {
            let object = map(json!({"type": "Opaque", "data": {"a": STANDARD.encode("x".repeat(bytes))}}));
            assert_eq!(texts(&Secret.validate(&object)), wanted);
        }
    }

    #[test]
    fn type_and_immutable_data_stay() {
        let old = map(json!({"type": "Opaque", "immutable": true, "data": {"a": "eA=="}}));
        let new = map(json!({"type": "x/y", "immutable": true, "data": {"a": "eQ=="}}));
        assert_eq!(
            texts(&Secret.validate_update(&new, &old, "")),
            [
                "type: Invalid value: \"x/y\": field is immutable",
                "data: Forbidden: field is immutable when `immutable` is set"
            ]
        );
    }

    #[test]
    fn no_error_shows_a_value() {
        let secret = STANDARD.encode("hunter2");
        for of in [
            "kubernetes.io/dockercfg",
            "kubernetes.io/dockerconfigjson",
            "kubernetes.io/tls",
        ] {
            let object = map(
                json!({"type": of, "data": {".dockercfg": secret, ".dockerconfigjson": secret, "..a": secret}}),
            );
            let found = texts(&Secret.validate(&object)).join("\n");
            assert!(!found.contains("hunter2") && !found.contains(&secret), "{found}");
        }
    }
}
