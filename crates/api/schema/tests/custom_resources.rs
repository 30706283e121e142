//! `deploy/crds` says to other clusters what our own tables say.

use std::{fs, path::Path};

use hotmap_schema::{Cardinality, Field, Kind, Message, Type, openapi, yaml};
use serde_json::{Map, Value, json};

/// What a custom resource of this kind may look like: the schema of the tables, without references and without what the
/// server of a custom resource knows by itself.
fn structural(kind: &Kind) -> Value {
    let schemas = openapi::schemas([kind]);
    let mut root = message(kind.message, &schemas);
    root["properties"]["metadata"] = json!({"type": "object"});
    root
}

fn message(of: &'static Message, schemas: &Map<String, Value>) -> Value {
    let known = &schemas[of.name];
    let mut schema = json!({"type": "object"});
    for member in ["description", "required"] {
        if let Some(value) = known.get(member) {
            schema[member] = value.clone();
        }
    }
    if of.type_meta {
        for name in ["apiVersion", "kind"] {
            schema["properties"][name] = known["properties"][name].clone();
        }
    }
    for field in of
        .json_fields()
        .into_iter()
        .filter(|field| field.json != "metadata")
    {
        schema["properties"][field.json] = property(field, &known["properties"][field.json], schemas);
    }
    schema
}

fn property(field: &Field, known: &Value, schemas: &Map<String, Value>) -> Value {
    let mut element = match field.kind {
        Type::Message(nested) => message(nested, schemas),
        Type::String => json!({"type": "string"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::MicroTime => json!({"type": "string", "format": "date-time"}),
        other => panic!("no kind of ours has {other:?}"),
    };
    if !field.enum_values.is_empty() {
        element["enum"] = json!(field.enum_values);
    }
    let mut property = match field.cardinality {
        Cardinality::Single => element,
        Cardinality::List => json!({"type": "array", "items": element, "x-kubernetes-list-type": "atomic"}),
        Cardinality::Map => panic!("no kind of ours has a map"),
    };
    if let Some(description) = known.get("description") {
        property["description"] = description.clone();
    }
    property
}

#[test]
fn delivery_reports_are_the_same_everywhere() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/crds/deliveryreports.yaml");
    let text = fs::read(path).expect("the manifest is committed");
    let (manifest, _) = yaml::parse(&text).expect("YAML");
    let spec = &manifest["spec"];
    assert_eq!(manifest["metadata"]["name"], "deliveryreports.hotmap.dev");
    assert_eq!(
        (&spec["group"], &spec["scope"]),
        (&json!("hotmap.dev"), &json!("Cluster"))
    );
    let version = &spec["versions"][0];
    assert_eq!(version["name"], "v1alpha1");
    let kind = hotmap_schema::kind("hotmap.dev", "v1alpha1", "DeliveryReport").expect("ours");
    let wanted = structural(kind);
    let found = &version["schema"]["openAPIV3Schema"];
    assert_eq!(*found, wanted, "the manifest should have:\n{wanted:#}");
}
