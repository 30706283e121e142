//! Role and ClusterRole: what may be done, in rules that only ever add.
//!
//! Rules follow `pkg/apis/rbac/validation/validation.go` and `apimachinery/pkg/apis/meta/v1/validation/validation.go`
//! (label selectors), Kubernetes 1.36.

use hotmap_object::{FieldError, names};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::Fields,
    rules::{Errors, broken, child, index, key},
    table,
};

/// The rules of Roles.
pub(crate) struct Role;

/// The rules of ClusterRoles.
pub(crate) struct ClusterRole;

/// Upstream has no columns of its own for roles: these are those of every kind without.
const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Created At", "date", "When the object was created."),
];

impl Strategy for Role {
    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        policy_rules(object, true)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, _now: Timestamp) -> Vec<Value> {
        cells(object)
    }
}

impl Strategy for ClusterRole {
    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = policy_rules(object, false);
        if object.member("aggregationRule").is_none() {
            return errors;
        }
        let path = "aggregationRule.clusterRoleSelectors";
        let selectors = object.map("aggregationRule").list("clusterRoleSelectors");
        if selectors.is_empty() {
            errors.push(FieldError::required(
                path,
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            ));
        }
        for (at, selector) in selectors.iter().enumerate() {
            label_selector(&mut errors, &index(path, at), selector);
        }
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, _now: Timestamp) -> Vec<Value> {
        cells(object)
    }
}

fn cells(object: &Map<String, Value>) -> Vec<Value> {
    vec![
        table::name(object),
        object.map("metadata").text("creationTimestamp").into(),
    ]
}

fn policy_rules(object: &Map<String, Value>, is_namespaced: bool) -> Errors {
    let mut errors = Errors::new();
    for (at, rule) in object.list("rules").iter().enumerate() {
        policy_rule(&mut errors, &index("rules", at), rule, is_namespaced);
    }
    errors
}

fn policy_rule(errors: &mut Errors, path: &str, rule: &Value, is_namespaced: bool) {
    if !rule.has("verbs") {
        let why = "verbs must contain at least one value";
        errors.push(FieldError::required(child(path, "verbs"), why));
    }
    if rule.has("nonResourceURLs") {
        let mut refuse = |why: &str| {
            let urls = Value::from(rule.list("nonResourceURLs"));
            errors.push(FieldError::invalid(child(path, "nonResourceURLs"), urls, why));
        };
        if is_namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        if ["apiGroups", "resources", "resourceNames"]
            .iter()
            .any(|field| rule.has(field))
        {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    for (field, why) in [
        ("apiGroups", "resource rules must supply at least one api group"),
        ("resources", "resource rules must supply at least one resource"),
    ] {
        if !rule.has(field) {
            errors.push(FieldError::required(child(path, field), why));
        }
    }
}

fn label_selector(errors: &mut Errors, path: &str, selector: &Value) {
    let labels = child(path, "matchLabels");
    for (name, value) in selector.map("matchLabels") {
        broken(errors, &labels, name, names::qualified_name(name));
        let value = value.as_str().unwrap_or_default();
        broken(errors, &key(&labels, name), value, names::label_value(value));
    }
    let expressions = child(path, "matchExpressions");
    for (at, requirement) in selector.list("matchExpressions").iter().enumerate() {
        label_requirement(errors, &index(&expressions, at), requirement);
    }
}

fn label_requirement(errors: &mut Errors, path: &str, requirement: &Value) {
    let values = requirement.list("values");
    match requirement.text("operator") {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            child(path, "values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            child(path, "values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            child(path, "operator"),
            other,
            "not a valid selector operator",
        )),
    }
    let name = requirement.text("key");
    broken(errors, &child(path, "key"), name, names::qualified_name(name));
    for (at, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        let path = index(&child(path, "values"), at);
        broken(errors, &path, value, names::label_value(value));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        registry,
        testing::{map, texts},
        validate_create,
    };

    #[test]
    fn a_rule_is_about_resources_or_about_paths() {
        let rules = |rule: Value| map(json!({"rules": [rule]}));
        let table = [
            (
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
                vec![],
                vec![],
            ),
            (
                json!({}),
                vec![
                    "rules[0].verbs: Required value: verbs must contain at least one value",
                    "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                    "rules[0].resources: Required value: resource rules must supply at least one resource",
                ],
                vec![
                    "rules[0].verbs: Required value: verbs must contain at least one value",
                    "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                    "rules[0].resources: Required value: resource rules must supply at least one resource",
                ],
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
                vec![
                    "rules[0].nonResourceURLs: Invalid value: [\"/metrics\"]: namespaced rules cannot apply to non-resource URLs",
                ],
                vec![],
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["*"], "resources": ["pods"]}),
                vec![
                    "rules[0].nonResourceURLs: Invalid value: [\"*\"]: namespaced rules cannot apply to non-resource URLs",
                    "rules[0].nonResourceURLs: Invalid value: [\"*\"]: rules cannot apply to both regular resources and non-resource URLs",
                ],
                vec![
                    "rules[0].nonResourceURLs: Invalid value: [\"*\"]: rules cannot apply to both regular resources and non-resource URLs",
                ],
            ),
        ];
        for (rule, namespaced, cluster) in table {
            assert_eq!(texts(&Role.validate(&rules(rule.clone()))), namespaced, "{rule}");
            assert_eq!(
                texts(&ClusterRole.validate(&rules(rule.clone()))),
                cluster,
                "{rule}"
            );
        }
    }

    #[test]
    fn an_aggregation_selects_something_by_valid_labels() {
        let table = [
            (json!([{"matchLabels": {"a/b": "true"}}]), vec![]),
            (
                json!([]),
                vec![
                    "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
                ],
            ),
            (
                json!([{"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Exists", "values": ["c"]}, {"key": "d", "operator": "Gt", "values": ["1"]}]}]),
                vec![
                    "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                    "aggregationRule.clusterRoleSelectors[0].matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                    "aggregationRule.clusterRoleSelectors[0].matchExpressions[2].operator: Invalid value: \"Gt\": not a valid selector operator",
                ],
            ),
        ];
        for (selectors, wanted) in table {
            let role = map(json!({"aggregationRule": {"clusterRoleSelectors": selectors}}));
            assert_eq!(texts(&ClusterRole.validate(&role)), wanted, "{selectors}");
        }
    }

    #[test]
    fn names_are_anything_that_fits_a_path_and_are_told_with_the_rest() {
        let group = "rbac.authorization.k8s.io";
        let roles = registry::find(group, "v1", "clusterroles").expect("served");
        let role = |name: &str| {
            map(json!({"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}))
        };
        let verbs = "rules[0].verbs: Required value: verbs must contain at least one value";
        assert_eq!(texts(&validate_create(&role("system:Any thing"), roles)), [verbs]);
        assert_eq!(
            texts(&validate_create(&role("a/b"), roles)),
            [
                "metadata.name: Invalid value: \"a/b\": may not contain '/'",
                verbs
            ]
        );
    }
}
