//! Checks the tables against upstream's own fixtures: one object per kind, every field filled, in JSON, YAML and protobuf.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use hotmap_schema::{
    Kind, conform, decode_object, decode_protobuf, encode_object, encode_protobuf, envelope, json, kinds,
    yaml,
};
use serde_json::Value;

/// Fixtures of the release itself, and of the releases before it: their bytes must still be readable.
const CURRENT: &str = "HEAD";

/// What was found for one kind in one folder.
struct Outcome {
    name: String,
    folder: String,
    problems: Vec<String>,
}

pub(crate) fn check(tree: &Path) -> Result<()> {
    let fixtures = tree.join("staging/src/k8s.io/api/testdata");
    let mut folders = Vec::new();
    for entry in fs::read_dir(&fixtures).with_context(|| format!("cannot read {}", fixtures.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    let mut outcomes = Vec::new();
    let mut without = Vec::new();
    for kind in kinds() {
        let group = if kind.group.is_empty() { "core" } else { kind.group };
        let name = format!("{group}.{}.{}", kind.version, kind.kind);
        let mut found = false;
        for folder in &folders {
            let stem = fixtures.join(folder).join(&name);
            if !stem.with_added_extension("json").exists() {
                continue;
            }
            found = true;
            let exact = folder == CURRENT;
            let problems = compare(kind, &stem, exact).unwrap_or_else(|error| vec![format!("{error:#}")]);
            outcomes.push(Outcome {
                name: name.clone(),
                folder: folder.clone(),
                problems,
            });
        }
        if !found {
            without.push(name);
        }
    }
    report(&outcomes, &without, &folders)
}

/// Every way from one format to another that differs from upstream's.
fn compare(kind: &'static Kind, stem: &Path, exact: bool) -> Result<Vec<String>> {
    let read = |extension: &str| {
        let path = stem.with_added_extension(extension);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (json_bytes, yaml_bytes, protobuf) = (read("json")?, read("yaml")?, read("pb")?);
    let mut problems = Vec::new();

    let (expected, duplicates) = json::parse(&json_bytes)?;
    ensure!(duplicates.is_empty(), "the fixture has duplicate keys");
    let conformed = conform(expected.clone(), kind.message)?;
    if exact {
        note(&mut problems, "conform(json)", &conformed.value, &expected);
        problems.extend(
            conformed
                .unknown
                .iter()
                .map(|field| format!("unknown field {field}")),
        );
    }
    let (from_yaml, _) = yaml::parse(&yaml_bytes)?;
    note(&mut problems, "yaml", &from_yaml, &expected);

    // Fixtures of an older release are one message in older bytes: what they say must be the same.
    let decoded = decode(kind, &protobuf)?;
    note(&mut problems, "decode(pb)", &decoded, &conformed.value);

    let encoded = encode(kind, &conformed.value)?;
    if exact && encoded != protobuf {
        let at = encoded
            .iter()
            .zip(&protobuf)
            .take_while(|(ours, theirs)| ours == theirs)
            .count();
        problems.push(format!(
            "encode(json) differs from byte {at} of {} (ours {})",
            protobuf.len(),
            encoded.len()
        ));
    }
    note(
        &mut problems,
        "decode(encode(json))",
        &decode(kind, &encoded)?,
        &conformed.value,
    );
    Ok(problems)
}

/// The envelope of a `WatchEvent` is anonymous: it is no object with a kind, and only ever a frame of a watch.
fn decode(kind: &'static Kind, bytes: &[u8]) -> Result<Value> {
    if !kind.message.type_meta {
        return Ok(decode_protobuf(kind.message, envelope::unwrap(bytes)?.raw)?);
    }
    let (named, value) = decode_object(bytes)?;
    ensure!(
        named.kind == kind.kind && named.group == kind.group,
        "the envelope says {named:?}"
    );
    Ok(value)
}

fn encode(kind: &'static Kind, value: &Value) -> Result<Vec<u8>> {
    if !kind.message.type_meta {
        return Ok(envelope::wrap("", "", &encode_protobuf(kind.message, value)?));
    }
    Ok(encode_object(kind, value)?)
}

fn note(problems: &mut Vec<String>, way: &str, ours: &Value, theirs: &Value) {
    if let Some(difference) = first_difference(ours, theirs, "") {
        problems.push(format!("{way}: {difference}"));
    }
}

fn first_difference(ours: &Value, theirs: &Value, path: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left
                .keys()
                .chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.into_iter()
                .find_map(|key| match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => first_difference(left, right, &format!("{path}.{key}")),
                    (Some(left), None) => Some(format!("{path}.{key} is only ours: {left}")),
                    (None, right) => Some(format!(
                        "{path}.{key} is missing: {}",
                        right.unwrap_or(&Value::Null)
                    )),
                })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs
                .find_map(|(index, (left, right))| first_difference(left, right, &format!("{path}[{index}]")))
        }
        _ => (ours != theirs).then(|| format!("{path}: {ours} instead of {theirs}")),
    }
}

fn report(outcomes: &[Outcome], without: &[String], folders: &[String]) -> Result<()> {
    let width = outcomes
        .iter()
        .map(|outcome| outcome.name.len())
        .max()
        .unwrap_or(0);
    let mut failed = 0;
    for outcome in outcomes {
        let verdict = if outcome.problems.is_empty() {
            "same"
        } else {
            "DIFFERS"
        };
        println!("{:width$}  {:8}  {verdict}", outcome.name, outcome.folder);
        for problem in &outcome.problems {
            println!("    {problem}");
        }
        failed += usize::from(!outcome.problems.is_empty());
    }
    println!("\nno fixture: {}", without.join(" "));
    for folder in folders {
        let checked: Vec<_> = outcomes
            .iter()
            .filter(|outcome| outcome.folder == *folder)
            .collect();
        let same = checked
            .iter()
            .filter(|outcome| outcome.problems.is_empty())
            .count();
        println!("{folder}: {same} of {} kinds are the same", checked.len());
    }
    if failed > 0 || outcomes.is_empty() {
        bail!(
            "{failed} differ from upstream's fixtures, {} checked",
            outcomes.len()
        );
    }
    Ok(())
}
