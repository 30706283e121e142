//! Reads the messages of `generated.proto`. These files come from a generator and have one declaration per line, so a
//! line is all that has to be understood.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::packages::PACKAGES;

/// Message by full name: `k8s.io.api.core.v1.PodSpec`.
pub(crate) type Messages = BTreeMap<String, Vec<ProtoField>>;

pub(crate) struct ProtoField {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) label: Label,
    /// A scalar, or a full message name.
    pub(crate) element: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Single,
    Repeated,
    Map,
}

pub(crate) fn read_all(tree: &Path) -> Result<Messages> {
    let mut messages = Messages::new();
    for package in PACKAGES {
        let path = tree
            .join("staging/src/k8s.io")
            .join(package.dir)
            .join("generated.proto");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        read(&text, &package.proto(), &mut messages).with_context(|| format!("in {}", path.display()))?;
    }
    Ok(messages)
}

fn read(text: &str, package: &str, messages: &mut Messages) -> Result<()> {
    let mut current: Option<(String, Vec<ProtoField>)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("message ") {
            let name = name.trim_end_matches(['{', '}', ' ']);
            current = Some((format!("{package}.{name}"), Vec::new()));
        }
        if line.ends_with('}')
            && let Some((name, fields)) = current.take()
        {
            messages.insert(name, fields);
        } else if let Some((_, fields)) = &mut current
            && line.ends_with(';')
            && !line.starts_with("//")
        {
            fields.push(field(line, package).with_context(|| format!("cannot understand `{line}`"))?);
        }
    }
    Ok(())
}

fn field(line: &str, package: &str) -> Result<ProtoField> {
    let (declaration, number) = line.trim_end_matches(';').split_once('=').context("no number")?;
    let number = number.trim().split(' ').next().unwrap_or_default().parse()?;
    let (typed, name) = declaration.trim().rsplit_once(' ').context("no name")?;
    let (label, element) = match typed.split_once(' ') {
        Some(("optional" | "required", element)) => (Label::Single, element),
        Some(("repeated", element)) => (Label::Repeated, element),
        _ => match typed
            .strip_prefix("map<string,")
            .and_then(|rest| rest.strip_suffix('>'))
        {
            Some(element) => (Label::Map, element.trim()),
            None => bail!("no label"),
        },
    };
    Ok(ProtoField {
        name: name.to_owned(),
        number,
        label,
        element: full_name(element.trim(), package),
    })
}

fn full_name(element: &str, package: &str) -> String {
    let element = element.trim_start_matches('.');
    let scalar = element
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if scalar || element.contains('.') {
        element.to_owned()
    } else {
        format!("{package}.{element}")
    }
}
