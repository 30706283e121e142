//! What all objects have in common.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Key, or_default};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) creation_timestamp: Option<Timestamp>,
    pub(crate) deletion_timestamp: Option<Timestamp>,
    /// Seconds.
    pub(crate) deletion_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) finalizers: Vec<String>,
}

/// Who an object belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct OwnerReference {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) controller: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) block_owner_deletion: bool,
}

impl Metadata {
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// The one owner that manages the object, if there is one.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }
}
