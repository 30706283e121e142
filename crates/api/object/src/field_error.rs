//! One problem with one field, in the words that kubectl rebuilds its messages from.
//!
//! Texts follow `apimachinery/pkg/util/validation/field/errors.go`, Kubernetes 1.36.

use std::fmt;

use serde_json::Value;

/// What is wrong with a field; decides the label in front of the detail and the cause's `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The field must be set.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is not one of a fixed set.
    NotSupported,
    /// The value stands elsewhere already.
    Duplicate,
    /// The field may not be set, or not be changed.
    Forbidden,
    /// The value has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value names something that is not there.
    NotFound,
    /// The rule itself could not be evaluated.
    InternalError,
}

impl FieldErrorKind {
    /// The `reason` of the cause in a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotFound => "FieldValueNotFound",
            Self::InternalError => "InternalError",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::InternalError => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        matches!(
            self,
            Self::Invalid | Self::TypeInvalid | Self::NotSupported | Self::Duplicate | Self::NotFound
        )
    }
}

/// One problem with one field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// Path as upstream writes it: `spec.containers[0].name`, `data[KEY]`.
    pub field: String,
    /// What is wrong.
    pub kind: FieldErrorKind,
    /// The offending value, shown by some kinds of error. Never a Secret's.
    pub value: Value,
    /// The rule in words; may be empty.
    pub detail: String,
}

impl FieldError {
    fn new(kind: FieldErrorKind, field: impl Into<String>, value: Value, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            kind,
            value,
            detail: detail.into(),
        }
    }

    /// The field must be set.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, Value::Null, detail)
    }

    /// The value breaks the rule in `detail`.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value.into(), detail)
    }

    /// The value is not one of `supported`.
    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        Self::new(
            FieldErrorKind::NotSupported,
            field,
            value.into(),
            format!("supported values: {}", quoted.join(", ")),
        )
    }

    /// The value stands elsewhere in the same list or map.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value.into(), "")
    }

    /// The field may not be set or changed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, Value::Null, detail)
    }

    /// The value has more than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit_bytes: usize) -> Self {
        let detail = format!("may not be more than {limit_bytes} bytes");
        Self::new(FieldErrorKind::TooLong, field, Value::Null, detail)
    }

    /// The list has `actual` items, `limit` are allowed.
    pub fn too_many(field: impl Into<String>, actual: usize, limit: usize) -> Self {
        let detail = format!("{actual}: must have at most {limit} items");
        Self::new(FieldErrorKind::TooMany, field, Value::Null, detail)
    }

    /// The value has the wrong type.
    pub fn type_invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, field, value.into(), detail)
    }

    /// The value names something that does not exist.
    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::NotFound, field, value.into(), "")
    }

    /// The text of the cause: label, value where the kind shows one, detail.
    pub fn body(&self) -> String {
        let mut body = self.kind.label().to_owned();
        if self.kind.shows_value() {
            body.push_str(": ");
            body.push_str(&shown(&self.value));
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_upstreams() {
        let table = [
            (
                FieldError::required("metadata.name", "name or generateName is required"),
                "metadata.name: Required value: name or generateName is required",
            ),
            (
                FieldError::invalid("data[..x]", "..x", "must not start with '..'"),
                r#"data[..x]: Invalid value: "..x": must not start with '..'"#,
            ),
            (
                FieldError::not_supported("dryRun", "Some", &["All"]),
                r#"dryRun: Unsupported value: "Some": supported values: "All""#,
            ),
            (
                FieldError::duplicate("spec.volumes[1].name", "a"),
                r#"spec.volumes[1].name: Duplicate value: "a""#,
            ),
            (
                FieldError::forbidden("data", "field is immutable"),
                "data: Forbidden: field is immutable",
            ),
            (
                FieldError::too_long("[]", 1_048_576),
                "[]: Too long: may not be more than 1048576 bytes",
            ),
            (
                FieldError::invalid("spec.n", 7, "must be less"),
                "spec.n: Invalid value: 7: must be less",
            ),
        ];
        for (error, text) in table {
            assert_eq!(error.to_string(), text);
        }
    }
}
