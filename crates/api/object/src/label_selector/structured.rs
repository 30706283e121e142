//! Label selectors as objects hold them: `{"matchLabels": {…}, "matchExpressions": […]}`.
//!
//! Source: `LabelSelectorAsSelector` in `apimachinery/pkg/apis/meta/v1/helpers.go`, Kubernetes 1.36.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::Error};

use super::{LabelSelector, Operator, Requirement, check_key, check_value};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Structured {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

/// Reads the form with `matchLabels` and `matchExpressions`. Where a field of that type may be absent, use an
/// `Option`: an absent selector selects nothing, an empty one everything.
impl<'de> Deserialize<'de> for LabelSelector {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let structured = Structured::deserialize(input)?;
        let mut requirements = Vec::new();
        for (key, value) in structured.match_labels.into_iter().flatten() {
            check_key(&key).map_err(D::Error::custom)?;
            check_value(&value).map_err(D::Error::custom)?;
            let operator = Operator::In(vec![value]);
            requirements.push(Requirement { key, operator });
        }
        for expression in structured.match_expressions.into_iter().flatten() {
            let values = expression.values.unwrap_or_default();
            check_key(&expression.key).map_err(D::Error::custom)?;
            for value in &values {
                check_value(value).map_err(D::Error::custom)?;
            }
            let operator = match expression.operator.as_str() {
                "In" => Operator::In(values),
                "NotIn" => Operator::NotIn(values),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let text = format!("{other:?} is not a valid label selector operator");
                    return Err(D::Error::custom(text));
                }
            };
            requirements.push(Requirement {
                key: expression.key,
                operator,
            });
        }
        Ok(Self(requirements))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn expression(key: &str, operator: &str, values: Value) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
    }

    #[test]
    fn objects_select_as_their_text_form_does() {
        let labels = |key: &str| (key == "app").then_some("web");
        for (selector, selected) in [
            (json!({}), true),
            (json!({"matchLabels": null, "matchExpressions": null}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "a"}}), false),
            (expression("app", "In", json!(["web", "db"])), true),
            (expression("app", "NotIn", json!(["web"])), false),
            (expression("tier", "NotIn", json!(["web"])), true),
            (expression("app", "Exists", json!(null)), true),
            (expression("app", "DoesNotExist", json!([])), false),
        ] {
            let parsed: LabelSelector = serde_json::from_value(selector.clone()).expect("valid");
            assert_eq!(parsed.matches(labels), selected, "{selector}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for selector in [
            expression("app", "Gt", json!(["1"])),
            expression("-", "Exists", json!([])),
            expression("app", "In", json!(["a b"])),
            json!({"matchLabels": {"app": 1}}),
        ] {
            assert!(
                serde_json::from_value::<LabelSelector>(selector.clone()).is_err(),
                "{selector}"
            );
        }
    }
}
