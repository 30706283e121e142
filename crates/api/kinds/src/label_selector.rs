//! Label selectors as objects spell them: `matchLabels` and `matchExpressions`.
//!
//! Rules follow `ValidateLabelSelector` in `apimachinery/pkg/apis/meta/v1/validation/validation.go` and
//! `LabelSelectorAsSelector` in `apimachinery/pkg/apis/meta/v1/helpers.go`, Kubernetes 1.36.

use hotmap_object::{FieldError, names};
use serde_json::{Map, Value};

use crate::{
    fields::Fields,
    metadata,
    rules::{Errors, broken, child, index},
};

/// Checks a selector at `path`.
pub(crate) fn validate(errors: &mut Errors, path: &str, selector: &Map<String, Value>) {
    metadata::labels(errors, &child(path, "matchLabels"), selector.map("matchLabels"));
    for (at, expression) in selector.list("matchExpressions").iter().enumerate() {
        requirement(errors, &index(&child(path, "matchExpressions"), at), expression);
    }
}

fn requirement(errors: &mut Errors, path: &str, expression: &Value) {
    let values = expression.list("values");
    match expression.text("operator") {
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
    let key = expression.text("key");
    broken(errors, &child(path, "key"), key, names::qualified_name(key));
    for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
        let path = index(&child(path, "values"), at);
        broken(errors, &path, value, names::label_value(value));
    }
}

/// Whether the selector can be evaluated at all.
pub(crate) fn is_valid(selector: &Map<String, Value>) -> bool {
    let mut errors = Vec::new();
    validate(&mut errors, "", selector);
    errors.is_empty()
}

/// Whether it has no requirement; such a selector matches everything.
pub(crate) fn is_empty(selector: &Map<String, Value>) -> bool {
    selector.map("matchLabels").is_empty() && selector.list("matchExpressions").is_empty()
}

/// Whether labels match; the selector must be a valid one.
pub(crate) fn matches(selector: &Map<String, Value>, labels: &Map<String, Value>) -> bool {
    let value_of = |key: &str| labels.get(key).and_then(Value::as_str);
    let by_label = |(key, value): (&String, &Value)| value_of(key).is_some_and(|held| *value == *held);
    let by_expression = |expression: &Value| {
        let held = value_of(expression.text("key"));
        let is_listed = || {
            let values = expression.list("values");
            held.is_some_and(|held| values.iter().any(|value| *value == *held))
        };
        match expression.text("operator") {
            "In" => is_listed(),
            "NotIn" => !is_listed(),
            "Exists" => held.is_some(),
            "DoesNotExist" => held.is_none(),
            _ => false,
        }
    };
    selector.map("matchLabels").iter().all(by_label)
        && selector.list("matchExpressions").iter().all(by_expression)
}

/// The text form, such as `app=web,tier in (a,b)`; `None` for a selector that cannot be evaluated.
pub(crate) fn text(selector: &Map<String, Value>) -> Option<String> {
    if !is_valid(selector) {
        return None;
    }
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.map("matchLabels") {
        parts.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector.list("matchExpressions") {
        let key = expression.text("key");
        let mut values: Vec<&str> = expression
            .list("values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match expression.text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        parts.push((key, part));
    }
    parts.sort_by_key(|(key, _)| *key);
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    Some(parts.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn selectors_match_and_have_a_text() {
        let labels = map(json!({"app": "web", "tier": "b"}));
        for (selector, text_form, matching) in [
            (json!({}), "", true),
            (json!({"matchLabels": {"app": "web"}}), "app=web", true),
            (json!({"matchLabels": {"app": "api"}}), "app=api", false),
            (
                json!({"matchLabels": {"tier": "b"},
                       "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}),
                "app in (api,web),tier=b",
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["b"]}]}),
                "tier notin (b)",
                false,
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["b"]}]}),
                "x notin (b)",
                true,
            ),
            (
                json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}, {"key": "app", "operator": "Exists"}]}),
                "app,!x",
                true,
            ),
        ] {
            let selector = map(selector);
            assert_eq!(text(&selector).as_deref(), Some(text_form));
            assert_eq!(matches(&selector, &labels), matching, "{selector:?}");
        }
    }

    #[test]
    fn operators_and_values_are_checked() {
        let selector = map(json!({"matchLabels": {"a": "b c"}, "matchExpressions": [
            {"key": "k", "operator": "In"}, {"key": "k", "operator": "Exists", "values": ["v"]}, {"key": "k", "operator": "Is"}]}));
        let mut errors = Vec::new();
        validate(&mut errors, "s", &selector);
        let found = texts(&errors);
        assert!(found[0].starts_with("s.matchLabels: Invalid value: \"b c\": a valid label must be"));
        assert_eq!(
            found[1..],
            [
                "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                "s.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                "s.matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector operator",
            ]
        );
        assert_eq!(text(&selector), None);
    }
}
