//! Which namespaces there are, and which of them lack what every namespace has.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use hotmap_client::RawObject;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::view::or_default;

/// The account of pods that name none.
pub(super) const ACCOUNT: &str = "default";
/// The ConfigMap with the authority's certificate.
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";
pub(super) const DESCRIPTION_KEY: &str = "kubernetes.io/description";
pub(super) const DESCRIPTION: &str =
    "The certificate authority of this cluster's API server, for clients inside of it.";
/// Kinds that are followed.
const KINDS: u8 = 3;

/// The ConfigMap of one namespace.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Authority {
    Good,
    Missing,
    /// With the merge patch that makes it good.
    Wrong(Value),
}

/// What is known of all namespaces, told of objects with the right name alone. Nothing is said to be lacking before every kind was heard of once.
pub(super) struct Known {
    root_ca: Arc<str>,
    unheard: u8,
    /// Those that are not being deleted.
    namespaces: BTreeSet<String>,
    /// Namespaces that have the account.
    accounts: BTreeSet<String>,
    /// Namespaces that have the ConfigMap; with a patch where it is not as it should be.
    authorities: BTreeMap<String, Option<Value>>,
    /// Namespaces that something has happened to.
    touched: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Namespace {
    metadata: Deletion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deletion {
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct ConfigMap {
    metadata: Annotations,
    #[serde(default, deserialize_with = "or_default")]
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Annotations {
    #[serde(default, deserialize_with = "or_default")]
    annotations: BTreeMap<String, String>,
}

impl Known {
    pub(super) fn new(root_ca: &str) -> Self {
        Self {
            root_ca: root_ca.into(),
            unheard: KINDS,
            namespaces: BTreeSet::new(),
            accounts: BTreeSet::new(),
            authorities: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }

    /// All objects of one more kind are known.
    pub(super) fn heard(&mut self) {
        self.unheard = self.unheard.saturating_sub(1);
    }

    pub(super) fn namespace_applied(&mut self, raw: &RawObject) {
        let parsed = raw.parse::<Namespace>();
        if parsed.is_ok_and(|one| one.metadata.deletion_timestamp.is_none()) {
            self.namespaces.insert(raw.name().to_owned());
            self.touched.insert(raw.name().to_owned());
        } else {
            self.namespaces.remove(raw.name());
        }
    }

    pub(super) fn namespace_deleted(&mut self, raw: &RawObject) {
        self.namespaces.remove(raw.name());
    }

    pub(super) fn account_applied(&mut self, raw: &RawObject) {
        self.accounts.insert(raw.namespace().to_owned());
    }

    pub(super) fn account_deleted(&mut self, raw: &RawObject) {
        self.accounts.remove(raw.namespace());
        self.touched.insert(raw.namespace().to_owned());
    }

    pub(super) fn config_map_applied(&mut self, raw: &RawObject) {
        // What cannot be read has nothing of what it should have.
        let held = raw.parse::<ConfigMap>().unwrap_or(ConfigMap {
            metadata: Annotations {
                annotations: BTreeMap::new(),
            },
            data: BTreeMap::new(),
        });
        let patch = repair(&held, &self.root_ca);
        self.authorities.insert(raw.namespace().to_owned(), patch);
        self.touched.insert(raw.namespace().to_owned());
    }

    pub(super) fn config_map_deleted(&mut self, raw: &RawObject) {
        self.authorities.remove(raw.namespace());
        self.touched.insert(raw.namespace().to_owned());
    }

    /// Whether the account is missing, and how it is with the ConfigMap. A namespace that is not there lacks nothing.
    pub(super) fn state_of(&self, namespace: &str) -> (bool, Authority) {
        if !self.namespaces.contains(namespace) {
            return (false, Authority::Good);
        }
        let authority = match self.authorities.get(namespace) {
            None => Authority::Missing,
            Some(None) => Authority::Good,
            Some(Some(patch)) => Authority::Wrong(patch.clone()),
        };
        (!self.accounts.contains(namespace), authority)
    }

    /// Namespaces that lack something since the last time this was asked.
    pub(super) fn take_lacking(&mut self) -> Vec<String> {
        if self.unheard > 0 {
            return Vec::new();
        }
        let touched = mem::take(&mut self.touched).into_iter();
        touched
            .filter(|name| self.state_of(name) != (false, Authority::Good))
            .collect()
    }
}

/// The merge patch that makes it what it should be; `None` if it is.
fn repair(held: &ConfigMap, root_ca: &str) -> Option<Value> {
    let is_described = held
        .metadata
        .annotations
        .get(DESCRIPTION_KEY)
        .is_some_and(|text| !text.is_empty());
    let is_exact = held.data.len() == 1 && held.data.get("ca.crt").is_some_and(|pem| pem == root_ca);
    if is_described && is_exact {
        return None;
    }
    let mut data: Map<String, Value> = held.data.keys().map(|key| (key.clone(), Value::Null)).collect();
    data.insert("ca.crt".to_owned(), root_ca.into());
    Some(json!({"metadata": {"annotations": {DESCRIPTION_KEY: DESCRIPTION}}, "data": data}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> RawObject {
        RawObject::from_json(value.to_string().into()).expect("an object")
    }

    fn namespace(name: &str) -> RawObject {
        raw(json!({"metadata": {"name": name}}))
    }

    fn account(namespace: &str) -> RawObject {
        raw(json!({"metadata": {"name": ACCOUNT, "namespace": namespace}}))
    }

    fn config_map(namespace: &str, data: Value, description: &str) -> RawObject {
        raw(json!({"metadata": {"name": ROOT_CA, "namespace": namespace,
            "annotations": {DESCRIPTION_KEY: description}}, "data": data}))
    }

    /// Namespaces `a`, complete, and `b`, with nothing.
    fn known() -> Known {
        let mut known = Known::new("PEM");
        for name in ["a", "b"] {
            known.namespace_applied(&namespace(name));
        }
        known.heard();
        known.account_applied(&account("a"));
        known.heard();
        assert!(known.take_lacking().is_empty(), "ConfigMaps are not known yet");
        known.config_map_applied(&config_map("a", json!({"ca.crt": "PEM"}), "d"));
        known.heard();
        known
    }

    #[test]
    fn what_lacks_something_is_named_once_until_something_happens_to_it() {
        let mut known = known();
        assert_eq!(known.take_lacking(), ["b"]);
        assert_eq!(known.state_of("b"), (true, Authority::Missing));
        assert!(known.take_lacking().is_empty());
        known.account_applied(&account("b"));
        known.config_map_applied(&config_map("b", json!({"ca.crt": "PEM"}), "d"));
        assert!(known.take_lacking().is_empty());
        known.account_deleted(&account("b"));
        assert_eq!(known.take_lacking(), ["b"]);
        known.config_map_deleted(&config_map("a", json!({}), "d"));
        assert_eq!(known.take_lacking(), ["a"]);
    }

    #[test]
    fn a_namespace_on_its_way_out_lacks_nothing() {
        let mut known = known();
        let ending = json!({"metadata": {"name": "b", "deletionTimestamp": "2026-01-02T03:04:05Z"}});
        known.namespace_applied(&raw(ending));
        assert!(known.take_lacking().is_empty());
        known.namespace_deleted(&namespace("a"));
        known.account_deleted(&account("a"));
        assert!(known.take_lacking().is_empty());
    }

    #[test]
    fn edits_are_taken_back_key_by_key() {
        for (data, description, patched) in [
            (json!({"ca.crt": "PEM"}), "somebody's words", None),
            (json!({"ca.crt": "PEM"}), "", Some(json!({"ca.crt": "PEM"}))),
            (json!({"ca.crt": "other"}), "d", Some(json!({"ca.crt": "PEM"}))),
            (json!(null), "d", Some(json!({"ca.crt": "PEM"}))),
            (
                json!({"ca.crt": "PEM", "more": "x"}),
                "d",
                Some(json!({"ca.crt": "PEM", "more": null})),
            ),
        ] {
            let mut known = known();
            known.config_map_applied(&config_map("a", data.clone(), description));
            let found = match known.state_of("a").1 {
                Authority::Wrong(patch) => Some(patch["data"].clone()),
                _ => None,
            };
            assert_eq!(found, patched, "{data} {description:?}");
        }
    }
}
