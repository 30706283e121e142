//! Joins the three sources into messages, beginning at the kinds and following every reference.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{
    golang::{GoField, GoTypes},
    openapi::Schemas,
    proto::{Label, Messages, ProtoField},
};
use crate::packages::{META, PACKAGES, Package, VERSION};

pub(crate) struct Sources {
    pub(crate) proto: Messages,
    pub(crate) golang: GoTypes,
    pub(crate) openapi: Schemas,
}

#[derive(Default)]
pub(crate) struct Tables {
    /// Message by module and short name.
    pub(crate) messages: BTreeMap<(&'static str, String), TableMessage>,
    /// (kind, group, version, module, message), in the order that look-ups search.
    pub(crate) kinds: BTreeSet<(String, &'static str, &'static str, &'static str)>,
}

pub(crate) struct TableMessage {
    pub(crate) openapi_name: String,
    pub(crate) type_meta: bool,
    pub(crate) atomic: bool,
    pub(crate) fields: Vec<TableField>,
}

pub(crate) struct TableField {
    pub(crate) json: String,
    pub(crate) number: u32,
    pub(crate) label: Label,
    pub(crate) element: Element,
    pub(crate) pointer: bool,
    pub(crate) omitempty: bool,
    pub(crate) omitzero: bool,
    pub(crate) inline: bool,
    pub(crate) required: bool,
    /// Go's name for the field's type, if it is not the plain one.
    pub(crate) go_type: Option<String>,
    pub(crate) list_type: Option<String>,
    pub(crate) list_keys: Vec<String>,
    pub(crate) atomic: bool,
    pub(crate) merge_key: Option<String>,
    pub(crate) patch_strategy: Option<String>,
    pub(crate) enum_values: Vec<String>,
}

pub(crate) enum Element {
    /// A variant of `Type` without content.
    Plain(&'static str),
    Message(&'static str, String),
}

/// Types whose JSON is not their protobuf structure.
const SPECIAL: &[(&str, &str)] = &[
    ("k8s.io.api.authentication.v1.ExtraValue", "Strings"),
    ("k8s.io.api.authorization.v1.ExtraValue", "Strings"),
    ("k8s.io.api.certificates.v1.ExtraValue", "Strings"),
    ("k8s.io.apimachinery.pkg.api.resource.Quantity", "Quantity"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1", "FieldsV1"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime", "MicroTime"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Time", "Time"),
    ("k8s.io.apimachinery.pkg.apis.meta.v1.Verbs", "Strings"),
    ("k8s.io.apimachinery.pkg.runtime.RawExtension", "RawExtension"),
    ("k8s.io.apimachinery.pkg.util.intstr.IntOrString", "IntOrString"),
];

const SCALARS: &[(&str, &str, &str)] = &[
    ("bool", "Bool", "bool"),
    ("bytes", "Bytes", "[]uint8"),
    ("int32", "Int32", "int32"),
    ("int64", "Int64", "int64"),
    ("string", "String", "string"),
];

pub(crate) fn join(sources: &Sources) -> Result<Tables> {
    let mut tables = Tables::default();
    for package in PACKAGES {
        for ((module, name), declared) in &sources.golang.structs {
            let on_the_wire = sources.proto.contains_key(&format!("{}.{name}", package.proto()));
            let kind = declared.type_meta || name == "WatchEvent";
            if *module != package.module || !kind || !on_the_wire {
                continue;
            }
            tables
                .kinds
                .insert((name.clone(), package.group, VERSION, package.module));
            if package.module == META {
                // Upstream registers these in the core group too, and that is what clients send.
                tables.kinds.insert((name.clone(), "", VERSION, package.module));
            }
            add(package, name, sources, &mut tables)?;
        }
    }
    Ok(tables)
}

fn add(package: &'static Package, name: &str, sources: &Sources, tables: &mut Tables) -> Result<()> {
    let key = (package.module, name.to_owned());
    if tables.messages.contains_key(&key) {
        return Ok(());
    }
    let openapi_name = format!("{}.{name}", package.openapi());
    let declared = sources.golang.structs.get(&key);
    let wire = sources
        .proto
        .get(&format!("{}.{name}", package.proto()))
        .with_context(|| format!("{openapi_name} is not in generated.proto"))?;
    let schema = sources
        .openapi
        .get(&openapi_name)
        .or_else(|| inlined_into(package, name, sources));
    // The place is taken before the fields are followed: some messages contain themselves.
    let message = TableMessage {
        openapi_name: openapi_name.clone(),
        type_meta: declared.is_some_and(|declared| declared.type_meta),
        atomic: schema.is_some_and(|schema| schema["x-kubernetes-map-type"] == "atomic"),
        fields: Vec::new(),
    };
    tables.messages.insert(key.clone(), message);
    let mut fields = Vec::new();
    for on_wire in wire {
        let go = declared
            .and_then(|declared| declared.fields.get(&on_wire.number))
            .with_context(|| format!("{openapi_name}.{} has no Go field", on_wire.name))?;
        fields.push(field(package, on_wire, go, schema, sources)?);
        if let Some(Element::Message(module, referred)) = fields.last().map(|field| &field.element) {
            let referred_package = PACKAGES
                .iter()
                .find(|package| package.module == *module)
                .context("unknown module")?;
            add(referred_package, referred, sources, tables)?;
        }
    }
    fields.sort_by_key(|field| field.number);
    if let Some(message) = tables.messages.get_mut(&key) {
        message.fields = fields;
    }
    Ok(())
}

/// A message that only ever appears inline has no schema of its own: its properties are its parent's.
fn inlined_into<'a>(package: &Package, name: &str, sources: &'a Sources) -> Option<&'a Value> {
    let parent = sources.golang.structs.iter().find(|((module, _), declared)| {
        *module == package.module
            && declared
                .fields
                .values()
                .any(|field| field.inline && field.go_type == name)
    });
    parent.and_then(|((_, parent), _)| sources.openapi.get(&format!("{}.{parent}", package.openapi())))
}

fn field(
    package: &Package,
    on_wire: &ProtoField,
    go: &GoField,
    schema: Option<&Value>,
    sources: &Sources,
) -> Result<TableField> {
    let json = if go.inline {
        on_wire.name.clone()
    } else {
        go.json.clone()
    };
    let property = schema
        .and_then(|schema| schema.pointer(&format!("/properties/{json}")))
        .filter(|_| !go.inline);
    let text = |name: &str| {
        property
            .and_then(|property| property[name].as_str())
            .map(str::to_owned)
    };
    let required = schema
        .and_then(|schema| schema["required"].as_array())
        .is_some_and(|required| required.iter().any(|name| *name == json) && !go.inline);
    let list_keys = property
        .and_then(|property| property["x-kubernetes-list-map-keys"].as_array())
        .map(|keys| {
            keys.iter()
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default();
    let (element, plain_go) = element(&on_wire.element)?;
    let pointer = go.go_type.starts_with('*');
    let go_type = go_name(go.go_type.trim_start_matches('*'));
    let plain_go = match on_wire.label {
        Label::Single => plain_go,
        Label::Repeated => format!("[]{plain_go}"),
        Label::Map => format!("map[string]{plain_go}"),
    };
    Ok(TableField {
        number: on_wire.number,
        label: on_wire.label,
        element,
        pointer,
        omitempty: go.omitempty,
        omitzero: go.omitzero,
        inline: go.inline,
        required,
        enum_values: enum_values(&go.go_type, package, &sources.golang),
        go_type: (go_type != plain_go && !go.inline).then_some(go_type),
        list_type: text("x-kubernetes-list-type"),
        list_keys,
        atomic: text("x-kubernetes-map-type").as_deref() == Some("atomic"),
        merge_key: text("x-kubernetes-patch-merge-key"),
        patch_strategy: text("x-kubernetes-patch-strategy"),
        json,
    })
}

/// The variant of `Type`, and the Go name it stands for.
fn element(name: &str) -> Result<(Element, String)> {
    if let Some((_, variant, go)) = SCALARS.iter().find(|(proto, ..)| *proto == name) {
        return Ok((Element::Plain(variant), (*go).to_owned()));
    }
    let (package, short) = name
        .rsplit_once('.')
        .context("not a scalar, and without a package")?;
    let go_package = package.rsplit('.').next().unwrap_or_default();
    let go = format!("{go_package}.{short}");
    if let Some((_, variant)) = SPECIAL.iter().find(|(proto, _)| *proto == name) {
        return Ok((Element::Plain(variant), go));
    }
    let Some(known) = PACKAGES.iter().find(|known| known.proto() == package) else {
        bail!("{name} belongs to no package that has a table");
    };
    Ok((Element::Message(known.module, short.to_owned()), go))
}

/// A Go type as the compiler calls it: local and aliased packages become `v1`.
fn go_name(written: &str) -> String {
    if let Some(element) = written.strip_prefix("[]") {
        return format!("[]{}", go_name(element));
    }
    if let Some((key, element)) = written.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return format!("map[{}]{}", go_name(key), go_name(element));
    }
    match written.split_once('.') {
        Some(("metav1" | "corev1", name)) => format!("v1.{name}"),
        Some(_) => written.to_owned(),
        None if written == "byte" => "uint8".to_owned(),
        None if written.starts_with(char::is_uppercase) => format!("v1.{written}"),
        None => written.to_owned(),
    }
}

fn enum_values(go_type: &str, package: &Package, golang: &GoTypes) -> Vec<String> {
    let name = go_type.trim_start_matches('*').trim_start_matches("[]");
    let (module, name) = match name.split_once('.') {
        Some(("metav1", name)) => (META, name),
        Some(("corev1" | "v1", name)) => ("core_v1", name),
        _ => (package.module, name),
    };
    golang
        .enums
        .get(&(module, name.to_owned()))
        .cloned()
        .unwrap_or_default()
}
