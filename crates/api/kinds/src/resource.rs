//! The registry: one entry per served resource.

use std::time::Duration;

use hotmap_object::{GroupResource, GroupVersionKind};
use hotmap_schema::Kind;

use crate::Strategy;

/// One resource the API serves.
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version within the group.
    pub version: &'static str,
    /// Kind of one object.
    pub kind: &'static str,
    /// Plural name, as in URLs.
    pub plural: &'static str,
    /// Singular name, as kubectl accepts it.
    pub singular: &'static str,
    /// Short names, as kubectl accepts them.
    pub short_names: &'static [&'static str],
    /// Groups of resources such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Verbs in discovery's spelling, sorted.
    pub verbs: &'static [&'static str],
    /// Sub-resources, each with its own verbs.
    pub subresources: &'static [Subresource],
    /// Key prefix in the store with its trailing slash, such as `/registry/configmaps/`; empty if nothing is stored.
    pub prefix: &'static str,
    /// The alphabet of `metadata.name`.
    pub name_rule: NameRule,
    /// Whether PUT to a missing name creates it.
    pub create_on_update: bool,
    /// Whether PUT needs `metadata.resourceVersion`.
    pub update_needs_revision: bool,
    /// Whether DELETE answers with the object instead of a Status.
    pub delete_returns_object: bool,
    /// Whether the server counts `metadata.generation` for it.
    pub has_generation: bool,
    /// How long an object lives after its last write; `None` for ever.
    pub ttl: Option<Duration>,
    /// JSON and protobuf shape of one object.
    pub schema: &'static Kind,
    /// What the kind means.
    pub strategy: &'static dyn Strategy,
}

/// A path below an object's own.
pub struct Subresource {
    /// Last path element, such as `status`.
    pub name: &'static str,
    /// Type of the document at that path.
    pub kind: GroupVersionKind,
    /// Verbs in discovery's spelling, sorted.
    pub verbs: &'static [&'static str],
}

/// Which alphabet a name uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// DNS-1123 subdomain, at most 253 bytes.
    Subdomain,
    /// DNS-1123 label, at most 63 bytes.
    Label,
    /// DNS-1035 label, at most 63 bytes.
    Dns1035,
    /// Any path segment.
    PathSegment,
}

impl Resource {
    /// The type of one object.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::fixed(self.group, self.version, self.kind)
    }

    /// The name in messages: `configmaps`, `leases.coordination.k8s.io`.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::fixed(self.group, self.plural)
    }
}
