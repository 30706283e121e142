//! Field selectors: `metadata.name=a,status.phase!=Running`.
//!
//! Grammar and texts follow `apimachinery/pkg/fields/selector.go`, Kubernetes 1.36: no sets, and backslash escapes
//! `\\`, `\,` and `\=` inside values.

use std::str::FromStr;

/// A conjunction of comparisons on selectable fields; the empty one selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector(Vec<FieldRequirement>);

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Field path, such as `metadata.name`.
    pub field: String,
    /// The value compared with.
    pub value: String,
    /// `=` if true, `!=` if false.
    pub equal: bool,
}

/// A field selector that cannot be read; the text is what clients are shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldSelectorError(String);

impl FieldSelector {
    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The comparisons, in the order given.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.0
    }

    /// The value that `field` must have, if the selector pins it.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|one| one.equal && one.field == field)
            .map(|one| one.value.as_str())
    }

    /// The comparisons of `field`, and the selector without them.
    pub fn split(self, field: &str) -> (Vec<FieldRequirement>, Self) {
        let (own, others) = self.0.into_iter().partition(|one| one.field == field);
        (own, Self(others))
    }

    /// Whether an object is selected. `value_of` gives a field's value; a field that is not there counts as empty.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0
            .iter()
            .all(|one| (value_of(&one.field).unwrap_or_default() == one.value) == one.equal)
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(raw: &str) -> Result<Self, Self::Err> {
        let terms = split_terms(raw).into_iter().filter(|term| !term.is_empty());
        terms
            .map(|term| requirement(raw, &term))
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }
}

fn split_terms(raw: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in raw.chars() {
        let current = terms.last_mut().expect("starts with one term");
        match c {
            ',' if !escaped => terms.push(String::new()),
            c => current.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

fn requirement(whole: &str, term: &str) -> Result<FieldRequirement, FieldSelectorError> {
    let at = term.find('=').filter(|at| *at > 0);
    let Some(at) = at else {
        return Err(FieldSelectorError(format!(
            "invalid selector: '{whole}'; can't understand '{term}'"
        )));
    };
    let (field, equal) = match term[..at].strip_suffix('!') {
        Some(field) => (field, false),
        None => (&term[..at], true),
    };
    let value = term[at + 1..]
        .strip_prefix('=')
        .filter(|_| equal)
        .unwrap_or(&term[at + 1..]);
    Ok(FieldRequirement {
        field: field.to_owned(),
        value: unescape(value)?,
        equal,
    })
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(FieldSelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            '=' | ',' => {
                return Err(FieldSelectorError(format!(
                    "invalid field selector: unescaped character in value: {c}"
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select() {
        let fields = |field: &str| match field {
            "metadata.name" => Some("a,b"),
            "status.phase" => Some("Running"),
            _ => None,
        };
        let table = [
            ("", true),
            (r"metadata.name=a\,b", true),
            ("status.phase==Running", true),
            ("status.phase!=Running", false),
            ("status.phase!=Failed,metadata.name!=x", true),
            ("spec.nodeName=", true),
        ];
        for (raw, selected) in table {
            assert_eq!(
                raw.parse::<FieldSelector>().expect(raw).matches(fields),
                selected,
                "{raw:?}"
            );
        }
    }

    #[test]
    fn the_comparisons_of_a_field_come_apart_from_the_others() {
        let selector: FieldSelector = "a=1,b=2,a!=3".parse().expect("a selector");
        let (own, others) = selector.split("a");
        assert_eq!(
            own.iter().map(|one| one.value.as_str()).collect::<Vec<_>>(),
            ["1", "3"]
        );
        assert_eq!(others, "b=2".parse().expect("a selector"));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(
            "x".parse::<FieldSelector>().expect_err("no operator").to_string(),
            "invalid selector: 'x'; can't understand 'x'"
        );
        for raw in ["=x", r"a=\x", "a=b=c"] {
            assert!(raw.parse::<FieldSelector>().is_err(), "{raw:?}");
        }
    }
}
