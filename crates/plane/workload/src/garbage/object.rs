//! What the collector keeps of an object: its place, its owners, and how far its deletion has come.

use std::{
    fmt, ptr,
    sync::{Arc, LazyLock},
};

use hotmap_client::{ClientError, RawObject, ResourcePath};
use hotmap_kinds::Resource;
use serde::Deserialize;

use crate::view::{OwnerReference, or_default};

/// Waits for its dependents to lose their references.
pub(super) const ORPHAN: &str = "orphan";
/// Waits for its dependents to go.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// Identity of an object, for ever.
pub(super) type Uid = Arc<str>;

/// A kind that the server has. Two are the same if they are the same entry of the registry.
#[derive(Clone, Copy)]
pub(super) struct Kind(pub(super) &'static Resource);

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind)
    }
}

static FOLLOWED: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let mut prefixes = Vec::new();
    let mut kinds = Vec::new();
    for resource in hotmap_kinds::resources() {
        let has = |verb| resource.verbs.contains(&verb);
        let is_followed = has("delete") && has("list") && has("watch") && resource.kind != "Event";
        if is_followed && !prefixes.contains(&resource.prefix) {
            prefixes.push(resource.prefix);
            kinds.push(Kind(resource));
        }
    }
    kinds
});

impl Kind {
    /// Every kind whose objects are looked after: what can be deleted, listed and watched, under one of its names if it has
    /// two. Events are news and own nothing, as upstream has it.
    pub(super) fn all() -> &'static [Self] {
        &FOLLOWED
    }

    /// The kind that a reference names; nothing if the server does not have it, or the collector does not follow it.
    fn named(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = hotmap_kinds::find_kind(group, version, kind)?;
        Self::all().iter().copied().find(|known| ptr::eq(known.0, found))
    }

    pub(super) fn collection(self) -> ResourcePath {
        ResourcePath::new(self.0.group, self.0.version, self.0.plural)
    }

    pub(super) fn api_version(self) -> String {
        match self.0.group {
            "" => self.0.version.to_owned(),
            group => format!("{group}/{}", self.0.version),
        }
    }
}

/// A place where an object may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) kind: Kind,
    /// Empty for cluster-scoped objects.
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

impl Place {
    pub(super) fn path(&self) -> ResourcePath {
        let collection = self.kind.collection();
        match &*self.namespace {
            "" => collection.name(&*self.name),
            namespace => collection.in_namespace(namespace).name(&*self.name),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.0.plural, self.namespace, self.name)
    }
}

/// Somebody an object says it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) uid: Uid,
    /// Where it has to be.
    pub(super) at: Whereabouts,
    /// Whether the owner waits for this object when it is deleted in the foreground.
    pub(super) blocks: bool,
}

/// Where the owner that a reference names has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// Here and nowhere else.
    At(Place),
    /// Nowhere: an object of the cluster cannot belong to one of a namespace.
    OutOfReach(Place),
    /// Nobody can say: the server does not have the kind.
    UnknownKind,
}

impl Whereabouts {
    pub(super) fn place(&self) -> Option<&Place> {
        match self {
            Self::At(place) | Self::OutOfReach(place) => Some(place),
            Self::UnknownKind => None,
        }
    }
}

impl Owner {
    fn of(reference: &OwnerReference, dependent_namespace: &str) -> Self {
        let at = match Kind::named(&reference.api_version, &reference.kind) {
            None => Whereabouts::UnknownKind,
            Some(kind) => {
                let namespace = if kind.0.namespaced {
                    dependent_namespace
                } else {
                    ""
                };
                let name = reference.name.as_str().into();
                let place = Place {
                    kind,
                    namespace: namespace.into(),
                    name,
                };
                if kind.0.namespaced && dependent_namespace.is_empty() {
                    Whereabouts::OutOfReach(place)
                } else {
                    Whereabouts::At(place)
                }
            }
        };
        Self {
            uid: reference.uid.as_str().into(),
            at,
            blocks: reference.block_owner_deletion,
        }
    }
}

/// How far the deletion of an object has come, as far as the collector is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    /// Nobody asked for it.
    None,
    /// On its way; the collector is not needed for it.
    OnItsWay,
    /// It waits for its dependents to be made orphans.
    WaitsForOrphans,
    /// It waits for its dependents to be gone.
    WaitsForDependents,
}

impl Deletion {
    /// Whether the collector has to do something before the object goes.
    pub(super) fn is_waiting(self) -> bool {
        matches!(self, Self::WaitsForOrphans | Self::WaitsForDependents)
    }
}

/// One state of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) uid: Uid,
    pub(super) place: Place,
    pub(super) resource_version: Box<str>,
    pub(super) owners: Box<[Owner]>,
    pub(super) finalizers: Box<[Box<str>]>,
    pub(super) is_deleting: bool,
}

impl Object {
    /// Reads the metadata; nothing else of the object is looked at.
    ///
    /// # Errors
    /// [`ClientError::Decode`] for what no server sends.
    pub(super) fn read(kind: Kind, raw: &RawObject) -> Result<Self, ClientError> {
        let Read { metadata } = raw.parse()?;
        let owners = metadata.owner_references.iter();
        let finalizers = metadata.finalizers.into_iter().map(String::into_boxed_str);
        Ok(Self {
            uid: raw.uid().into(),
            place: Place {
                kind,
                namespace: raw.namespace().into(),
                name: raw.name().into(),
            },
            resource_version: raw.resource_version().into(),
            owners: owners.map(|owner| Owner::of(owner, raw.namespace())).collect(),
            finalizers: finalizers.collect(),
            is_deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|held| &**held == name)
    }

    pub(super) fn deletion(&self) -> Deletion {
        if !self.is_deleting {
            Deletion::None
        } else if self.has_finalizer(ORPHAN) {
            Deletion::WaitsForOrphans
        } else if self.has_finalizer(FOREGROUND) {
            Deletion::WaitsForDependents
        } else {
            Deletion::OnItsWay
        }
    }

    /// Its references to one owner; two to the same are unusual and allowed.
    pub(super) fn references_to<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Owner> {
        self.owners.iter().filter(move |owner| &*owner.uid == uid)
    }
}

#[derive(Deserialize)]
struct Read {
    #[serde(deserialize_with = "or_default", default)]
    metadata: ReadMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReadMetadata {
    #[serde(deserialize_with = "or_default")]
    owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "or_default")]
    finalizers: Vec<String>,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(kind: &str, metadata: Value) -> Object {
        let resource = hotmap_kinds::find_kind("", "v1", kind).expect("a core kind");
        let raw =
            RawObject::from_json(json!({ "metadata": metadata }).to_string().into()).expect("an object");
        Object::read(Kind(resource), &raw).expect("metadata")
    }

    #[test]
    fn a_reference_says_where_its_owner_has_to_be() {
        let owners = |kind: &str, namespace: &str, owner: Value| {
            read(
                kind,
                json!({"uid": "u", "name": "a", "namespace": namespace, "ownerReferences": [owner]}),
            )
            .owners
        };
        let owner = |api: &str, kind: &str| json!({"apiVersion": api, "kind": kind, "name": "o", "uid": "x"});
        for (dependent, namespace, reference, wanted) in [
            ("ConfigMap", "n", owner("v1", "Secret"), "at secrets n/o"),
            ("ConfigMap", "n", owner("v1", "Namespace"), "at namespaces /o"),
            ("Namespace", "", owner("v1", "Node"), "at nodes /o"),
            ("Namespace", "", owner("v1", "Secret"), "out of reach"),
            ("ConfigMap", "n", owner("v1", "Pizza"), "unknown"),
            ("ConfigMap", "n", owner("v9", "Secret"), "unknown"),
            ("ConfigMap", "n", owner("v1", "Event"), "unknown"),
        ] {
            let said = match &owners(dependent, namespace, reference.clone())[0].at {
                Whereabouts::At(place) => format!("at {place}"),
                Whereabouts::OutOfReach(_) => "out of reach".to_owned(),
                Whereabouts::UnknownKind => "unknown".to_owned(),
            };
            assert_eq!(said, wanted, "{reference}");
        }
    }

    #[test]
    fn the_collector_acts_on_its_own_finalizers_once_an_object_is_deleted() {
        for (deletion, finalizers, wanted) in [
            (Value::Null, json!(["foregroundDeletion"]), Deletion::None),
            (json!("t"), json!(["x"]), Deletion::OnItsWay),
            (json!("t"), Value::Null, Deletion::OnItsWay),
            (json!("t"), json!(["x", "orphan"]), Deletion::WaitsForOrphans),
            (
                json!("t"),
                json!(["foregroundDeletion"]),
                Deletion::WaitsForDependents,
            ),
        ] {
            let object = read(
                "Secret",
                json!({"deletionTimestamp": deletion, "finalizers": finalizers}),
            );
            assert_eq!(object.deletion(), wanted, "{finalizers}");
        }
    }

    #[test]
    fn every_kind_is_followed_once_and_events_are_not() {
        let kinds: Vec<_> = Kind::all()
            .iter()
            .map(|kind| kind.collection().to_string())
            .collect();
        for wanted in [
            "/api/v1/configmaps",
            "/api/v1/secrets",
            "/api/v1/nodes",
            "/api/v1/namespaces",
        ] {
            assert_eq!(kinds.iter().filter(|one| *one == wanted).count(), 1, "{wanted}");
        }
        assert!(
            !kinds
                .iter()
                .any(|one| one.contains("event") || one.contains("review")),
            "{kinds:?}"
        );
    }
}
