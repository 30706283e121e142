//! Objects from manifests: a file, or a directory of files, that is followed as it changes.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use hotmap_object::LabelSelector;
use hotmap_projection::{Snapshot, Stopper, WatchConfig, WatchError, Watcher};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::sync::follow::Heard;
use crate::sync::merge::{Selection, Who};
use crate::sync::object::{Document, ObjectKind};
use crate::sync::with_causes;

/// Endings of the files of a directory that are manifests, as kubectl's.
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// Manifests cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestsError {
    #[error("cannot watch the manifests")]
    Watch(#[from] WatchError),
    #[error("cannot start a thread")]
    Thread(#[from] io::Error),
}

/// A thread that watches. Dropping it ends that.
pub(crate) struct Watching(Stopper);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Follows `path`; what the selections find there is sent each time that a file changes.
pub(crate) fn watch(
    path: PathBuf,
    default_namespace: String,
    selections: Vec<Selection>,
    sender: mpsc::Sender<Heard>,
) -> Result<Watching, ManifestsError> {
    let mut watcher = Watcher::new(&path, WatchConfig::default())?;
    let watching = Watching(watcher.stopper());
    thread::Builder::new()
        .name("sync-manifests".to_owned())
        .spawn(move || {
            if !path.exists() {
                let why = format!("{} is not there", path.display());
                let _ = sender.blocking_send(Heard::Unreadable(why));
            }
            while watcher.next().is_ok() {
                let heard = match read(&path, &default_namespace) {
                    Ok(documents) => Heard::Manifests(selected(&documents, &selections)),
                    Err(why) => Heard::Unreadable(why),
                };
                if sender.blocking_send(heard).is_err() {
                    return;
                }
            }
        })?;
    Ok(watching)
}

/// All ConfigMaps and Secrets of the manifests; what else is there is passed over.
fn read(path: &Path, default_namespace: &str) -> Result<Vec<Document>, String> {
    let files = Snapshot::open(path)
        .and_then(|snapshot| snapshot.read_all())
        .map_err(|error| with_causes(&error))?;
    let is_file = path.is_file();
    let mut documents = Vec::new();
    for (name, bytes) in files {
        if !is_file && !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        documents_of(&bytes, default_namespace, &mut documents).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(documents)
}

fn documents_of(bytes: &[u8], default_namespace: &str, documents: &mut Vec<Document>) -> Result<(), String> {
    let parsed = hotmap_schema::yaml::parse_all(bytes).map_err(|error| with_causes(&error))?;
    for (document, duplicates) in parsed {
        if let Some(duplicate) = duplicates.first() {
            return Err(duplicate.to_string());
        }
        let objects = match document {
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                match list.remove("items") {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                }
            }
            object => vec![object],
        };
        for object in objects {
            let kind = match object.get("kind").and_then(Value::as_str) {
                Some("ConfigMap") => ObjectKind::ConfigMap,
                Some("Secret") => ObjectKind::Secret,
                _ => continue,
            };
            let mut document =
                Document::parse(kind, object.to_string().as_bytes()).map_err(|error| match &error {
                    // The place is one of our own making.
                    crate::sync::object::DocumentError::Json { .. } => format!("a {kind} has not its shape"),
                    crate::sync::object::DocumentError::Base64 { .. } => error.to_string(),
                })?;
            if document.version.name.is_empty() {
                return Err(format!("a {kind} has no name"));
            }
            if document.version.namespace.is_empty() {
                default_namespace.clone_into(&mut document.version.namespace);
            }
            documents.push(document);
        }
    }
    Ok(())
}

/// What each selection finds, by its number.
fn selected(documents: &[Document], selections: &[Selection]) -> Vec<Vec<Document>> {
    selections
        .iter()
        .map(|selection| {
            let labels = match &selection.who {
                Who::Labelled(selector) => selector.parse::<LabelSelector>().ok(),
                Who::Named(_) => None,
            };
            let matches = |document: &Document| match &selection.who {
                Who::Named(name) => document.version.name == *name,
                Who::Labelled(_) => labels.as_ref().is_some_and(|labels| {
                    labels.matches(|label| document.labels.get(label).map(String::as_str))
                }),
            };
            let is_here = |document: &Document| {
                let namespace = &document.version.namespace;
                document.version.kind == selection.kind
                    && selection.namespace.as_ref().is_none_or(|here| here == namespace)
            };
            documents
                .iter()
                .filter(|document| is_here(document) && matches(document))
                .cloned()
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: &str, expected: Result<&[&str], &str>) {
        let mut documents = Vec::new();
        let found = documents_of(manifest.as_bytes(), "default", &mut documents).map(|()| {
            documents
                .iter()
                .map(|document| crate::sync::merge::shown(&document.version))
                .collect::<Vec<_>>()
        });
        let expected = expected
            .map(|names| names.iter().map(|name| (*name).to_owned()).collect())
            .map_err(str::to_owned);
        assert_eq!(found, expected, "{manifest}");
    }

    #[test]
    fn manifests_hold_objects_lists_and_what_is_passed_over() {
        check(
            "kind: ConfigMap\nmetadata: {name: a}\n---\nkind: Deployment\nmetadata: {name: b}\n---\n",
            Ok(&["default/configmap/a"]),
        );
        check(
            r#"{"kind":"List","items":[{"kind":"Secret","metadata":{"name":"a","namespace":"shop"}}]}"#,
            Ok(&["shop/secret/a"]),
        );
        check("kind: ConfigMap\nmetadata: {}\n", Err("a configmap has no name"));
        check(
            "kind: Secret\nmetadata: {name: a}\ndata: {k: hunter2}\n",
            Err("the value of key \"k\" is not base64"),
        );
        check(
            "kind: ConfigMap\nmetadata: {name: a}\ndata: [hunter2]\n",
            Err("a configmap has not its shape"),
        );
    }
}
