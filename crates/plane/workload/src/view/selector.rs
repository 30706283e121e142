//! Label selectors as objects hold them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::or_default;

/// `matchLabels` and `matchExpressions`, all of which must hold. The empty selector matches everything; where a kind
/// means nothing by an absent one, the view has an `Option`.
///
/// Source: `LabelSelectorAsSelector` in `apimachinery/pkg/apis/meta/v1/helpers.go`, Kubernetes 1.36.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Selector {
    #[serde(deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Expression {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<String>,
}

impl Selector {
    pub(crate) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        self.match_labels.iter().all(has) && self.match_expressions.iter().all(|one| one.matches(labels))
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

impl Expression {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            // The server refuses other operators; what cannot be understood selects nothing.
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_label_and_expression_must_hold() {
        let labels: BTreeMap<String, String> =
            serde_json::from_value(json!({"app": "web", "tier": "front"})).expect("labels");
        let expression = |operator: &str, key: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, matches) in [
            (json!({}), true),
            (json!({"matchLabels": null, "matchExpressions": null}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "back"}}), false),
            (expression("In", "tier", json!(["back", "front"])), true),
            (expression("In", "zone", json!(["a"])), false),
            (expression("NotIn", "tier", json!(["front"])), false),
            (expression("NotIn", "zone", json!(["a"])), true),
            (expression("Exists", "app", Value::Null), true),
            (expression("DoesNotExist", "app", Value::Null), false),
            (expression("Like", "app", json!(["web"])), false),
        ] {
            let parsed: Selector = serde_json::from_value(selector.clone()).expect("a selector");
            assert_eq!(parsed.matches(&labels), matches, "{selector}");
        }
    }
}
