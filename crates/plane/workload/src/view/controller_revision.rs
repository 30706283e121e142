//! What controllers see of a ControllerRevision.

use serde::Deserialize;
use serde_json::Value;

use super::{Metadata, View, or_default};
use crate::{informer::Informer, informers::Informers};

/// One state of a StatefulSet or DaemonSet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ControllerRevision {
    pub(crate) metadata: Metadata,
    /// A patch of the owner; see `revision::Snapshot`.
    pub(crate) data: Value,
    /// Its place in the history: the highest number is the newest.
    #[serde(deserialize_with = "or_default")]
    pub(crate) revision: i64,
}

impl View for ControllerRevision {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "ControllerRevision";
    const PLURAL: &'static str = "controllerrevisions";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.controller_revisions
    }
}
