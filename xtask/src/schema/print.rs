//! Writes tables as Rust: one line per field, nothing that depends on time or place.

use std::fmt::Write;

use super::{
    join::{Element, TableField, TableMessage, Tables},
    proto::Label,
};
use crate::packages::Package;

pub(crate) fn table(package: &Package, tables: &Tables) -> String {
    let mut text = format!(
        "//! `{}`, written by `cargo xtask schema`; do not edit.\n\n",
        package.openapi()
    );
    let mut body = String::new();
    for ((module, name), message) in &tables.messages {
        if *module == package.module {
            print_message(&mut body, package, name, message);
        }
    }
    let words = [
        ("Field::", "Field"),
        ("L::", "ListType as L"),
        ("Message", "Message"),
        ("P::", "PatchStrategy as P"),
        ("T::", "Type as T"),
    ];
    let used = words
        .iter()
        .filter(|(mark, _)| body.contains(mark))
        .map(|(_, word)| *word);
    let _ = writeln!(
        text,
        "use crate::message::{{{}}};",
        used.collect::<Vec<_>>().join(", ")
    );
    text + &body
}

fn print_message(text: &mut String, package: &Package, name: &str, message: &TableMessage) {
    let _ = write!(
        text,
        "\n#[rustfmt::skip]\npub(crate) static {}: Message = Message {{ name: {:?}, type_meta: {}, atomic: {}, fields: &[\n",
        constant_name(name),
        message.openapi_name,
        message.type_meta,
        message.atomic
    );
    for field in &message.fields {
        print_field(text, package, field);
    }
    text.push_str("] };\n");
}

fn print_field(text: &mut String, package: &Package, field: &TableField) {
    let element = match &field.element {
        Element::Plain(variant) => format!("T::{variant}"),
        Element::Message(module, name) if *module == package.module => {
            format!("T::Message(&{})", constant_name(name))
        }
        Element::Message(module, name) => format!("T::Message(&super::{module}::{})", constant_name(name)),
    };
    let _ = write!(
        text,
        "    Field::new({:?}, {}, {element})",
        field.json, field.number
    );
    match field.label {
        Label::Single => {}
        Label::Repeated => text.push_str(".list()"),
        Label::Map => text.push_str(".map()"),
    }
    for (set, word) in [
        (field.pointer, ".pointer()"),
        (field.omitempty && !field.omitzero, ".omitempty()"),
        (field.omitzero, ".omitzero()"),
        (field.inline, ".inline()"),
        (field.required, ".required()"),
        (field.atomic, ".atomic()"),
    ] {
        text.push_str(if set { word } else { "" });
    }
    if let Some(go_type) = &field.go_type {
        let _ = write!(text, ".go({go_type:?})");
    }
    match field.list_type.as_deref() {
        Some("atomic") => text.push_str(".list_type(L::Atomic)"),
        Some("set") => text.push_str(".list_type(L::Set)"),
        Some("map") => {
            let _ = write!(text, ".list_type(L::Map(&{:?}))", field.list_keys);
        }
        _ => {}
    }
    if let Some(key) = &field.merge_key {
        let _ = write!(text, ".merge_key({key:?})");
    }
    match field.patch_strategy.as_deref() {
        Some("merge") => text.push_str(".patch(P::Merge)"),
        Some("retainKeys") => text.push_str(".patch(P::RetainKeys)"),
        Some("merge,retainKeys") => text.push_str(".patch(P::MergeRetainKeys)"),
        Some("replace") => text.push_str(".patch(P::Replace)"),
        _ => {}
    }
    if !field.enum_values.is_empty() {
        let _ = write!(text, ".one_of(&{:?})", field.enum_values);
    }
    text.push_str(",\n");
}

pub(crate) fn kinds(tables: &Tables) -> String {
    let mut text = String::from("//! Every kind, written by `cargo xtask schema`; do not edit.\n\n");
    text.push_str("use crate::message::Kind;\n\n");
    text.push_str(
        "/// Sorted by kind, group, version.\n#[rustfmt::skip]\npub(super) static KINDS: &[Kind] = &[\n",
    );
    for (kind, group, version, module) in &tables.kinds {
        let _ = writeln!(
            text,
            "    Kind {{ group: {group:?}, version: {version:?}, kind: {kind:?}, message: &super::{module}::{} }},",
            constant_name(kind)
        );
    }
    text.push_str("];\n");
    text
}

/// `ConfigMapEnvSource` → `CONFIG_MAP_ENV_SOURCE`, `APIGroup` → `API_GROUP`.
fn constant_name(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut constant = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let starts_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if starts_word {
            constant.push('_');
        }
        constant.push(letter.to_ascii_uppercase());
    }
    constant
}
