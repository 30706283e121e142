//! Reading JSON objects without trusting them: what is absent, null or of another type reads as empty.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value};

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Members of an object by name; of anything else there are none.
pub(crate) trait Fields {
    /// The member, unless it is absent or null.
    fn member(&self, key: &str) -> Option<&Value>;

    /// A string, or the empty one.
    fn text(&self, key: &str) -> &str {
        self.member(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// A whole number.
    fn int(&self, key: &str) -> Option<i64> {
        self.member(key).and_then(Value::as_i64)
    }

    /// Whether a boolean is there and true.
    fn is_set(&self, key: &str) -> bool {
        self.member(key).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The items of a list, or none.
    fn list(&self, key: &str) -> &[Value] {
        self.member(key)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    /// An object, or an empty one.
    fn map(&self, key: &str) -> &Map<String, Value> {
        self.member(key).and_then(Value::as_object).unwrap_or(&NOTHING)
    }

    /// A point in time.
    fn time(&self, key: &str) -> Option<Timestamp> {
        self.text(key).parse().ok()
    }

    /// Whether the member is there, not null, and neither an empty string, list nor object.
    fn has(&self, key: &str) -> bool {
        match self.member(key) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(members)) => !members.is_empty(),
            Some(Value::Bool(_) | Value::Number(_)) => true,
        }
    }
}

impl Fields for Map<String, Value> {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|value| !value.is_null())
    }
}

impl Fields for Value {
    fn member(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|value| !value.is_null())
    }
}

/// The object under `key`, made if it is not there; `None` if something else stands there.
pub(crate) fn map_mut<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
) -> Option<&'a mut Map<String, Value>> {
    let held = object.entry(key).or_insert(Value::Null);
    if held.is_null() {
        *held = Value::Object(Map::new());
    }
    held.as_object_mut()
}

/// The items under `key` for writing.
pub(crate) fn list_mut<'a>(object: &'a mut Map<String, Value>, key: &str) -> &'a mut [Value] {
    object
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

/// Sets what is absent, null or the empty string.
pub(crate) fn set_default(object: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let is_empty = match object.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if is_empty {
        object.insert(key.to_owned(), value.into());
    }
}

/// Sets what is absent or null.
pub(crate) fn set_absent(object: &mut Map<String, Value>, key: &str, value: Value) {
    if object.member(key).is_none() {
        object.insert(key.to_owned(), value);
    }
}

/// Makes `new[key]` what `old[key]` is, absence included.
pub(crate) fn keep(new: &mut Map<String, Value>, old: &Map<String, Value>, key: &str) {
    match old.get(key) {
        Some(held) => new.insert(key.to_owned(), held.clone()),
        None => new.remove(key),
    };
}
