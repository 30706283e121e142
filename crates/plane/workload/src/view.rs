//! Narrow views of objects: the fields controllers read, and no more, so that newer fields pass through untouched.
//!
//! `null` reads as absent everywhere: objects in JSON have both.

mod certificate_signing_request;
mod controller_revision;
pub(crate) mod cron_job;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod int_or_percent;
pub(crate) mod job;
mod lease;
mod metadata;
mod node;
mod pod;
mod pod_disruption_budget;
mod pod_template;
pub(crate) mod replica_set;
mod secret;
mod selector;
pub(crate) mod stateful_set;

use std::fmt;

use hotmap_client::{RawObject, ResourcePath};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};

pub(crate) use certificate_signing_request::{CertificateSigningRequest, CertificateSigningRequestSpec};
pub(crate) use controller_revision::ControllerRevision;
pub(crate) use cron_job::CronJob;
pub(crate) use daemon_set::DaemonSet;
pub(crate) use deployment::Deployment;
pub(crate) use int_or_percent::{IntOrPercent, Round};
pub(crate) use job::Job;
pub(crate) use lease::Lease;
pub(crate) use metadata::{Metadata, OwnerReference};
pub(crate) use node::{Node, Taint};
pub(crate) use pod::{Condition, ContainerStatus, NodeRequirement, NodeSelectorTerm, Pod, Toleration};
pub(crate) use pod_disruption_budget::PodDisruptionBudget;
pub(crate) use pod_template::PodTemplate;
pub(crate) use replica_set::ReplicaSet;
pub(crate) use secret::Secret;
pub(crate) use selector::Selector;
pub(crate) use stateful_set::StatefulSet;

use crate::{informer::Informer, informers::Informers};

/// An object's place among those of its kind. Sorted by namespace, then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let (namespace, name) = (namespace.into(), name.into());
        Self { namespace, name }
    }

    pub(crate) fn of(object: &RawObject) -> Self {
        Self::new(object.namespace(), object.name())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// What controllers see of the objects of one kind.
pub(crate) trait View: DeserializeOwned + Send + Sync + 'static {
    /// `apiVersion` of the kind, such as `apps/v1`.
    const API_VERSION: &'static str;
    /// The kind.
    const KIND: &'static str;
    /// Its plural, as in URLs.
    const PLURAL: &'static str;

    fn metadata(&self) -> &Metadata;

    /// The informer that follows this kind.
    fn informer(informers: &Informers) -> &Informer<Self>;

    /// All its objects, over all namespaces.
    fn collection() -> ResourcePath {
        let (group, version) = Self::API_VERSION
            .split_once('/')
            .unwrap_or(("", Self::API_VERSION));
        ResourcePath::new(group, version, Self::PLURAL)
    }

    /// Its own place.
    fn path(&self) -> ResourcePath {
        let Metadata { namespace, name, .. } = self.metadata();
        match namespace.as_str() {
            "" => Self::collection().name(name),
            namespace => Self::collection().in_namespace(namespace).name(name),
        }
    }
}

/// `null` reads as absent.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    input: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}
