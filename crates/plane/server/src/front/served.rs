//! Which resources are served at which paths, and with which verbs.

use hotmap_kinds::{Resource, Subresource};
use hotmap_object::Status;

use crate::{path::ResourcePath, request::Verb};

/// The resource of a path; `None` where not even its group and version are served.
///
/// # Errors
///
/// 404 for a resource that is not served, 501 for a sub-resource that Kubernetes has and we do not yet.
pub(super) fn find(
    path: &ResourcePath,
) -> Result<Option<(&'static Resource, Option<&'static Subresource>)>, Status> {
    let mut all = hotmap_kinds::resources().iter();
    if !all.any(|one| (one.group, one.version) == (path.group.as_str(), path.version.as_str())) {
        return Ok(None);
    }
    let resource = hotmap_kinds::find(&path.group, &path.version, &path.resource);
    let resource = resource.ok_or_else(Status::page_not_found)?;
    let is_misplaced = match (resource.namespaced, &path.namespace, &path.name) {
        (true, None, name) => name.is_some(),
        (false, namespace, _) => namespace.is_some(),
        (true, Some(_), _) => false,
    };
    if is_misplaced || !path.rest.is_empty() {
        return Err(Status::page_not_found());
    }
    let Some(name) = &path.subresource else {
        return Ok(Some((resource, None)));
    };
    match resource.subresources.iter().find(|one| one.name == name) {
        Some(subresource) => Ok(Some((resource, Some(subresource)))),
        None if is_known_elsewhere(resource.plural, name) => Err(Status::new(
            501,
            "NotImplemented",
            format!(
                "{}/{name} is not served: hotmap has no {name} yet",
                resource.plural
            ),
        )),
        None => Err(Status::page_not_found()),
    }
}

fn is_known_elsewhere(resource: &str, subresource: &str) -> bool {
    match resource {
        "pods" => matches!(subresource, "proxy" | "resize"),
        "nodes" | "services" => subresource == "proxy",
        _ => false,
    }
}

/// The verb, if the resource has it at this path.
///
/// # Errors
///
/// 405.
pub(super) fn allowed(
    path: &ResourcePath,
    resource: &Resource,
    subresource: Option<&Subresource>,
    verb: Option<Verb>,
) -> Result<Verb, Status> {
    let verbs = subresource.map_or(resource.verbs, |one| one.verbs);
    let verb = verb.filter(|verb| {
        let has_name = path.name.is_some();
        let fits_path = match verb {
            Verb::Create if subresource.is_none() => {
                !has_name && (path.namespace.is_some() || !resource.namespaced)
            }
            Verb::Update | Verb::Patch => has_name,
            // Upstream deletes collections one namespace at a time.
            Verb::DeleteCollection => path.namespace.is_some() || !resource.namespaced,
            _ => true,
        };
        fits_path && verbs.contains(&verb.as_str())
    });
    verb.ok_or_else(|| {
        Status::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    })
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::*;
    use crate::{path::Target, request::Query};

    fn check(method: &str, url: &str) -> u16 {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let Target::Resource(path) = Target::parse(path) else {
            return 0;
        };
        let verb = path.verb(
            &Method::from_bytes(method.as_bytes()).expect("a method"),
            &Query::parse(query),
        );
        match find(&path) {
            Ok(None) => 404,
            Ok(Some((resource, subresource))) => {
                allowed(&path, resource, subresource, verb).map_or_else(|status| status.code, |_| 200)
            }
            Err(status) => status.code,
        }
    }

    #[test]
    fn only_what_is_served_is_routed() {
        for (method, url, code) in [
            ("GET", "/api/v1/configmaps", 200),
            ("GET", "/api/v1/namespaces/a/configmaps/b", 200),
            ("POST", "/api/v1/namespaces/a/configmaps", 200),
            ("POST", "/api/v1/configmaps", 405),
            ("POST", "/api/v1/namespaces/a/configmaps/b", 405),
            ("PUT", "/api/v1/namespaces/a/configmaps", 405),
            ("DELETE", "/api/v1/configmaps", 405),
            ("DELETE", "/api/v1/namespaces/a/configmaps", 200),
            ("DELETE", "/api/v1/namespaces", 405),
            ("GET", "/api/v1/configmaps/b", 404),
            ("GET", "/api/v1/namespaces/a/nodes", 404),
            ("GET", "/api/v1/namespaces/a/foos", 404),
            ("GET", "/apis/foo/v1/bars", 404),
            ("PUT", "/api/v1/namespaces/a/finalize", 200),
            ("GET", "/api/v1/namespaces/a/finalize", 405),
            ("POST", "/api/v1/namespaces/a/pods/b/binding", 200),
            ("GET", "/api/v1/namespaces/a/pods/b/log", 200),
            ("GET", "/api/v1/namespaces/a/pods/b/log/more", 404),
            ("POST", "/api/v1/namespaces/a/pods/b/attach", 200),
            ("GET", "/api/v1/namespaces/a/pods/b/portforward", 200),
            ("POST", "/api/v1/namespaces/a/pods/b/proxy", 501),
            ("PATCH", "/api/v1/namespaces/a/pods/b/resize", 501),
            ("GET", "/api/v1/namespaces/a/pods/b/ephemeralcontainers", 200),
            ("PUT", "/api/v1/namespaces/a/pods/b/ephemeralcontainers", 200),
            ("PATCH", "/api/v1/namespaces/a/pods/b/ephemeralcontainers", 200),
            ("POST", "/api/v1/namespaces/a/pods/b/ephemeralcontainers", 405),
            ("DELETE", "/api/v1/namespaces/a/pods/b/ephemeralcontainers", 405),
            ("GET", "/api/v1/namespaces/a/pods/b/nothing", 404),
            ("OPTIONS", "/api/v1/nodes", 405),
        ] {
            assert_eq!(check(method, url), code, "{method} {url}");
        }
    }
}
