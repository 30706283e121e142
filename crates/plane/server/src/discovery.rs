//! What is served, told to clients: the aggregated documents of `apidiscovery.k8s.io/v2` and the legacy ones.
//!
//! Shapes follow `apiserver/pkg/endpoints/discovery`, Kubernetes 1.36. The documents never change while the server runs,
//! so each is made once.

use std::{collections::BTreeMap, fmt::Write, net::SocketAddr};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hotmap_kinds::{Resource, Subresource};
use hotmap_object::Status;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256, Sha512};

use crate::http::negotiation::{Accept, Clause};

const AGGREGATED_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Every document, by path.
#[derive(Debug)]
pub(crate) struct Discovery {
    aggregated: BTreeMap<String, Document>,
    legacy: BTreeMap<String, Document>,
}

/// One document, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
    /// Quoted, as the `ETag` header has it.
    pub(crate) etag: String,
}

impl Document {
    fn new(content_type: &'static str, value: &Value) -> Self {
        let body: Bytes = value.to_string().into();
        let mut etag = String::from("\"");
        for byte in Sha512::digest(&body) {
            write!(etag, "{byte:02X}").expect("writing to a string does not fail");
        }
        etag.push('"');
        Self {
            content_type,
            body,
            etag,
        }
    }
}

impl Discovery {
    /// `address` is where this server listens, for clients that ask `/api` for it.
    pub(crate) fn new(resources: &'static [Resource], address: SocketAddr) -> Self {
        let versions = group_versions(resources);
        let named = versions.iter().filter(|one| !one.group.is_empty());
        let core = versions.iter().filter(|one| one.group.is_empty());
        let aggregated = [
            ("/api", core.map(aggregated_group).collect()),
            ("/apis", named.clone().map(aggregated_group).collect()),
        ];
        let mut legacy = BTreeMap::from([
            (
                "/api".to_owned(),
                json!({
                    "kind": "APIVersions",
                    "versions": ["v1"],
                    "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address.to_string()}],
                }),
            ),
            (
                "/apis".to_owned(),
                json!({
                    "kind": "APIGroupList",
                    "apiVersion": "v1",
                    "groups": named.clone().map(legacy_group).collect::<Vec<_>>(),
                }),
            ),
        ]);
        for one in named {
            let mut group = legacy_group(one);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            legacy.insert(format!("/apis/{}", one.group), group);
        }
        for one in &versions {
            legacy.insert(one.path(), legacy_resources(one));
        }
        let document = |(path, groups): (&str, Vec<Value>)| {
            let list = json!({
                "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups,
            });
            (path.to_owned(), Document::new(AGGREGATED_TYPE, &list))
        };
        Self {
            aggregated: aggregated.into_iter().map(document).collect(),
            legacy: legacy
                .iter()
                .map(|(path, value)| (path.clone(), Document::new("application/json", value)))
                .collect(),
        }
    }

    /// Whether a path is one of discovery's.
    pub(crate) fn holds(&self, path: &str) -> bool {
        self.legacy.contains_key(path)
    }

    /// The document of a path in the form the client likes best.
    ///
    /// # Errors
    ///
    /// 404 for a path that is none, 406 if the client takes no JSON.
    pub(crate) fn document(&self, path: &str, accept: &Accept) -> Result<&Document, Status> {
        let legacy = self.legacy.get(path).ok_or_else(Status::page_not_found)?;
        let aggregated = self.aggregated.get(path);
        if accept.clauses().is_empty() {
            return Ok(legacy);
        }
        let chosen = accept
            .clauses()
            .iter()
            .find_map(|clause| match asked_for(clause)? {
                Wanted::Aggregated => aggregated,
                Wanted::Legacy => Some(legacy),
            });
        chosen.ok_or_else(|| Status::not_acceptable("application/json"))
    }
}

enum Wanted {
    Aggregated,
    Legacy,
}

fn asked_for(clause: &Clause) -> Option<Wanted> {
    if !clause.covers("application/json") {
        return None;
    }
    match ["g", "v", "as"].map(|name| clause.parameter(name)) {
        [None, None, None] => Some(Wanted::Legacy),
        [
            Some("apidiscovery.k8s.io"),
            Some("v2"),
            Some("APIGroupDiscoveryList"),
        ] => Some(Wanted::Aggregated),
        _ => None,
    }
}

/// One version of one group with its resources. Every group has one version so far.
struct GroupVersion {
    group: &'static str,
    version: &'static str,
    resources: Vec<&'static Resource>,
}

impl GroupVersion {
    fn name(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    fn path(&self) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{root}/{}", self.name())
    }
}

fn group_versions(resources: &'static [Resource]) -> Vec<GroupVersion> {
    let mut all: Vec<GroupVersion> = Vec::new();
    for resource in resources {
        match all
            .iter_mut()
            .find(|held| (held.group, held.version) == (resource.group, resource.version))
        {
            Some(held) => held.resources.push(resource),
            None => all.push(GroupVersion {
                group: resource.group,
                version: resource.version,
                resources: vec![resource],
            }),
        }
    }
    all
}

fn aggregated_group(one: &GroupVersion) -> Value {
    let metadata = if one.group.is_empty() {
        json!({})
    } else {
        json!({"name": one.group})
    };
    let resources: Vec<Value> = one
        .resources
        .iter()
        .map(|resource| aggregated_resource(resource))
        .collect();
    let version = json!({"version": one.version, "freshness": "Current", "resources": resources});
    json!({"metadata": metadata, "versions": [version]})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    let entry_fields = entry.as_object_mut().expect("an object");
    insert_names(entry_fields, resource);
    if !resource.subresources.is_empty() {
        let subresources = resource.subresources.iter().map(|subresource| {
            let kind = &subresource.kind;
            json!({
                "subresource": subresource.name,
                "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
                "verbs": subresource.verbs,
            })
        });
        entry_fields.insert("subresources".to_owned(), subresources.collect());
    }
    entry
}

fn legacy_group(one: &GroupVersion) -> Value {
    let version = json!({"groupVersion": one.name(), "version": one.version});
    json!({"name": one.group, "versions": [version], "preferredVersion": version})
}

fn legacy_resources(one: &GroupVersion) -> Value {
    let mut entries = Vec::new();
    for resource in &one.resources {
        let mut entry = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs,
        });
        let fields = entry.as_object_mut().expect("an object");
        insert_names(fields, resource);
        if !resource.prefix.is_empty() {
            fields.insert(
                "storageVersionHash".to_owned(),
                storage_version_hash(resource).into(),
            );
        }
        entries.push(entry);
        entries.extend(
            resource
                .subresources
                .iter()
                .map(|subresource| legacy_subresource(resource, subresource)),
        );
    }
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": one.name(), "resources": entries})
}

fn legacy_subresource(resource: &Resource, subresource: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, subresource.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind.kind,
        "verbs": subresource.verbs,
    });
    if (&*subresource.kind.group, &*subresource.kind.version) != (resource.group, resource.version) {
        entry["group"] = (*subresource.kind.group).into();
        entry["version"] = (*subresource.kind.version).into();
    }
    entry
}

fn insert_names(entry: &mut Map<String, Value>, resource: &Resource) {
    for (key, names) in [
        ("shortNames", resource.short_names),
        ("categories", resource.categories),
    ] {
        if !names.is_empty() {
            entry.insert(key.to_owned(), json!(names));
        }
    }
}

/// Follows `apiserver/pkg/endpoints/discovery/storageversionhash.go`: which type the stored bytes are of. Both views of
/// an Event are stored as core's.
fn storage_version_hash(resource: &Resource) -> String {
    let group = if resource.kind == "Event" {
        ""
    } else {
        resource.group
    };
    let hash = Sha256::digest(format!("{group}/{}/{}", resource.version, resource.kind));
    BASE64_STANDARD.encode(&hash[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discovery() -> Discovery {
        Discovery::new(
            hotmap_kinds::resources(),
            SocketAddr::from(([127, 0, 0, 1], 6443)),
        )
    }

    fn value(document: &Document) -> Value {
        serde_json::from_slice(&document.body).expect("JSON")
    }

    const KUBECTL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

    #[test]
    fn the_form_follows_the_accept_header() {
        let discovery = discovery();
        for (path, accept, kind) in [
            ("/api", KUBECTL, Some("APIGroupDiscoveryList")),
            ("/apis", KUBECTL, Some("APIGroupDiscoveryList")),
            ("/api", "", Some("APIVersions")),
            (
                "/apis",
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
                Some("APIGroupList"),
            ),
            ("/api/v1", KUBECTL, Some("APIResourceList")),
            ("/apis/coordination.k8s.io", "*/*", Some("APIGroup")),
            ("/apis/coordination.k8s.io/v1", "*/*", Some("APIResourceList")),
            ("/apis", "text/html", None),
            ("/apis/nothing.example", "*/*", None),
        ] {
            let document = discovery.document(path, &Accept::parse(accept));
            let held = document
                .ok()
                .map(|document| value(document)["kind"].as_str().expect("a kind").to_owned());
            assert_eq!(held.as_deref(), kind, "{path} {accept:?}");
        }
    }

    #[test]
    fn groups_and_resources_have_what_clients_read() {
        let discovery = discovery();
        let aggregated = value(
            discovery
                .document("/api", &Accept::parse(KUBECTL))
                .expect("a document"),
        );
        let resources = aggregated["items"][0]["versions"][0]["resources"]
            .as_array()
            .expect("resources");
        let pods = resources
            .iter()
            .find(|one| one["resource"] == "pods")
            .expect("pods");
        assert_eq!(
            pods["responseKind"],
            json!({"group": "", "version": "v1", "kind": "Pod"})
        );
        assert_eq!(
            (&pods["scope"], &pods["categories"]),
            (&json!("Namespaced"), &json!(["all"]))
        );
        assert!(
            pods["subresources"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["subresource"] == "log"))
        );

        let legacy = value(
            discovery
                .document("/api/v1", &Accept::default())
                .expect("a document"),
        );
        let resources = legacy["resources"].as_array().expect("resources");
        let find = |name: &str| resources.iter().find(|one| one["name"] == name).expect("listed");
        assert_eq!(find("configmaps")["storageVersionHash"], "qFsyl6wFWjQ=");
        assert_eq!(find("pods/status")["singularName"], "");
        let apis = value(
            discovery
                .document("/apis", &Accept::default())
                .expect("a document"),
        );
        assert!(
            apis["groups"]
                .as_array()
                .is_some_and(|all| all.iter().all(|one| one["name"] != ""))
        );
    }
}
