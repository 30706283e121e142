//! What the tests of every kind need.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use crate::{Resource, registry};

pub(crate) fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

pub(crate) fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

pub(crate) fn resource(plural: &str) -> &'static Resource {
    registry::find("", "v1", plural).expect("a core resource")
}
