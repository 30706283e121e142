//! A DeliveryReport as far as one object is concerned.

use jiff::Timestamp;
use serde::Deserialize;

use crate::{Target, Via};

/// What is read of a report.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportView {
    pub(crate) metadata: Metadata,
    objects: Vec<Entry>,
    pub(crate) objects_omitted: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Entry {
    r#ref: Reference,
    pub(crate) uid: String,
    pub(crate) current: Option<Revision>,
    pub(crate) visible_at: Option<Span>,
    pub(crate) loaded: Option<Loaded>,
    pub(crate) behind: Vec<Row>,
    pub(crate) behind_count: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Reference {
    kind: String,
    namespace: String,
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Revision {
    pub(crate) resource_version: String,
    pub(crate) digest: String,
    pub(crate) heard_at: Option<Timestamp>,
    pub(crate) committed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Span {
    pub(crate) last: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Loaded {
    pub(crate) reporting: u64,
    pub(crate) current: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Row {
    #[serde(rename = "podUID")]
    pod_uid: String,
    volume: String,
    container: String,
    pub(crate) stage: String,
    pub(crate) resource_version: String,
    pub(crate) since: Option<Timestamp>,
    pub(crate) reason: String,
}

impl ReportView {
    pub(crate) fn entry(&self, target: &Target) -> Option<&Entry> {
        self.objects.iter().find(|entry| {
            let of = &entry.r#ref;
            of.kind == target.kind.name() && of.namespace == target.namespace && of.name == target.name
        })
    }
}

impl Entry {
    /// The row of a pod's volume or container; one at most.
    pub(crate) fn row(&self, pod_uid: &str, via: &Via) -> Option<&Row> {
        let (volume, container) = match via {
            Via::Volume(volume) => (volume.as_str(), ""),
            Via::Environment(container) => ("", container.as_str()),
            Via::SubPath { container, volume } => (volume.as_str(), container.as_str()),
        };
        self.behind
            .iter()
            .find(|row| row.pod_uid == pod_uid && row.volume == volume && row.container == container)
    }
}
