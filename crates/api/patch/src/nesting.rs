//! How deep a value is, without walking deeper than allowed.

use serde_json::Value;

/// Deepest nesting of objects and lists in a patch and in what it makes. The JSON parser stops at the same depth;
/// the limit here holds what `move` and `copy` can stack up, so that no later recursion runs out of stack.
pub const NESTING_DEPTH_MAX: usize = 128;

/// Levels of objects and lists in `value`: 0 for a scalar. Looks no deeper than `limit + 1`, and returns that when
/// there is more.
pub(crate) fn depth_up_to(value: &Value, limit: usize) -> usize {
    let deepest_child = match value {
        Value::Object(members) => members.values().map(|child| depth_below(child, limit)).max(),
        Value::Array(items) => items.iter().map(|child| depth_below(child, limit)).max(),
        _ => return 0,
    };
    1 + deepest_child.unwrap_or(0)
}

fn depth_below(child: &Value, limit: usize) -> usize {
    if limit == 0 {
        0
    } else {
        depth_up_to(child, limit - 1)
    }
}

/// Whether `value` nests deeper than [`NESTING_DEPTH_MAX`].
pub(crate) fn too_deep(value: &Value) -> bool {
    depth_up_to(value, NESTING_DEPTH_MAX) > NESTING_DEPTH_MAX
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn depth_counts_objects_and_lists_up_to_the_limit() {
        for (value, limit, depth) in [
            (json!(1), 9, 0),
            (json!({}), 9, 1),
            (json!({"a": [1, {"b": 2}]}), 9, 3),
            (json!({"a": [1, {"b": 2}]}), 1, 2),
            (json!([[[[[]]]]]), 0, 1),
        ] {
            assert_eq!(depth_up_to(&value, limit), depth, "{value}");
        }
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(!too_deep(&nested(NESTING_DEPTH_MAX)));
        assert!(too_deep(&nested(NESTING_DEPTH_MAX + 1)));
    }
}
