//! What controllers see of a Lease.

use serde::Deserialize;

use super::{Metadata, View, or_default};
use crate::{informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lease {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: LeaseSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LeaseSpec {
    /// As its holder wrote it: only whether it changes is looked at, for clocks differ.
    #[serde(deserialize_with = "or_default")]
    pub(crate) renew_time: String,
}

impl View for Lease {
    const API_VERSION: &'static str = "coordination.k8s.io/v1";
    const KIND: &'static str = "Lease";
    const PLURAL: &'static str = "leases";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.leases
    }
}
