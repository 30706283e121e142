//! The content of one ConfigMap or Secret, decoded.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hotmap_trace::TraceContext;
use hotmap_volume::Keys;
use serde::Deserialize;

use crate::{references::ObjectKind, report::Revision};

/// When a revision came to this node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    at: Instant,
    /// By the clock of the API, where it tells.
    committed: Option<SystemTime>,
    /// Where its way goes on, if somebody traces it.
    trace: Option<TraceContext>,
}

impl Heard {
    /// In the span that this thread is in.
    pub(crate) fn now(committed: Option<SystemTime>) -> Self {
        let at = Instant::now();
        let trace = hotmap_trace::current();
        Self { at, committed, trace }
    }

    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// When it was committed, by the clock of the API, where it tells.
    pub(crate) fn committed(&self) -> Option<SystemTime> {
        self.committed
    }

    /// How long ago it was heard of, and how long ago it was committed. Clocks of two machines may differ: a commit
    /// in the future is one just now.
    pub(crate) fn ages(&self) -> (Duration, Option<Duration>) {
        let committed = self
            .committed
            .map(|committed| committed.elapsed().unwrap_or_default());
        (self.at.elapsed(), committed)
    }
}

/// One revision of one object. Its values are never printed.
pub(crate) struct Held {
    heard: Heard,
    uid: String,
    resource_version: String,
    is_immutable: bool,
    /// Keys that volumes project: everything.
    keys: Arc<Keys>,
    /// Keys of `binaryData`: volumes project them, environments do not see them.
    binary: Vec<String>,
    /// What reports call it; computed when first asked for.
    revision: OnceLock<Arc<Revision>>,
}

/// A document that is no ConfigMap or Secret. Says where, never what.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeldError {
    #[error("not the JSON of an object (line {line}, column {column})")]
    Json { line: usize, column: usize },
    #[error("the value of key {key:?} is not base64")]
    Base64 { key: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Document {
    metadata: Metadata,
    immutable: Option<bool>,
    // An empty value of a Secret may be written as null, as Go writes it.
    data: Option<BTreeMap<String, Option<String>>>,
    binary_data: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    uid: String,
    resource_version: String,
}

impl Held {
    /// Reads an API document.
    pub(crate) fn parse(kind: ObjectKind, json: &[u8], heard: Heard) -> Result<Self, HeldError> {
        let document: Document = serde_json::from_slice(json).map_err(|error| HeldError::Json {
            line: error.line(),
            column: error.column(),
        })?;
        let mut keys = Keys::new();
        for (key, value) in document.data.unwrap_or_default() {
            let value = value.unwrap_or_default();
            let bytes = match kind {
                ObjectKind::ConfigMap => Bytes::from(value),
                ObjectKind::Secret => decoded(&key, &value)?,
            };
            keys.insert(key, bytes);
        }
        let mut binary = Vec::new();
        for (key, value) in document.binary_data.unwrap_or_default() {
            let value = value.unwrap_or_default();
            keys.insert(key.clone(), decoded(&key, &value)?);
            binary.push(key);
        }
        let Metadata {
            uid,
            resource_version,
        } = document.metadata;
        Ok(Self {
            heard,
            uid,
            resource_version,
            is_immutable: document.immutable == Some(true),
            keys: Arc::new(keys),
            binary,
            revision: OnceLock::new(),
        })
    }

    /// What tells it from every other revision of every object.
    pub(crate) fn version(&self) -> String {
        format!("{}@{}", self.uid, self.resource_version)
    }

    /// When it came to this node.
    pub(crate) fn heard(&self) -> Heard {
        self.heard
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    pub(crate) fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// Whether its content never changes: another content is another object.
    pub(crate) fn is_immutable(&self) -> bool {
        self.is_immutable
    }

    /// Whether this is the same revision of the same object.
    pub(crate) fn is_same_as(&self, other: &Held) -> bool {
        self.uid == other.uid && self.resource_version == other.resource_version
    }

    /// What reports call it; `compute` is run at most once.
    pub(crate) fn revision(&self, compute: impl FnOnce() -> Arc<Revision>) -> Arc<Revision> {
        Arc::clone(self.revision.get_or_init(compute))
    }

    /// Whether a key is one of `binaryData`.
    pub(crate) fn is_binary(&self, key: &str) -> bool {
        self.binary.iter().any(|binary| binary == key)
    }

    /// Whether this is an earlier revision of the same object. Revisions of one object are numbers that grow.
    pub(crate) fn is_older_than(&self, other: &Held) -> bool {
        let number = |held: &Held| held.resource_version.parse::<u64>().ok();
        self.uid == other.uid
            && matches!((number(self), number(other)), (Some(own), Some(others)) if own < others)
    }

    /// Every key with its bytes.
    pub(crate) fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    /// What environments see of it.
    pub(crate) fn text_values(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.keys
            .iter()
            .filter(|(key, _)| !self.binary.contains(key))
            .map(|(key, value)| (key.as_str(), value))
    }

    /// One value that environments see.
    pub(crate) fn text_value(&self, key: &str) -> Option<&Bytes> {
        self.keys
            .get(key)
            .filter(|_| !self.binary.iter().any(|binary| binary == key))
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}@{} ({} keys)",
            self.uid,
            self.resource_version,
            self.keys.len()
        )
    }
}

fn decoded(key: &str, value: &str) -> Result<Bytes, HeldError> {
    STANDARD
        .decode(value)
        .map(Bytes::from)
        .map_err(|_| HeldError::Base64 { key: key.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(kind: ObjectKind, json: &[u8]) -> Result<Held, HeldError> {
        Held::parse(kind, json, Heard::now(None))
    }

    #[test]
    fn content_is_decoded_and_never_shown() {
        let config_map =
            br#"{"metadata":{"uid":"u","resourceVersion":"7"},"data":{"a":"x"},"binaryData":{"b":"AAE="}}"#;
        let held = parse(ObjectKind::ConfigMap, config_map).expect("a ConfigMap");
        assert_eq!(
            (&held.keys()["a"][..], &held.keys()["b"][..]),
            (&b"x"[..], &[0, 1][..])
        );
        assert_eq!(held.text_values().map(|(key, _)| key).collect::<Vec<_>>(), ["a"]);
        let secret = br#"{"metadata":{"uid":"u","resourceVersion":"7"},"data":{"a":"aHVudGVyMg=="}}"#;
        let held = parse(ObjectKind::Secret, secret).expect("a Secret");
        assert_eq!(&held.keys()["a"][..], b"hunter2");
        assert!(!format!("{held:?}").contains("hunter2"));
        let empty = br#"{"metadata":{"uid":"u"},"data":{"a":null},"binaryData":null}"#;
        let held = parse(ObjectKind::Secret, empty).expect("a Secret");
        assert_eq!(&held.keys()["a"][..], b"");
        let error = parse(ObjectKind::Secret, br#"{"data":{"a":"hunter2!"}}"#).expect_err("not base64");
        assert!(error.to_string().contains("\"a\"") && !error.to_string().contains("hunter2"));
    }
}
