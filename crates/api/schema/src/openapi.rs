//! OpenAPI v3 schemas of the kinds: types and merge rules from the tables, words of our own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{Cardinality, Field, Kind, ListType, Message, Type, descriptions, tables};

/// What stands under `components.schemas`: the schemas of the kinds and all they refer to.
///
/// Kinds with `apiVersion` and `kind` carry `x-kubernetes-group-version-kind`; merge rules are the `x-kubernetes-*`
/// extensions that `kubectl apply` and `kubectl explain` read.
pub fn schemas<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut open: Vec<&'static Message> = kinds.into_iter().map(|kind| kind.message).collect();
    while let Some(message) = open.pop() {
        if schemas.contains_key(message.name) {
            continue;
        }
        schemas.insert(message.name.to_owned(), schema(message));
        for field in message.json_fields() {
            match field.kind {
                Type::Message(nested) => open.push(nested),
                other => {
                    if let Some((name, special)) = special(other) {
                        schemas.entry(name).or_insert(special);
                    }
                }
            }
        }
    }
    schemas
}

/// Where a schema of [`schemas`] stands.
pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn schema(message: &'static Message) -> Value {
    let mut properties = Map::new();
    if message.type_meta {
        properties.insert(
            "apiVersion".to_owned(),
            described(json!({"type": "string"}), descriptions::API_VERSION),
        );
        properties.insert(
            "kind".to_owned(),
            described(json!({"type": "string"}), descriptions::KIND),
        );
    }
    let fields = message.json_fields();
    for field in &fields {
        properties.insert(field.json.to_owned(), property(message, field));
    }
    let required: Vec<_> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.json)
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    if let Some(text) = descriptions::message(message.name) {
        schema.insert("description".to_owned(), json!(text));
    }
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    if message.atomic {
        schema.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
    let kinds = group_version_kinds(message);
    if !kinds.is_empty() {
        schema.insert("x-kubernetes-group-version-kind".to_owned(), Value::Array(kinds));
    }
    Value::Object(schema)
}

fn group_version_kinds(message: &'static Message) -> Vec<Value> {
    let of_message = tables::kinds().filter(|kind| std::ptr::eq(kind.message, message));
    of_message
        .map(|kind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind}))
        .collect()
}

fn property(message: &'static Message, field: &Field) -> Value {
    let element = element(field);
    let mut property = match field.cardinality {
        Cardinality::List => json!({"type": "array", "items": element}),
        Cardinality::Map => json!({"type": "object", "additionalProperties": element}),
        Cardinality::Single => element,
    };
    let mut extensions = BTreeMap::new();
    match field.list_type {
        ListType::Unset => {}
        ListType::Atomic => drop(extensions.insert("x-kubernetes-list-type", json!("atomic"))),
        ListType::Set => drop(extensions.insert("x-kubernetes-list-type", json!("set"))),
        ListType::Map(keys) => {
            extensions.insert("x-kubernetes-list-type", json!("map"));
            extensions.insert("x-kubernetes-list-map-keys", json!(keys));
        }
    }
    if field.atomic {
        extensions.insert("x-kubernetes-map-type", json!("atomic"));
    }
    if let Some(key) = field.merge_key {
        extensions.insert("x-kubernetes-patch-merge-key", json!(key));
    }
    if let Some(strategy) = field.patch_strategy.as_str() {
        extensions.insert("x-kubernetes-patch-strategy", json!(strategy));
    }
    let description = descriptions::field(message.name, field.json);
    if property.get("$ref").is_some() && (description.is_some() || !extensions.is_empty()) {
        // OpenAPI 3.0 ignores what stands beside a reference.
        property = json!({"allOf": [property]});
    }
    if let Some(map) = property.as_object_mut() {
        map.extend(
            extensions
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        if let Some(text) = description {
            map.insert("description".to_owned(), json!(text));
        }
    }
    property
}

fn element(field: &Field) -> Value {
    match field.kind {
        Type::Bool => json!({"type": "boolean"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 => json!({"type": "integer", "format": "int64"}),
        // Values of enumerations are left to `kubectl explain` readers of upstream: validation knows them, and a client
        // of an older release must not refuse a newer value.
        Type::String => json!({"type": "string"}),
        Type::Bytes => json!({"type": "string", "format": "byte"}),
        Type::Strings => json!({"type": "array", "items": {"type": "string"}}),
        Type::Message(message) => reference(message.name),
        other => special(other).map_or_else(|| json!({}), |(name, _)| reference(&name)),
    }
}

/// Types that are a schema of their own without being a message.
fn special(kind: Type) -> Option<(String, Value)> {
    let (name, schema) = match kind {
        Type::Time => (
            "apis.meta.v1.Time",
            json!({"type": "string", "format": "date-time"}),
        ),
        Type::MicroTime => (
            "apis.meta.v1.MicroTime",
            json!({"type": "string", "format": "date-time"}),
        ),
        Type::FieldsV1 => ("apis.meta.v1.FieldsV1", json!({"type": "object"})),
        Type::Quantity => (
            "api.resource.Quantity",
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        ),
        Type::IntOrString => (
            "util.intstr.IntOrString",
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
        Type::RawExtension => ("runtime.RawExtension", json!({"type": "object"})),
        _ => return None,
    };
    let text = descriptions::special(name);
    Some((format!("io.k8s.apimachinery.pkg.{name}"), described(schema, text)))
}

fn described(mut schema: Value, text: &str) -> Value {
    if let Some(map) = schema.as_object_mut()
        && !text.is_empty()
    {
        map.insert("description".to_owned(), json!(text));
    }
    schema
}

#[cfg(test)]
mod tests {
    use crate::{kind, kinds};

    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let schemas = schemas(kinds());
        fn check(value: &Value, schemas: &Map<String, Value>) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(target)) = map.get("$ref") {
                        let name = target
                            .strip_prefix("#/components/schemas/")
                            .expect("a local reference");
                        assert!(schemas.contains_key(name), "{name}");
                    }
                    map.values().for_each(|value| check(value, schemas));
                }
                Value::Array(list) => list.iter().for_each(|value| check(value, schemas)),
                _ => {}
            }
        }
        check(&Value::Object(schemas.clone()), &schemas);
    }

    #[test]
    fn merge_rules_and_kinds_are_shown() {
        let pod = kind("", "v1", "Pod").expect("known");
        let schemas = schemas([pod]);
        let name = |short: &str| format!("io.k8s.api.core.v1.{short}");
        assert_eq!(
            schemas[&name("Pod")]["x-kubernetes-group-version-kind"],
            json!([{"group": "", "version": "v1", "kind": "Pod"}])
        );
        let containers = &schemas[&name("PodSpec")]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["items"], reference(&name("Container")));
        let volume = &schemas[&name("Volume")]["properties"];
        assert!(
            volume.get("configMap").is_some(),
            "inlined fields are the parent's"
        );
        assert!(volume.get("volumeSource").is_none());
        assert!(!schemas.contains_key(&name("VolumeSource")));
    }

    #[test]
    fn every_description_belongs_to_something() {
        let messages: Vec<_> = schemas(kinds()).into_iter().collect();
        for (message, field) in descriptions::all() {
            let schema = messages
                .iter()
                .find(|(name, _)| name == message)
                .map(|(_, schema)| schema);
            let schema = schema.unwrap_or_else(|| panic!("no message {message}"));
            assert!(
                field.is_empty() || schema["properties"].get(field).is_some(),
                "{message}.{field}"
            );
        }
    }
}
