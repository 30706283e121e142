//! Where a pod wants to be: affinities, and how evenly its like are spread.
//!
//! Paths and texts follow `validateAffinity` and `validateTopologySpreadConstraints` in
//! `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::{FieldError, names};
use serde_json::{Map, Value};

use crate::{
    fields::Fields,
    label_selector,
    rules::{self, Errors, broken, child, index},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const UNSATISFIABLE: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const INCLUSION_POLICIES: &[&str] = &["Honor", "Ignore"];
const POSITIVE: &str = "must be greater than 0";

/// Checks the affinities of a spec.
pub(super) fn validate(errors: &mut Errors, spec: &Map<String, Value>) {
    let affinity = spec.map("affinity");
    node(errors, "spec.affinity.nodeAffinity", affinity.map("nodeAffinity"));
    for field in ["podAffinity", "podAntiAffinity"] {
        pods(errors, &child("spec.affinity", field), affinity.map(field));
    }
}

fn node(errors: &mut Errors, path: &str, affinity: &Map<String, Value>) {
    if let Some(required) = affinity.member(REQUIRED) {
        let path = child(&child(path, REQUIRED), "nodeSelectorTerms");
        let terms = required.list("nodeSelectorTerms");
        if terms.is_empty() {
            let rule = "must have at least one node selector term";
            errors.push(FieldError::required(path.as_str(), rule));
        }
        for (at, term) in terms.iter().enumerate() {
            node_term(errors, &index(&path, at), term.as_object());
        }
    }
    let path = child(path, PREFERRED);
    for (at, preferred) in affinity.list(PREFERRED).iter().enumerate() {
        let path = index(&path, at);
        weight(errors, &path, preferred);
        let term = preferred.member("preference").and_then(Value::as_object);
        node_term(errors, &child(&path, "preference"), term);
    }
}

fn node_term(errors: &mut Errors, path: &str, term: Option<&Map<String, Value>>) {
    let Some(term) = term else { return };
    for (at, requirement) in term.list("matchExpressions").iter().enumerate() {
        node_label(errors, &index(&child(path, "matchExpressions"), at), requirement);
    }
    for (at, requirement) in term.list("matchFields").iter().enumerate() {
        node_field(errors, &index(&child(path, "matchFields"), at), requirement);
    }
}

fn node_label(errors: &mut Errors, path: &str, requirement: &Value) {
    let (values, values_path) = (requirement.list("values"), child(path, "values"));
    match requirement.text("operator") {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            values_path.as_str(),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            values_path.as_str(),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Gt" | "Lt" if values.len() != 1 => errors.push(FieldError::required(
            values_path.as_str(),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => unknown_operator(errors, path, other),
    }
    rules::qualified_name(errors, &child(path, "key"), requirement.text("key"));
    for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
        broken(errors, &index(&values_path, at), value, names::label_value(value));
    }
}

fn node_field(errors: &mut Errors, path: &str, requirement: &Value) {
    let (values, values_path) = (requirement.list("values"), child(path, "values"));
    match requirement.text("operator") {
        "In" | "NotIn" if values.len() != 1 => errors.push(FieldError::required(
            values_path.as_str(),
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )),
        "In" | "NotIn" => {}
        other => unknown_operator(errors, path, other),
    }
    match requirement.text("key") {
        "metadata.name" => {
            for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
                broken(errors, &index(&values_path, at), value, rules::subdomain(value));
            }
        }
        other => {
            let rule = "not a valid field selector key";
            errors.push(FieldError::invalid(child(path, "key"), other, rule));
        }
    }
}

fn unknown_operator(errors: &mut Errors, path: &str, operator: &str) {
    let rule = "not a valid selector operator";
    errors.push(FieldError::invalid(child(path, "operator"), operator, rule));
}

fn pods(errors: &mut Errors, path: &str, affinity: &Map<String, Value>) {
    for (at, term) in affinity.list(REQUIRED).iter().enumerate() {
        pod_term(errors, &index(&child(path, REQUIRED), at), term);
    }
    for (at, preferred) in affinity.list(PREFERRED).iter().enumerate() {
        let path = index(&child(path, PREFERRED), at);
        weight(errors, &path, preferred);
        let path = child(&path, "podAffinityTerm");
        pod_term(
            errors,
            &path,
            preferred.member("podAffinityTerm").unwrap_or(&Value::Null),
        );
    }
}

fn pod_term(errors: &mut Errors, path: &str, term: &Value) {
    for selector in ["labelSelector", "namespaceSelector"] {
        label_selector::validate(errors, &child(path, selector), term.map(selector));
    }
    for namespace in term.list("namespaces").iter().filter_map(Value::as_str) {
        broken(
            errors,
            &child(path, "namespace"),
            namespace,
            rules::label(namespace),
        );
    }
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        label_keys(
            errors,
            &child(path, field),
            term.list(field),
            term.map("labelSelector"),
        );
    }
    let (path, key) = (child(path, "topologyKey"), term.text("topologyKey"));
    if key.is_empty() {
        errors.push(FieldError::required(path.as_str(), "can not be empty"));
    }
    rules::qualified_name(errors, &path, key);
}

fn weight(errors: &mut Errors, path: &str, preferred: &Value) {
    let weight = preferred.int("weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        let rule = "must be in the range 1-100";
        errors.push(FieldError::invalid(child(path, "weight"), weight, rule));
    }
}

/// Keys whose values come from the pod itself.
fn label_keys(errors: &mut Errors, path: &str, keys: &[Value], selector: &Map<String, Value>) {
    if !keys.is_empty() && label_selector::is_empty(selector) {
        let rule = "must not be specified when labelSelector is not set";
        errors.push(FieldError::forbidden(path, rule));
    }
    for (at, key) in keys.iter().filter_map(Value::as_str).enumerate() {
        rules::qualified_name(errors, &index(path, at), key);
    }
}

/// Checks how the like of a pod are spread.
pub(super) fn topology_spread(errors: &mut Errors, spec: &Map<String, Value>) {
    let constraints = spec.list("topologySpreadConstraints");
    for (at, constraint) in constraints.iter().enumerate() {
        let path = index("spec.topologySpreadConstraints", at);
        let (key, action) = (
            constraint.text("topologyKey"),
            constraint.text("whenUnsatisfiable"),
        );
        positive(
            errors,
            &child(&path, "maxSkew"),
            constraint.int("maxSkew").unwrap_or_default(),
        );
        if key.is_empty() {
            errors.push(FieldError::required(
                child(&path, "topologyKey"),
                "can not be empty",
            ));
        }
        if !UNSATISFIABLE.contains(&action) {
            let path = child(&path, "whenUnsatisfiable");
            errors.push(FieldError::not_supported(path, action, UNSATISFIABLE));
        }
        let is_same =
            |other: &Value| other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action;
        if constraints[at + 1..].iter().any(is_same) {
            let path = child(&path, "{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(path, format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = constraint.int("minDomains") {
            let path = child(&path, "minDomains");
            positive(errors, &path, domains);
            if action != "DoNotSchedule" {
                let rule =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(path, domains, rule));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = constraint.member(field).and_then(Value::as_str)
                && !INCLUSION_POLICIES.contains(&policy)
            {
                let path = child(&path, field);
                errors.push(FieldError::not_supported(path, policy, INCLUSION_POLICIES));
            }
        }
        let selector = constraint.map("labelSelector");
        let keys = constraint.list("matchLabelKeys");
        label_keys(errors, &child(&path, "matchLabelKeys"), keys, selector);
        label_selector::validate(errors, &child(&path, "labelSelector"), selector);
    }
}

fn positive(errors: &mut Errors, path: &str, number: i64) {
    if number <= 0 {
        errors.push(FieldError::invalid(path, number, POSITIVE));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    fn check(spec: Value, wanted: &[&str]) {
        let mut errors = Vec::new();
        let spec = map(spec);
        validate(&mut errors, &spec);
        topology_spread(&mut errors, &spec);
        assert_eq!(texts(&errors), wanted, "{spec:?}");
    }

    #[test]
    fn affinities_as_people_write_them_are_fine() {
        check(
            json!({"affinity": {
                "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}, {"key": "cores", "operator": "Gt", "values": ["4"]}],
                    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]},
                    PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]},
                "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "web"}}}}]}},
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                    "minDomains": 2, "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["pod-template-hash"]}]}),
            &[],
        );
    }

    #[test]
    fn affinities_are_checked_with_the_known_sentences() {
        check(
            json!({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []},
                PREFERRED: [{"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Gt"}],
                    "matchFields": [{"key": "spec.x", "operator": "Exists"}]}}]}}}),
            &[
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].operator: Invalid value: \"Exists\": not a valid selector operator",
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key: Invalid value: \"spec.x\": not a valid field selector key",
            ],
        );
        check(
            json!({"topologySpreadConstraints": [
                {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1, "nodeTaintsPolicy": "x"},
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]}),
            &[
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than 0",
                "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{zone, ScheduleAnyway}\"",
                "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
                "spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value: \"x\": supported values: \"Honor\", \"Ignore\"",
            ],
        );
    }

    #[test]
    fn a_pod_term_has_a_topology() {
        let mut errors = Vec::new();
        validate(
            &mut errors,
            &map(json!({"affinity": {"podAffinity": {REQUIRED: [{"namespaces": ["A"]}]}}})),
        );
        let found = texts(&errors);
        let path = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
        assert!(
            found[0].starts_with(&format!("{path}.namespace: Invalid value: \"A\": ")),
            "{found:?}"
        );
        assert_eq!(
            found[1],
            format!("{path}.topologyKey: Required value: can not be empty")
        );
    }
}
