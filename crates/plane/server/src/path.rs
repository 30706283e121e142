//! What a URL path and a method mean.
//!
//! Follows `apiserver/pkg/endpoints/request/requestinfo.go`, Kubernetes 1.36:
//!
//! ```text
//!   /api/v1/namespaces/NS/configmaps/NAME          /apis/GROUP/VERSION/namespaces/NS/leases/NAME/SUB
//!   /api/v1/namespaces/NAME/status                 /api/v1/configmaps            every namespace
//! ```

use hotmap_object::FieldSelector;
use hyper::Method;

use crate::{
    authorization::Attributes,
    request::{Query, Verb, percent_decode},
};

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Something that is no resource: `/version`, `/apis/apps/v1`.
    Path(String),
    Resource(ResourcePath),
    /// `/api/v1/watch/…`, which Kubernetes has deprecated since 1.11.
    DeprecatedWatch,
}

/// A path to a resource, whether it exists or not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Plural name.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// Elements behind the sub-resource.
    pub(crate) rest: Vec<String>,
    /// Whether the path begins with `namespaces/`: for Namespaces themselves too.
    in_namespace: Option<String>,
}

/// Sub-resources of Namespaces; any other word behind a namespace's name is a resource in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl Target {
    /// Reads the path as it stands in the request line.
    pub(crate) fn parse(raw_path: &str) -> Self {
        let path = percent_decode(raw_path, false);
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return Target::Path(path),
        };
        if matches!(rest, ["watch", _, ..]) {
            return Target::DeprecatedWatch;
        }
        let (in_namespace, rest) = match rest {
            ["namespaces", name, word, ..] if !NAMESPACE_SUBRESOURCES.contains(word) => {
                (Some(*name), &rest[2..])
            }
            ["namespaces", name, ..] => (Some(*name), rest),
            _ => (None, rest),
        };
        let part = |at: usize| {
            rest.get(at)
                .filter(|part| !part.is_empty())
                .map(|part| (*part).to_owned())
        };
        let resource = part(0).unwrap_or_default();
        Target::Resource(ResourcePath {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: in_namespace
                .filter(|_| resource != "namespaces")
                .map(str::to_owned),
            in_namespace: in_namespace.map(str::to_owned),
            resource,
            name: part(1),
            subresource: part(2),
            rest: rest.iter().skip(3).map(|part| (*part).to_owned()).collect(),
        })
    }
}

impl ResourcePath {
    /// What the method asks for; `None` for methods that resources do not have.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> Option<Verb> {
        Some(match (method.as_str(), self.name.is_some()) {
            ("GET" | "HEAD", true) => Verb::Get,
            ("GET" | "HEAD", false) if query.flag("watch") => Verb::Watch,
            ("GET" | "HEAD", false) => Verb::List,
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", true) => Verb::Delete,
            ("DELETE", false) => Verb::DeleteCollection,
            _ => return None,
        })
    }

    /// What authorization asks about. A list or watch of one name counts as a request for that name.
    pub(crate) fn attributes(&self, verb: Option<Verb>, query: &Query) -> Attributes {
        let selects = matches!(verb, Some(Verb::List | Verb::Watch | Verb::DeleteCollection));
        let selector = query.get("fieldSelector").filter(|_| selects);
        let fields = selector
            .and_then(|raw| raw.parse::<FieldSelector>().ok())
            .unwrap_or_default();
        let selected = fields
            .exact("metadata.name")
            .filter(|_| verb != Some(Verb::DeleteCollection));
        Attributes {
            verb: verb.map_or("", Verb::as_str).to_owned(),
            group: self.group.clone(),
            version: self.version.clone(),
            resource: self.resource.clone(),
            subresource: self.subresource.clone().unwrap_or_default(),
            namespace: self.in_namespace.clone().unwrap_or_default(),
            name: self
                .name
                .clone()
                .or(selected.map(str::to_owned))
                .unwrap_or_default(),
            path: None,
            fields,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// verb, group, namespace for permissions, resource, name, sub-resource
    fn check(method: &str, url: &str) -> Option<[String; 6]> {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let Target::Resource(path) = Target::parse(path) else {
            return None;
        };
        let query = Query::parse(query);
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let held = path.attributes(path.verb(&method, &query), &query);
        Some([
            held.verb,
            held.group,
            held.namespace,
            held.resource,
            held.name,
            held.subresource,
        ])
    }

    #[test]
    fn urls_name_resources_and_methods_name_verbs() {
        let one = "/api/v1/namespaces/ns/configmaps/a";
        for (method, url, expected) in [
            (
                "GET",
                "/api/v1/namespaces",
                ["list", "", "", "namespaces", "", ""],
            ),
            (
                "GET",
                "/api/v1/namespaces/ns",
                ["get", "", "ns", "namespaces", "ns", ""],
            ),
            (
                "PUT",
                "/api/v1/namespaces/ns/finalize",
                ["update", "", "ns", "namespaces", "ns", "finalize"],
            ),
            (
                "PATCH",
                "/api/v1/namespaces/ns/status",
                ["patch", "", "ns", "namespaces", "ns", "status"],
            ),
            (
                "GET",
                "/api/v1/configmaps",
                ["list", "", "", "configmaps", "", ""],
            ),
            (
                "GET",
                "/api/v1/configmaps?watch=1",
                ["watch", "", "", "configmaps", "", ""],
            ),
            (
                "GET",
                "/api/v1/configmaps?watch=false",
                ["list", "", "", "configmaps", "", ""],
            ),
            ("HEAD", one, ["get", "", "ns", "configmaps", "a", ""]),
            (
                "GET",
                "/api/v1/namespaces/ns/configmaps/a?watch=1",
                ["get", "", "ns", "configmaps", "a", ""],
            ),
            (
                "GET",
                "/api/v1/namespaces/ns/configmaps?fieldSelector=metadata.name%3Da",
                ["list", "", "ns", "configmaps", "a", ""],
            ),
            (
                "POST",
                "/api/v1/namespaces/ns/pods/p/binding",
                ["create", "", "ns", "pods", "p", "binding"],
            ),
            ("DELETE", one, ["delete", "", "ns", "configmaps", "a", ""]),
            (
                "DELETE",
                "/api/v1/namespaces/ns/configmaps/",
                ["deletecollection", "", "ns", "configmaps", "", ""],
            ),
            ("OPTIONS", one, ["", "", "ns", "configmaps", "a", ""]),
            (
                "GET",
                "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l",
                ["get", "coordination.k8s.io", "ns", "leases", "l", ""],
            ),
        ] {
            assert_eq!(
                check(method, url),
                Some(expected.map(str::to_owned)),
                "{method} {url}"
            );
        }
    }

    #[test]
    fn other_paths_are_no_resources() {
        for path in [
            "/",
            "/api",
            "/api/v1",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/version",
            "/readyz/ping",
        ] {
            assert_eq!(Target::parse(path), Target::Path(path.to_owned()));
        }
        assert_eq!(Target::parse("/api/v1/watch/configmaps"), Target::DeprecatedWatch);
    }
}
