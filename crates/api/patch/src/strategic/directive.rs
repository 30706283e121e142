//! The words that begin with `$`.

use serde_json::Value;

use super::{Object, go_text::go_text};
use crate::PatchError;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// The value of `$patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Delete,
    Replace,
    Merge,
}

impl Directive {
    /// Takes `$patch` out of the object it stands in.
    pub(super) fn take_from(object: &mut Object) -> Result<Option<Self>, PatchError> {
        match object.get(PATCH).map(Value::as_str) {
            None => return Ok(None),
            Some(Some("delete")) => object.remove(PATCH).map(|_| Self::Delete),
            Some(Some("replace")) => object.remove(PATCH).map(|_| Self::Replace),
            Some(Some("merge")) => object.remove(PATCH).map(|_| Self::Merge),
            Some(_) => {
                let directive = object
                    .get(PATCH)
                    .map(|value| go_text(value).to_string())
                    .unwrap_or_default();
                return Err(PatchError::UnknownDirective {
                    directive,
                    map: go_text(object).to_string(),
                });
            }
        }
        .map_or(Ok(None), |directive| Ok(Some(directive)))
    }

    /// Whether an element of a list carries a directive.
    pub(super) fn stands_in(value: &Value) -> bool {
        value.as_object().is_some_and(|object| object.contains_key(PATCH))
    }

    /// Whether an element of a list is there only to be deleted.
    pub(super) fn deletes(value: &Value) -> bool {
        value.get(PATCH).is_some_and(|directive| directive == "delete")
    }
}

/// The error for a directive that has no meaning where it stands; `rest` is the object without it.
pub(super) fn unknown(directive: &str, rest: &Object) -> PatchError {
    let mut whole = rest.clone();
    whole.insert(PATCH.to_owned(), Value::from(directive));
    PatchError::UnknownDirective {
        directive: directive.to_owned(),
        map: go_text(&whole).to_string(),
    }
}

/// Carries out `$retainKeys`: of the original's fields only the named ones stay, and the patch may set no other.
pub(super) fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(retained) = retained else {
        return Err(PatchError::RetainKeysFormat);
    };
    let is_retained = |key: &str| retained.iter().any(|name| name == key);
    let sets_value = |key: &str, value: &Value| {
        !value.is_null()
            && !key.starts_with(DELETE_FROM_PRIMITIVE_LIST)
            && !key.starts_with(SET_ELEMENT_ORDER)
    };
    if patch
        .iter()
        .any(|(key, value)| sets_value(key, value) && !is_retained(key))
    {
        return Err(PatchError::RetainKeysFormat);
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

/// `f` for the key `$deleteFromPrimitiveList/f`.
pub(super) fn primitive_list_of(key: &str) -> Result<Option<&str>, PatchError> {
    list_of(key, DELETE_FROM_PRIMITIVE_LIST, PatchError::PrimitiveListFormat)
}

/// `f` for the key `$setElementOrder/f`.
pub(super) fn ordered_list_of(key: &str) -> Result<Option<&str>, PatchError> {
    list_of(key, SET_ELEMENT_ORDER, PatchError::SetElementOrderFormat)
}

fn list_of<'a>(key: &'a str, prefix: &str, malformed: PatchError) -> Result<Option<&'a str>, PatchError> {
    let Some(rest) = key.strip_prefix(prefix) else {
        return Ok(None);
    };
    rest.strip_prefix('/').map(Some).ok_or(malformed)
}

/// Drops every member that is `null`, at any depth: what is set to `null` where nothing was shall stay absent.
pub(super) fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// The value without the objects that carry a directive; nothing if it is such an object itself.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => Some(Value::Object(
            members
                .into_iter()
                .filter_map(|(key, member)| Some((key, without_directives(member)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        scalar => Some(scalar),
    }
}
