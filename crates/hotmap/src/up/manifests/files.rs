//! Files of manifests, and the objects in them.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, bail};
use serde_json::Value;

use super::Source;

/// Endings of the files that a directory is searched for, as kubectl's.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// What one file holds.
pub(super) struct File {
    /// What errors call it.
    pub(super) label: String,
    pub(super) bytes: Vec<u8>,
}

/// The files of a source, in the order in which they are applied.
pub(super) fn of_source(source: &Source) -> anyhow::Result<Vec<File>> {
    match source {
        Source::StandardInput => {
            let mut bytes = Vec::new();
            io::stdin()
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
            Ok(vec![File {
                label: "standard input".to_owned(),
                bytes,
            }])
        }
        Source::File(path) => {
            let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(vec![File {
                label: path.display().to_string(),
                bytes,
            }])
        }
        Source::Directory(path) => {
            let found = of_directory(path).with_context(|| format!("cannot read {}", path.display()))?;
            if found.is_empty() {
                bail!("{} holds no .yaml, .yml or .json file", path.display());
            }
            let named = found.into_iter().map(|(name, bytes)| {
                let label = path.join(name).display().to_string();
                let bytes = bytes.with_context(|| format!("cannot read {label}"))?;
                Ok(File { label, bytes })
            });
            named.collect()
        }
    }
}

/// The manifests in a directory by name, and what is in each or why it cannot be read. Names that begin with a dot are not
/// meant for others: editors use them while a file is open.
pub(super) fn of_directory(path: &Path) -> io::Result<BTreeMap<String, io::Result<Vec<u8>>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            continue;
        };
        if !is_manifest(&name) || entry.path().is_dir() {
            continue;
        }
        match fs::read(entry.path()) {
            // It went away, or leads nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => drop(found.insert(name, read)),
        }
    }
    Ok(found)
}

fn is_manifest(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    !name.starts_with('.') && ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// The objects of a file: several documents, and lists taken apart.
///
/// # Errors
/// A sentence about what is wrong with the text, never a value of it.
pub(super) fn objects(bytes: &[u8]) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (document, duplicates) in hotmap_schema::yaml::parse_all(bytes)? {
        if let Some(duplicate) = duplicates.first() {
            bail!("{duplicate}");
        }
        match document {
            Value::Null => {}
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                let items = list.remove("items").unwrap_or_default();
                objects.extend(items.as_array().cloned().unwrap_or_default());
            }
            object => objects.push(object),
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_told_by_their_ending() {
        for (name, is) in [
            ("a.yaml", true),
            ("a.yml", true),
            ("a.json", true),
            ("a.yaml~", false),
            (".a.yaml.swp", false),
            (".a.yaml", false),
            (".#a.yaml", false),
            ("README.md", false),
            ("yaml", false),
        ] {
            assert_eq!(is_manifest(name), is, "{name}");
        }
    }

    #[test]
    fn lists_are_taken_apart_and_empty_documents_are_none() {
        let text = "---\n---\nkind: List\nitems: [{kind: A}, {kind: B}]\n---\nkind: C\n";
        let kinds = objects(text.as_bytes()).expect("YAML");
        assert_eq!(
            Vec::from_iter(kinds.iter().map(|object| &object["kind"])),
            ["A", "B", "C"]
        );
        assert!(objects(b"kind: C\nkind: D\n").is_err());
    }

    #[test]
    fn what_is_wrong_is_said_without_a_value() {
        let secret = "hunter2";
        for text in [
            format!("data:\n  password: {secret}\n bad: x\n"),
            format!("data: {{password: \"{secret}\n"),
            format!("data: {{password: {secret}, password: {secret}}}"),
            format!("data: *{secret}x\n").replace(secret, "unknown"),
        ] {
            let error = format!("{:#}", objects(text.as_bytes()).expect_err("not YAML"));
            assert!(!error.contains(secret), "{error}");
        }
    }
}
