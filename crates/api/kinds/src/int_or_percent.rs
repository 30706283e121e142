//! Amounts that are a number or a share: `1`, `25%`.
//!
//! Rules follow `ValidatePositiveIntOrPercent` and its neighbours in `pkg/apis/apps/validation/validation.go`,
//! Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::Value;

use crate::rules::{Errors, not_negative};

const PERCENT_RULE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// Checks that an amount is a number from zero on, or a percentage.
pub(crate) fn validate(errors: &mut Errors, path: &str, amount: Option<&Value>) {
    match amount {
        Some(Value::String(text)) if percentage(text).is_none() => {
            errors.push(FieldError::invalid(path, text.as_str(), PERCENT_RULE));
        }
        Some(Value::String(_)) | None => {}
        Some(number) => not_negative(errors, path.to_owned(), number.as_i64()),
    }
}

/// Checks that a percentage is not more than everything.
pub(crate) fn at_most_all(errors: &mut Errors, path: &str, amount: Option<&Value>) {
    let Some(Value::String(text)) = amount else {
        return;
    };
    if percentage(text).is_some_and(|share| share > 100) {
        errors.push(FieldError::invalid(
            path,
            text.as_str(),
            "must not be greater than 100%",
        ));
    }
}

/// Whether it is neither a number nor a share of anything.
pub(crate) fn is_zero(amount: Option<&Value>) -> bool {
    match amount {
        Some(Value::String(text)) => percentage(text).or_else(|| text.parse().ok()).unwrap_or_default() == 0,
        Some(number) => number.as_i64().unwrap_or_default() == 0,
        None => true,
    }
}

/// The number before the percent sign; the largest one for more digits than fit.
fn percentage(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::texts;

    #[test]
    fn amounts_are_numbers_or_percentages() {
        for (amount, zero, wanted) in [
            (json!(0), true, None),
            (json!(3), false, None),
            (json!("0%"), true, None),
            (json!("25%"), false, None),
            (
                json!("101%"),
                false,
                Some("p: Invalid value: \"101%\": must not be greater than 100%"),
            ),
            (
                json!(-1),
                false,
                Some("p: Invalid value: -1: must be greater than or equal to 0"),
            ),
            (
                json!("5"),
                false,
                Some(
                    "p: Invalid value: \"5\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                ),
            ),
        ] {
            let mut errors = Vec::new();
            validate(&mut errors, "p", Some(&amount));
            at_most_all(&mut errors, "p", Some(&amount));
            assert_eq!(texts(&errors), wanted.as_slice(), "{amount}");
            assert_eq!(is_zero(Some(&amount)), zero, "{amount}");
        }
    }
}
