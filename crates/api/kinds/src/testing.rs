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

/// An object with the defaults of its kind, checked as a new one is.
pub(crate) fn created(group: &str, plural: &str, object: Value) -> (Map<String, Value>, Vec<String>) {
    let resource = registry::find(group, "v1", plural).expect("a served resource");
    let conformed = hotmap_schema::conform(object, resource.schema.message).expect("an object of the kind");
    let mut object = map(conformed.value);
    resource.strategy.default(&mut object);
    resource.strategy.prepare_for_create(&mut object);
    let errors = texts(&resource.strategy.validate(&object));
    (object, errors)
}

/// What is wrong with a change from one new object to another, through `subresource`.
pub(crate) fn updated(group: &str, plural: &str, old: Value, new: Value, subresource: &str) -> Vec<String> {
    let resource = registry::find(group, "v1", plural).expect("a served resource");
    let (old, _) = created(group, plural, old);
    let conformed = hotmap_schema::conform(new, resource.schema.message).expect("an object of the kind");
    let mut new = map(conformed.value);
    resource.strategy.default(&mut new);
    resource.strategy.prepare_for_update(&mut new, &old, subresource);
    texts(&resource.strategy.validate_update(&new, &old, subresource))
}

/// A JSON object with members of another one over it, to any depth.
pub(crate) fn with(mut object: Value, changes: Value) -> Value {
    merge(&mut object, changes);
    object
}

fn merge(object: &mut Value, changes: Value) {
    match (object, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            for (key, change) in changes {
                if change.is_null() {
                    object.remove(&key);
                } else {
                    merge(object.entry(key).or_insert(Value::Null), change);
                }
            }
        }
        (object, change) => *object = change,
    }
}
