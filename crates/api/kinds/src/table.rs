//! Columns and cells that many kinds share.

use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{Column, fields::Fields};

/// What stands where there is nothing to say.
pub(crate) const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub(crate) const NAME: Column = Column {
    name: "Name",
    kind: "string",
    format: "name",
    description: "Unique among objects of this kind in its namespace, or in the cluster if the kind has no namespace.",
    priority: 0,
};

pub(crate) const AGE: Column = column("Age", "string", "Time since the object was created.");

/// A column that is always shown.
pub(crate) const fn column(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column {
        name,
        kind,
        format: "",
        description,
        priority: 0,
    }
}

/// A column that only `-o wide` shows.
pub(crate) const fn wide(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column {
        name,
        kind,
        format: "",
        description,
        priority: 1,
    }
}

/// The cell of [`NAME`].
pub(crate) fn name(object: &Map<String, Value>) -> Value {
    object.map("metadata").text("name").into()
}

/// The cell of [`AGE`].
pub(crate) fn age(object: &Map<String, Value>, now: Timestamp) -> Value {
    ago(object.map("metadata").time("creationTimestamp"), now).into()
}

/// Time since a moment, `<unknown>` if there was none.
pub(crate) fn ago(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map_or_else(|| UNKNOWN.to_owned(), |since| timestamp::human_age(since, now))
}

/// The text, or `<none>` for the empty one.
pub(crate) fn or_none(text: &str) -> Value {
    if text.is_empty() { NONE.into() } else { text.into() }
}
