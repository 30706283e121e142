//! PodDisruptionBudget: how many pods of a kind may go at once.
//!
//! Rules follow `pkg/apis/policy/validation/validation.go` and `pkg/registry/policy/poddisruptionbudget/strategy.go`,
//! Kubernetes 1.36.

mod eviction;

pub use eviction::{
    Disruption, EvictionError, count_disruption, disruption, guards, is_beyond_budgets, mark_evicted,
};

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep},
    int_or_percent, label_selector,
    rules::{self, Errors, child, index},
    table, workload,
};

const POLICIES: &[&str] = &["AlwaysAllow", "IfHealthyBudget"];
const CONDITION_STATUSES: &[&str] = &["False", "True", "Unknown"];
const REASON_BYTES_MAX: usize = 1024;
const MESSAGE_BYTES_MAX: usize = 32 * 1024;
const REASON_RULE: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// The rules of PodDisruptionBudgets.
pub(crate) struct PodDisruptionBudget;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Min Available", "string", "Pods that must stay available."),
    table::column("Max Unavailable", "string", "Pods that may be unavailable."),
    table::column("Allowed Disruptions", "integer", "Pods that may be evicted now."),
    table::AGE,
];

impl Strategy for PodDisruptionBudget {
    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        object.insert(
            "status".to_owned(),
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        );
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, if subresource == "status" { "spec" } else { "status" });
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = object.map("spec");
        let (least, most) = (spec.member("minAvailable"), spec.member("maxUnavailable"));
        if least.is_some() && most.is_some() {
            let rule = "minAvailable and maxUnavailable cannot be both set";
            errors.push(FieldError::invalid("spec", Value::Object(spec.clone()), rule));
        }
        for (path, amount) in [("spec.minAvailable", least), ("spec.maxUnavailable", most)] {
            int_or_percent::validate(&mut errors, path, amount);
            int_or_percent::at_most_all(&mut errors, path, amount);
        }
        label_selector::validate(&mut errors, "spec.selector", spec.map("selector"));
        if let Some(policy) = spec.member("unhealthyPodEvictionPolicy").and_then(Value::as_str)
            && !POLICIES.contains(&policy)
        {
            let path = "spec.unhealthyPodEvictionPolicy";
            errors.push(FieldError::not_supported(path, policy, POLICIES));
        }
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        _old: &Map<String, Value>,
        subresource: &str,
    ) -> Vec<FieldError> {
        if subresource != "status" {
            return self.validate(new);
        }
        let mut errors = Vec::new();
        let status = new.map("status");
        conditions(&mut errors, "status.conditions", status.list("conditions"));
        workload::counts(
            &mut errors,
            "status",
            status,
            &[
                "disruptionsAllowed",
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
            ],
        );
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let spec = object.map("spec");
        let amount = |field| match spec.member(field) {
            None => "N/A".into(),
            Some(Value::String(share)) => share.as_str().into(),
            Some(number) => Value::from(number.to_string()),
        };
        vec![
            table::name(object),
            amount("minAvailable"),
            amount("maxUnavailable"),
            workload::count(object.map("status"), "disruptionsAllowed"),
            table::age(object, now),
        ]
    }
}

/// Checks conditions of the common type. Follows `ValidateConditions` in
/// `apimachinery/pkg/apis/meta/v1/validation/validation.go`, Kubernetes 1.36.
fn conditions(errors: &mut Errors, path: &str, conditions: &[Value]) {
    for (at, condition) in conditions.iter().enumerate() {
        let path = index(path, at);
        let of = condition.text("type");
        if conditions[..at].iter().any(|earlier| earlier.text("type") == of) {
            errors.push(FieldError::duplicate(child(&path, "type"), of));
        }
        rules::qualified_name(errors, &child(&path, "type"), of);
        let status = condition.text("status");
        if !CONDITION_STATUSES.contains(&status) {
            let path = child(&path, "status");
            errors.push(FieldError::not_supported(path, status, CONDITION_STATUSES));
        }
        if !condition.has("lastTransitionTime") {
            errors.push(FieldError::required(
                child(&path, "lastTransitionTime"),
                "must be set",
            ));
        }
        let (path, reason) = (child(&path, "reason"), condition.text("reason"));
        if reason.is_empty() {
            errors.push(FieldError::required(path, "must be set"));
        } else if !is_reason(reason) {
            errors.push(FieldError::invalid(path, reason, REASON_RULE));
        } else if reason.len() > REASON_BYTES_MAX {
            errors.push(FieldError::too_long(path, REASON_BYTES_MAX));
        }
        if condition.text("message").len() > MESSAGE_BYTES_MAX {
            let path = child(&index("status.conditions", at), "message");
            errors.push(FieldError::too_long(path, MESSAGE_BYTES_MAX));
        }
    }
}

fn is_reason(reason: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.bytes().all(|b| is_word(b) || matches!(b, b',' | b':'))
        && reason.bytes().last().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{created, map, updated};

    fn budget(spec: Value) -> Value {
        json!({"metadata": {"name": "web", "namespace": "n"}, "spec": spec})
    }

    #[test]
    fn rules_of_budgets_answer_with_the_known_sentences() {
        for (spec, wanted) in [
            (
                json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
                vec![],
            ),
            (
                json!({"maxUnavailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow"}),
                vec![],
            ),
            (
                json!({"minAvailable": 1, "maxUnavailable": "101%"}),
                vec![
                    "spec: Invalid value: {\"maxUnavailable\":\"101%\",\"minAvailable\":1}: minAvailable and maxUnavailable cannot be both set",
                    "spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
                ],
            ),
            (
                json!({"minAvailable": -1, "unhealthyPodEvictionPolicy": "Never"}),
                vec![
                    "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0",
                    "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
                ],
            ),
        ] {
            let (_, errors) = created("policy", "poddisruptionbudgets", budget(spec.clone()));
            assert_eq!(errors, wanted, "{spec}");
        }
    }

    #[test]
    fn the_status_counts_pods_and_its_conditions_are_whole() {
        let status = json!({"disruptionsAllowed": -1, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
            "conditions": [{"type": "DisruptionAllowed", "status": "Maybe", "reason": "_", "message": "",
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        let mut object = budget(json!({}));
        object["status"] = status;
        assert_eq!(
            updated("policy", "poddisruptionbudgets", budget(json!({})), object, "status"),
            [
                "status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"".to_owned(),
                format!("status.conditions[0].reason: Invalid value: \"_\": {REASON_RULE}"),
                "status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0".to_owned(),
            ]
        );
    }

    #[test]
    fn a_row_shows_what_may_go() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let object = map(
            json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 2}, "status": {"disruptionsAllowed": 1}}),
        );
        assert_eq!(
            PodDisruptionBudget.cells(&object, now),
            [
                json!("web"),
                json!("2"),
                json!("N/A"),
                json!(1),
                json!("<unknown>")
            ]
        );
    }
}
