//! Reads type declarations and field tags of `types.go`. gofmt guarantees the shape of the lines.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};

use crate::packages::PACKAGES;

#[derive(Default)]
pub(crate) struct GoTypes {
    /// Structure by module and name: `("core_v1", "PodSpec")`.
    pub(crate) structs: BTreeMap<(&'static str, String), GoStruct>,
    /// Named types that are no structures: `("core_v1", "PullPolicy")` → `string`.
    pub(crate) named: BTreeMap<(&'static str, String), String>,
    /// Constants of the types marked as enumerations, sorted.
    pub(crate) enums: BTreeMap<(&'static str, String), Vec<String>>,
}

#[derive(Default)]
pub(crate) struct GoStruct {
    /// Embeds `TypeMeta`: its objects carry `apiVersion` and `kind`.
    pub(crate) type_meta: bool,
    /// Fields by wire number.
    pub(crate) fields: BTreeMap<u32, GoField>,
}

pub(crate) struct GoField {
    /// Go type as written: `*int32`, `[]metav1.Condition`.
    pub(crate) go_type: String,
    pub(crate) json: String,
    pub(crate) inline: bool,
    pub(crate) omitempty: bool,
    pub(crate) omitzero: bool,
}

pub(crate) fn read_all(tree: &Path) -> Result<GoTypes> {
    let mut types = GoTypes::default();
    for package in PACKAGES {
        for source in package.sources {
            let path = tree.join("staging/src/k8s.io").join(package.dir).join(source);
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            read(&text, package.module, &mut types);
        }
    }
    Ok(types)
}

fn read(text: &str, module: &'static str, types: &mut GoTypes) {
    let mut current: Option<(String, GoStruct)> = None;
    let mut enum_marker = false;
    for line in text.lines().map(str::trim) {
        if let Some((name, declared)) = current.as_mut() {
            if line == "}" {
                types
                    .structs
                    .insert((module, std::mem::take(name)), std::mem::take(declared));
                current = None;
            } else if !line.starts_with("//") {
                add_field(line, declared);
            }
        } else if line.starts_with("//") {
            enum_marker |= line == "// +enum";
        } else if let Some((name, declared)) =
            line.strip_prefix("type ").and_then(|rest| rest.split_once(' '))
        {
            match declared {
                "struct {" => current = Some((name.to_owned(), GoStruct::default())),
                other => {
                    types.named.insert((module, name.to_owned()), other.to_owned());
                }
            }
            if enum_marker {
                types.enums.insert((module, name.to_owned()), Vec::new());
            }
            enum_marker = false;
        } else if let Some((go_type, value)) = constant(line)
            && let Some(values) = types.enums.get_mut(&(module, go_type.to_owned()))
        {
            values.push(value.to_owned());
            values.sort();
        } else {
            enum_marker = false;
        }
    }
}

/// `PullAlways PullPolicy = "Always"` → `("PullPolicy", "Always")`.
fn constant(line: &str) -> Option<(&str, &str)> {
    let (left, value) = line.trim_start_matches("const ").split_once('=')?;
    let go_type = left.split_whitespace().nth(1)?;
    Some((go_type, value.trim().strip_prefix('"')?.split('"').next()?))
}

fn add_field(line: &str, declared: &mut GoStruct) {
    let Some((left, tags)) = line.split_once('`') else {
        return;
    };
    let mut words = left.split_whitespace();
    let Some(first) = words.next() else { return };
    // An embedded field has no name of its own.
    let go_type = words.next().unwrap_or(first).to_owned();
    if go_type == "TypeMeta" || go_type == "metav1.TypeMeta" {
        declared.type_meta = true;
        return;
    }
    let (Some(json), Some(number)) = (tag(tags, "json"), wire_number(tags)) else {
        return;
    };
    let mut options = json.split(',');
    let name = options.next().unwrap_or_default().to_owned();
    let has = |wanted: &str| json.split(',').skip(1).any(|option| option == wanted);
    let field = GoField {
        go_type,
        json: name,
        inline: has("inline"),
        omitempty: has("omitempty"),
        omitzero: has("omitzero"),
    };
    declared.fields.insert(number, field);
}

fn tag<'a>(tags: &'a str, name: &str) -> Option<&'a str> {
    let start = tags.find(&format!("{name}:\""))? + name.len() + 2;
    tags[start..].split('"').next()
}

fn wire_number(tags: &str) -> Option<u32> {
    tag(tags, "protobuf")?.split(',').nth(1)?.parse().ok()
}
