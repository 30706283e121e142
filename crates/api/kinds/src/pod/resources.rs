//! What containers ask for and may take: requests within limits.
//!
//! Paths and texts follow `validateResourceRequirements` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use crate::{
    fields::Fields,
    quantity,
    rules::{Errors, child, key},
};

/// Checks `resources` of a container.
pub(super) fn validate(errors: &mut Errors, path: &str, resources: &Map<String, Value>) {
    let (limits, requests) = (resources.map("limits"), resources.map("requests"));
    let (limits_path, requests_path) = (child(path, "limits"), child(path, "requests"));
    for (name, amount) in limits {
        one(errors, &key(&limits_path, name), name, amount);
    }
    for (name, amount) in requests {
        one(errors, &key(&requests_path, name), name, amount);
        match limits.member(name) {
            Some(limit) => within(errors, &requests_path, name, amount, limit),
            None if !quantity::may_overcommit(name) => {
                let rule = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(limits_path.as_str(), rule));
            }
            None => {}
        }
    }
    let mut names = limits.keys().chain(requests.keys());
    let has_compute = names
        .clone()
        .any(|name| matches!(name.as_str(), "cpu" | "memory"));
    if !has_compute && names.any(|name| quantity::is_huge_pages(name)) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

fn one(errors: &mut Errors, path: &str, name: &str, amount: &Value) {
    quantity::check_container_resource(errors, path, name);
    quantity::check_amount(errors, path, name, amount);
}

fn within(errors: &mut Errors, path: &str, name: &str, request: &Value, limit: &Value) {
    let (Some(requested), Some(limited)) = (quantity::parse(request), quantity::parse(limit)) else {
        return;
    };
    let relation = if requested != limited && !quantity::may_overcommit(name) {
        "equal to"
    } else if requested > limited {
        "less than or equal to"
    } else {
        return;
    };
    let rule = format!("must be {relation} {name} limit of {}", quantity::text(limit));
    errors.push(FieldError::invalid(path, quantity::text(request), rule));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn requests_stay_within_limits() {
        let table = [
            (
                json!({"requests": {"cpu": "500m"}, "limits": {"cpu": "0.5"}}),
                vec![],
            ),
            (
                json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
                vec!["r.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi"],
            ),
            (
                json!({"requests": {"a.b/gpu": "1"}, "limits": {"a.b/gpu": "2"}}),
                vec!["r.requests: Invalid value: \"1\": must be equal to a.b/gpu limit of 2"],
            ),
            (
                json!({"requests": {"a.b/gpu": "1"}}),
                vec!["r.limits: Required value: Limit must be set for non overcommitable resources"],
            ),
            (
                json!({"limits": {"cpu": "-1"}}),
                vec!["r.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
            (
                json!({"limits": {"hugepages-2Mi": "4Mi"}}),
                vec!["r: Forbidden: HugePages require cpu or memory"],
            ),
        ];
        for (resources, wanted) in table {
            let mut errors = Vec::new();
            validate(&mut errors, "r", &map(resources.clone()));
            assert_eq!(texts(&errors), wanted, "{resources}");
        }
    }
}
