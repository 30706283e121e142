//! From layers to a value.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotmap_projection::{Limits, Revision, Snapshot, SnapshotError};
use serde::de::DeserializeOwned;

use crate::builder::Missing;
use crate::deserialize::from_node;
#[cfg(feature = "endpoint")]
use crate::endpoint::Endpoint;
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
    #[cfg(feature = "endpoint")]
    Endpoint {
        endpoint: Arc<Endpoint>,
        missing: Missing,
    },
    Environment {
        prefix: String,
        variables: Vec<(String, String)>,
    },
}

/// A layer that changes.
pub(crate) enum Source<'a> {
    Path(&'a Path),
    #[cfg(feature = "endpoint")]
    Endpoint(&'a Arc<Endpoint>),
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
            #[cfg(feature = "endpoint")]
            Self::Endpoint {
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
    /// One for each source of the layers, in their order; `None` of what was not there or was not come to.
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

    /// What is followed, and whether each may be missing.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (Source<'_>, Missing)> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Path { path, missing, .. } => Some((Source::Path(path), *missing)),
            #[cfg(feature = "endpoint")]
            Layer::Endpoint { endpoint, missing } => Some((Source::Endpoint(endpoint), *missing)),
            Layer::Defaults(_) | Layer::Environment { .. } => None,
        })
    }

    pub(crate) fn load(&self) -> Loaded<T> {
        let mut revisions = vec![None; self.sources().count()];
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
                    let revision = places.next().expect("there is one for each source");
                    let Some(files) = self.path(path, *missing, revision)? else {
                        continue;
                    };
                    merge(files, *kind, &path.display().to_string(), &mut node)?;
                }
                #[cfg(feature = "endpoint")]
                Layer::Endpoint { endpoint, missing } => {
                    let revision = places.next().expect("there is one for each source");
                    let fetched = match endpoint.fetch(self.limits.bytes) {
                        Ok(fetched) => fetched,
                        Err(_) if *missing == Missing::Ignore => continue,
                        Err(message) => {
                            let address = endpoint.name.clone();
                            return Err(LoadError::Unreachable { address, message });
                        }
                    };
                    *revision = Some(Revision::new(fetched.revision));
                    merge(fetched.files, FileKind::Directory, &endpoint.name, &mut node)?;
                }
            }
        }
        let value = from_node(&node)?;
        for check in &self.validate {
            check(&value).map_err(|message| LoadError::Invalid { message })?;
        }
        Ok(value)
    }

    /// The files, and in `revision` the revision that was read, whether or not it can be understood.
    fn path(
        &self,
        path: &Path,
        missing: Missing,
        revision: &mut Option<Revision>,
    ) -> Result<Option<Files>, LoadError> {
        let mut looks = 0;
        loop {
            looks += 1;
            let read = Snapshot::open_within(path, self.limits)
                .and_then(|snapshot| Ok((snapshot.read_all()?, snapshot.revision().clone())));
            return match read {
                Ok((files, read)) => {
                    *revision = Some(read);
                    Ok(Some(files))
                }
                // The writer was faster: all files again, from the new revision.
                Err(SnapshotError::Replaced) if looks < LOOKS_MAX => continue,
                Err(SnapshotError::Missing { .. }) if missing == Missing::Ignore => Ok(None),
                Err(SnapshotError::Missing { .. }) => {
                    let path = path.to_owned();
                    Err(LoadError::Missing { path })
                }
                Err(source) => Err(LoadError::Read {
                    path: path.to_owned(),
                    source: Arc::new(source),
                }),
            };
        }
    }
}

type Files = BTreeMap<String, Vec<u8>>;

/// A writer that overtakes a reader this often is no writer of configuration.
const LOOKS_MAX: u32 = 100;

fn merge(files: Files, kind: FileKind, source: &str, onto: &mut Node) -> Result<(), LoadError> {
    for (key, bytes) in files {
        match kind {
            FileKind::File(format) => parse(format, bytes, source, onto)?,
            FileKind::Directory => {
                let name = format!("{source}/{key}");
                match Format::of(&key) {
                    Some(format) => parse(format, bytes, &name, onto)?,
                    None => onto.set(&[&key], field(bytes, &name)),
                }
            }
        }
    }
    Ok(())
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
