//! All rules of one write, in the order in which clients see what is broken.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use crate::{NameRule, Resource, validate_metadata, validate_metadata_update};

/// Everything that is wrong with a new object.
///
/// Kinds check metadata first and themselves next, all in one answer. Core events have their own rules checked alone;
/// metadata only when those hold.
pub fn validate_create(object: &Map<String, Value>, resource: &Resource) -> Vec<FieldError> {
    let of_kind = resource.strategy.validate(object);
    if resource.kind == "Event" && resource.name_rule == NameRule::PathSegment {
        return if of_kind.is_empty() {
            validate_metadata(object, resource)
        } else {
            of_kind
        };
    }
    let mut errors = validate_metadata(object, resource);
    errors.extend(of_kind);
    errors
}

/// Everything that is wrong with a change through the object's own path or a sub-resource, metadata first.
///
/// Upstream checks metadata twice and reports each finding twice in its causes; here it is once.
pub fn validate_update(
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    resource: &Resource,
    subresource: &str,
) -> Vec<FieldError> {
    let mut errors = validate_metadata_update(new, old);
    errors.extend(validate_metadata(new, resource));
    errors.extend(resource.strategy.validate_update(new, old, subresource));
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, resource, texts};

    #[test]
    fn metadata_comes_first_and_the_kind_next() {
        let object = map(json!({"metadata": {"name": "a"}, "data": {"..x": ""}}));
        assert_eq!(
            texts(&validate_create(&object, resource("configmaps"))),
            [
                "metadata.namespace: Required value",
                "data[..x]: Invalid value: \"..x\": must not start with '..'"
            ]
        );
    }

    #[test]
    fn core_events_have_any_name_that_fits_a_path() {
        let event = |name: &str, involved: &str| {
            map(
                json!({"metadata": {"name": name, "namespace": "n"}, "involvedObject": {"namespace": involved}}),
            )
        };
        let events = resource("events");
        assert_eq!(texts(&validate_create(&event("A b", "n"), events)), [""; 0]);
        assert_eq!(
            texts(&validate_create(&event("a/b", "n"), events)),
            ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]
        );
        assert_eq!(
            texts(&validate_create(&event("a/b", "m"), events)),
            ["involvedObject.namespace: Invalid value: \"m\": does not match event.namespace"]
        );
    }

    #[test]
    fn updates_tell_both_at_once() {
        let old = map(json!({"metadata": {"name": "a", "namespace": "n", "uid": "1"}, "immutable": true}));
        let new = map(json!({"metadata": {"name": "a", "namespace": "n", "uid": "2"}}));
        assert_eq!(
            texts(&validate_update(&new, &old, resource("configmaps"), "")),
            [
                "metadata.uid: Invalid value: \"2\": field is immutable",
                "immutable: Forbidden: field is immutable when `immutable` is set"
            ]
        );
    }
}
