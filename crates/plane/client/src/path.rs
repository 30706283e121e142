//! Where a resource lives in the URL space of the API.

use std::borrow::Cow;
use std::fmt::Write;

/// The path of a collection, an object or a subresource.
///
/// ```
/// use hotmap_client::ResourcePath;
/// let pods = ResourcePath::new("", "v1", "pods").in_namespace("default");
/// assert_eq!(pods.to_string(), "/api/v1/namespaces/default/pods");
/// let binding = pods.name("web").subresource("binding");
/// assert_eq!(binding.to_string(), "/api/v1/namespaces/default/pods/web/binding");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourcePath {
    group: Cow<'static, str>,
    version: Cow<'static, str>,
    plural: Cow<'static, str>,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl ResourcePath {
    /// The collection of a resource over all namespaces; `group` is empty for the core group.
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        version: impl Into<Cow<'static, str>>,
        plural: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (group, version, plural) = (group.into(), version.into(), plural.into());
        Self {
            group,
            version,
            plural,
            namespace: None,
            name: None,
            subresource: None,
        }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The plural name of the resource.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// The same in one namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// One object of it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A subresource of one object, such as `status`.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }
}

impl std::fmt::Display for ResourcePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut path = String::with_capacity(64);
        if self.group.is_empty() {
            path.push_str("/api");
        } else {
            path.push_str("/apis");
            push_segment(&mut path, &self.group);
        }
        push_segment(&mut path, &self.version);
        if let Some(namespace) = &self.namespace {
            path.push_str("/namespaces");
            push_segment(&mut path, namespace);
        }
        push_segment(&mut path, &self.plural);
        for segment in [&self.name, &self.subresource].into_iter().flatten() {
            push_segment(&mut path, segment);
        }
        f.write_str(&path)
    }
}

fn push_segment(path: &mut String, segment: &str) {
    path.push('/');
    // Names of RBAC objects have colons, which a path may show as they are.
    push_encoded(path, segment, b":");
}

/// A query string, built pair by pair.
#[derive(Debug, Default)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn push(&mut self, key: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(key);
        self.0.push('=');
        push_encoded(&mut self.0, value, b"");
    }

    pub(crate) fn push_unless_empty(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.push(key, value);
        }
    }

    pub(crate) fn push_if(&mut self, key: &str, value: bool) {
        if value {
            self.push(key, "true");
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Percent-encodes all but RFC 3986's unreserved characters and `also`.
fn push_encoded(out: &mut String, text: &str, also: &[u8]) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes all that is written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_grammar_of_the_api() {
        let core = |plural: &'static str| ResourcePath::new("", "v1", plural);
        for (path, text) in [
            (core("nodes"), "/api/v1/nodes"),
            (
                core("nodes").name("n").subresource("status"),
                "/api/v1/nodes/n/status",
            ),
            (
                core("configmaps").in_namespace("a").name("b"),
                "/api/v1/namespaces/a/configmaps/b",
            ),
            (
                ResourcePath::new("rbac.authorization.k8s.io", "v1", "clusterroles").name("system:node"),
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
            ),
            (
                core("configmaps").in_namespace("a/b").name("?x#é"),
                "/api/v1/namespaces/a%2Fb/configmaps/%3Fx%23%C3%A9",
            ),
        ] {
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn queries_are_encoded() {
        let mut query = Query::default();
        assert_eq!(query.as_str(), "");
        query.push("fieldSelector", "metadata.name=a,b");
        query.push_if("watch", true);
        query.push_unless_empty("labelSelector", "");
        assert_eq!(query.as_str(), "?fieldSelector=metadata.name%3Da%2Cb&watch=true");
    }
}
