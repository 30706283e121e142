//! What failures and successes of pods mean for a Job.
//!
//! Rules follow `validatePodFailurePolicy`, `validateSuccessPolicy` and `validatePodReplacementPolicy` in
//! `pkg/apis/batch/validation/validation.go`, Kubernetes 1.36.

use std::collections::BTreeSet;

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::indexes;
use crate::{
    fields::Fields,
    rules::{self, Errors, child, index},
};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const PATTERNS_MAX: usize = 20;
const INDEXES_BYTES_MAX: usize = 64 * 1024;
const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// Checks what failed pods lead to.
pub(super) fn failure(errors: &mut Errors, path: &str, spec: &Map<String, Value>) {
    let Some(policy) = spec.member("podFailurePolicy") else {
        return;
    };
    let (path, rules) = (child(path, "rules"), policy.list("rules"));
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(path.as_str(), rules.len(), RULES_MAX));
    }
    for (at, rule) in rules.iter().enumerate() {
        failure_rule(errors, &index(&path, at), rule, spec);
    }
}

fn failure_rule(errors: &mut Errors, path: &str, rule: &Value, spec: &Map<String, Value>) {
    let (action_path, action) = (child(path, "action"), rule.text("action"));
    match action {
        "FailIndex" if spec.member("backoffLimitPerIndex").is_none() => {
            let rule = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(action_path, action, rule));
        }
        action => listed(errors, action_path, action, ACTIONS),
    }
    let (codes, patterns) = (rule.member("onExitCodes"), rule.list("onPodConditions"));
    if let Some(codes) = codes {
        exit_codes(errors, &child(path, "onExitCodes"), codes, spec);
    }
    let patterns_path = child(path, "onPodConditions");
    if patterns.len() > PATTERNS_MAX {
        errors.push(FieldError::too_many(
            patterns_path.as_str(),
            patterns.len(),
            PATTERNS_MAX,
        ));
    }
    for (at, pattern) in patterns.iter().enumerate() {
        let path = index(&patterns_path, at);
        rules::qualified_name(errors, &child(&path, "type"), pattern.text("type"));
        listed(errors, child(&path, "status"), pattern.text("status"), STATUSES);
    }
    match (codes.is_some(), patterns.is_empty()) {
        (true, false) => errors.push(FieldError::invalid(
            path,
            Value::Null,
            "specifying both OnExitCodes and OnPodConditions is not supported",
        )),
        (false, true) => errors.push(FieldError::invalid(
            path,
            Value::Null,
            "specifying one of OnExitCodes and OnPodConditions is required",
        )),
        _ => {}
    }
}

fn exit_codes(errors: &mut Errors, path: &str, codes: &Value, spec: &Map<String, Value>) {
    let operator = codes.text("operator");
    listed(errors, child(path, "operator"), operator, &["In", "NotIn"]);
    let pod = spec.map("template").map("spec");
    let mut containers = pod.list("containers").iter().chain(pod.list("initContainers"));
    if let Some(name) = codes.member("containerName").and_then(Value::as_str)
        && !containers.any(|container| container.text("name") == name)
    {
        errors.push(FieldError::invalid(
            child(path, "containerName"),
            name,
            "must be one of the container or initContainer names in the pod template",
        ));
    }
    let (path, values) = (child(path, "values"), codes.list("values"));
    if values.is_empty() {
        let rule = "at least one value is required";
        errors.push(FieldError::invalid(path.as_str(), values.to_vec(), rule));
    } else if values.len() > EXIT_CODES_MAX {
        errors.push(FieldError::too_many(path.as_str(), values.len(), EXIT_CODES_MAX));
    }
    let mut seen = BTreeSet::new();
    let numbers: Vec<i64> = values
        .iter()
        .map(|value| value.as_i64().unwrap_or_default())
        .collect();
    for (at, code) in numbers.iter().enumerate() {
        if operator == "In" && *code == 0 {
            let rule = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(index(&path, at), 0, rule));
        }
        if !seen.insert(code) {
            errors.push(FieldError::duplicate(index(&path, at), *code));
        }
    }
    if !numbers.is_sorted() {
        errors.push(FieldError::invalid(path, values.to_vec(), "must be ordered"));
    }
}

/// Checks which indexes make the whole Job a success.
pub(super) fn success(errors: &mut Errors, path: &str, spec: &Map<String, Value>) {
    let Some(policy) = spec.member("successPolicy") else {
        return;
    };
    if spec.text("completionMode") != "Indexed" {
        let rule = "requires indexed completion mode";
        errors.push(FieldError::invalid(path, policy.clone(), rule));
        return;
    }
    let (path, rules) = (child(path, "rules"), policy.list("rules"));
    if rules.is_empty() {
        let rule = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(path.as_str(), rule));
    }
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(path.as_str(), rules.len(), RULES_MAX));
    }
    let completions = spec.int("completions").unwrap_or_default();
    for (at, rule) in rules.iter().enumerate() {
        success_rule(errors, &index(&path, at), rule, completions);
    }
}

fn success_rule(errors: &mut Errors, path: &str, rule: &Value, completions: i64) {
    let wanted = rule.member("succeededIndexes").and_then(Value::as_str);
    let count = rule.int("succeededCount");
    if wanted.is_none() && count.is_none() {
        let rule = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, rule));
    }
    let mut total = None;
    if let Some(wanted) = wanted {
        let path = child(path, "succeededIndexes");
        if wanted.len() > INDEXES_BYTES_MAX {
            errors.push(FieldError::too_long(path.as_str(), INDEXES_BYTES_MAX));
        }
        match indexes::count(wanted, completions) {
            Ok(count) => total = Some(count),
            Err(error) => {
                total = Some(0);
                let rule = format!("error parsing succeededIndexes: {error}");
                errors.push(FieldError::invalid(path, wanted, rule));
            }
        }
    }
    let Some(count) = count else { return };
    let path = child(path, "succeededCount");
    rules::not_negative(errors, path.clone(), Some(count));
    if count > completions {
        let rule =
            format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.push(FieldError::invalid(path.as_str(), count, rule));
    }
    if let Some(total) = total.filter(|total| count > *total) {
        let rule = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(FieldError::invalid(path, count, rule));
    }
}

/// Checks when a pod that ends is replaced.
pub(super) fn replacement(errors: &mut Errors, path: &str, spec: &Map<String, Value>) {
    let Some(policy) = spec.member("podReplacementPolicy").and_then(Value::as_str) else {
        return;
    };
    let supported: &[&str] = match spec.member("podFailurePolicy") {
        Some(_) => &["Failed"],
        None => &["Failed", "TerminatingOrFailed"],
    };
    if !supported.contains(&policy) {
        errors.push(FieldError::not_supported(path, policy, supported));
    }
}

fn listed(errors: &mut Errors, path: String, value: &str, supported: &[&str]) {
    if value.is_empty() {
        let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        errors.push(FieldError::required(
            path,
            format!("valid values: [{}]", quoted.join(" ")),
        ));
    } else if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}
