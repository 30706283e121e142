//! Amounts of resources: names they may have, and what their values must be.
//!
//! Rules follow `pkg/apis/core/helper/helpers.go` and `ValidateResourceQuantityValue`, Kubernetes 1.36.

use hotmap_object::{FieldError, Quantity, names};
use serde_json::Value;

use crate::rules::{Errors, NOT_NEGATIVE, broken};

const HUGE_PAGES_PREFIX: &str = "hugepages-";
const REQUESTS_PREFIX: &str = "requests.";
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Bare names that are resources somewhere, if not of containers.
const OTHER_RESOURCES: [&str; 17] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "services.nodeports",
    "services.loadbalancers",
];
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// The quantity as it is written; the schema lets a bare number through too.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The quantity as a number, unless it is none.
pub(crate) fn parse(value: &Value) -> Option<Quantity> {
    text(value).parse().ok()
}

/// Checks that an amount is not negative, and whole where the resource is counted.
pub(crate) fn check_amount(errors: &mut Errors, path: &str, resource: &str, value: &Value) {
    let Some(amount) = parse(value) else { return };
    if amount.is_negative() {
        errors.push(FieldError::invalid(path, text(value), NOT_NEGATIVE));
    }
    if (COUNTED.contains(&resource) || is_extended(resource)) && !amount.is_whole() {
        errors.push(FieldError::invalid(path, text(value), "must be an integer"));
    }
}

/// Checks the name of a resource that a container asks for.
pub(crate) fn check_container_resource(errors: &mut Errors, path: &str, name: &str) {
    let rules = names::qualified_name(name);
    let is_bare = !name.contains('/');
    if !rules.is_empty() {
        broken(errors, path, name, rules);
    } else if is_bare && !is_standard(name) {
        errors.push(FieldError::invalid(
            path,
            name,
            "must be a standard resource type or fully qualified",
        ));
    }
    if is_bare {
        if !CONTAINER_RESOURCES.contains(&name) && !is_huge_pages(name) {
            errors.push(FieldError::invalid(
                path,
                name,
                "must be a standard resource for containers",
            ));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(
            path,
            name,
            "doesn't follow extended resource name standard",
        ));
    }
}

/// Whether pods may together ask for more than the node has: not for huge pages and devices.
pub(crate) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Whether the resource is huge pages of some size.
pub(crate) fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
}

fn is_standard(name: &str) -> bool {
    CONTAINER_RESOURCES.contains(&name)
        || OTHER_RESOURCES.contains(&name)
        || is_huge_pages(name)
        || name.strip_prefix(REQUESTS_PREFIX).is_some_and(is_huge_pages)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(REQUESTS_PREFIX)
        && names::qualified_name(&format!("{REQUESTS_PREFIX}{name}")).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::texts;

    #[test]
    fn amounts_are_checked() {
        let table = [
            ("cpu", json!("100m"), vec![]),
            ("memory", json!("64Mi"), vec![]),
            (
                "cpu",
                json!("-1"),
                vec!["p: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
            ("a.b/gpu", json!(1), vec![]),
            (
                "a.b/gpu",
                json!("500m"),
                vec!["p: Invalid value: \"500m\": must be an integer"],
            ),
        ];
        for (name, amount, wanted) in table {
            let mut errors = Vec::new();
            check_amount(&mut errors, "p", name, &amount);
            assert_eq!(texts(&errors), wanted, "{name} {amount}");
        }
    }

    #[test]
    fn containers_ask_for_known_resources() {
        let table = [
            ("cpu", vec![]),
            ("hugepages-2Mi", vec![]),
            ("a.b/gpu", vec![]),
            (
                "pods",
                vec!["p: Invalid value: \"pods\": must be a standard resource for containers"],
            ),
            (
                "gpu",
                vec![
                    "p: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
                    "p: Invalid value: \"gpu\": must be a standard resource for containers",
                ],
            ),
        ];
        for (name, wanted) in table {
            let mut errors = Vec::new();
            check_container_resource(&mut errors, "p", name);
            assert_eq!(texts(&errors), wanted);
        }
    }
}
