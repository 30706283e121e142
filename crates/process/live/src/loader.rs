//! From layers to a value.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotmap_projection::{Limits, Revision, Snapshot, SnapshotError};
use serde::de::DeserializeOwned;

use crate::builder::Missing;
use crate::deserialize::from_node;
use crate::error::{LoadError, Place};
use crate::format::{Format, scalar};
use crate::node::{Node, Value};

pub(crate) enum Layer {
    Defaults(serde_json::Value),
    Path {
        path: PathBuf,
        kind: FileKind,
        missing: Missing,
    },
    Environment {
        prefix: String,
        variables: Vec<(String, String)>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum FileKind {
    File(Format),
    Directory,
}

impl Layer {
    /// How long the start waits for it.
    pub(crate) fn patience(&self) -> Option<Duration> {
        match self {
            Self::Path {
                missing: Missing::Wait(limit),
                ..
            } => Some(*limit),
            _ => None,
        }
    }
}

pub(crate) type Validate<T> = Box<dyn Fn(&T) -> Result<(), String> + Send>;

pub(crate) struct Loader<T> {
    layers: Vec<Layer>,
    limits: Limits,
    validate: Vec<Validate<T>>,
}

/// What was loaded from where.
pub(crate) struct Loaded<T> {
    pub(crate) value: Result<T, LoadError>,
    /// One for each path of the layers, in their order; `None` of what was not there or was not come to.
    pub(crate) revisions: Vec<Option<Revision>>,
}

impl<T: DeserializeOwned> Loader<T> {
    pub(crate) fn new(layers: Vec<Layer>, limits: Limits, validate: Vec<Validate<T>>) -> Self {
        Self {
            layers,
            limits,
            validate,
        }
    }

    /// Paths that are watched, and whether each may be missing.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&Path, Missing)> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Path { path, missing, .. } => Some((path.as_path(), *missing)),
            _ => None,
        })
    }

    pub(crate) fn load(&self) -> Loaded<T> {
        let mut revisions = vec![None; self.paths().count()];
        // A panic would end the thread that follows the files, and nobody would hear of changes any more.
        let value = catch_unwind(AssertUnwindSafe(|| self.value(&mut revisions)));
        Loaded {
            value: value.unwrap_or(Err(LoadError::Panicked)),
            revisions,
        }
    }

    fn value(&self, revisions: &mut [Option<Revision>]) -> Result<T, LoadError> {
        let mut node = Node::empty(&"".into());
        let mut places = revisions.iter_mut();
        for layer in &self.layers {
            match layer {
                Layer::Defaults(defaults) => node.merge(of_json(defaults.clone(), &"defaults".into())),
                Layer::Environment { prefix, variables } => {
                    for (name, value) in variables {
                        let source: Arc<str> = format!("environment variable {name}").into();
                        let path: Vec<&str> = name[prefix.len()..].split("__").collect();
                        node.set_loosely(&path, Node::new(Value::Text(value.clone()), &source, None));
                    }
                }
                Layer::Path { path, kind, missing } => {
                    let revision = places.next().expect("there is one for each path");
                    *revision = self.path(path, *kind, *missing, &mut node)?;
                }
            }
        }
        let value = from_node(&node)?;
        for check in &self.validate {
            check(&value).map_err(|message| LoadError::Invalid { message })?;
        }
        Ok(value)
    }

    /// The revision that was read, whether or not it could be understood.
    fn path(
        &self,
        path: &Path,
        kind: FileKind,
        missing: Missing,
        onto: &mut Node,
    ) -> Result<Option<Revision>, LoadError> {
        loop {
            let read = Snapshot::open_within(path, self.limits)
                .and_then(|snapshot| Ok((snapshot.read_all()?, snapshot.revision().clone())));
            let (files, revision) = match read {
                Ok(read) => read,
                // The writer was faster: all files again, from the new revision.
                Err(SnapshotError::Replaced) => continue,
                Err(SnapshotError::Missing { .. }) if missing == Missing::Ignore => return Ok(None),
                Err(SnapshotError::Missing { .. }) => {
                    let path = path.to_owned();
                    return Err(LoadError::Missing { path });
                }
                Err(source) => {
                    return Err(LoadError::Read {
                        path: path.to_owned(),
                        source: Arc::new(source),
                    });
                }
            };
            for (key, bytes) in files {
                match kind {
                    FileKind::File(format) => parse(format, bytes, &path.display().to_string(), onto)?,
                    FileKind::Directory => {
                        let name = path.join(&key).display().to_string();
                        match Format::of(&key) {
                            Some(format) => parse(format, bytes, &name, onto)?,
                            None => onto.set(&[&key], field(bytes, &name)),
                        }
                    }
                }
            }
            return Ok(Some(revision));
        }
    }
}

fn parse(format: Format, bytes: Vec<u8>, name: &str, onto: &mut Node) -> Result<(), LoadError> {
    let source: Arc<str> = name.into();
    let text = String::from_utf8(bytes).map_err(|_| LoadError::Syntax {
        place: Place {
            source: source.clone(),
            line: None,
        },
        message: "it is not UTF-8".to_owned(),
    })?;
    format.parse_onto(&text, &source, onto)
}

/// The value of a field that has a file of its own.
fn field(bytes: Vec<u8>, name: &str) -> Node {
    let value = match String::from_utf8(bytes) {
        Ok(mut text) => {
            if text.ends_with('\n') {
                text.pop();
            }
            Value::Text(text)
        }
        Err(error) => Value::Bytes(error.into_bytes()),
    };
    Node::new(value, &name.into(), None)
}

fn of_json(value: serde_json::Value, source: &Arc<str>) -> Node {
    let value = match value {
        serde_json::Value::Array(items) => {
            Value::Sequence(items.into_iter().map(|item| of_json(item, source)).collect())
        }
        serde_json::Value::Object(entries) => {
            let entries = entries.into_iter();
            Value::Mapping(
                entries
                    .map(|(key, value)| (key, of_json(value, source)))
                    .collect(),
            )
        }
        value => scalar(value),
    };
    Node::new(value, source, None)
}
