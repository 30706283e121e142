//! RFC 7386: what the patch names is set, what it sets to `null` goes, the rest stays.

use serde_json::Value;

use crate::{PatchError, nesting};

/// Applies a JSON merge patch to an object.
///
/// # Errors
/// [`PatchError::Undecodable`] if the patch is no JSON object (the RFC would replace the whole target; Kubernetes
/// refuses that), [`PatchError::TooDeep`] if it nests too deep.
pub fn merge_patch(mut target: Value, patch: &Value) -> Result<Value, PatchError> {
    if !patch.is_object() {
        return Err(PatchError::Undecodable(
            "a merge patch is a JSON object".to_owned(),
        ));
    }
    if nesting::too_deep(patch) {
        return Err(PatchError::TooDeep);
    }
    ::json_patch::merge(&mut target, patch);
    Ok(target)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn members_are_set_merged_and_removed() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b", "b": 1}), json!({"a": null}), json!({"b": 1})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
            (json!({"data": {"log": "INFO"}}), json!({"data": null}), json!({})),
        ] {
            assert_eq!(
                merge_patch(target.clone(), &patch),
                Ok(expected),
                "{target} + {patch}"
            );
        }
    }

    #[test]
    fn only_objects_are_merge_patches() {
        for patch in [json!([]), json!(1), json!(null), json!("x")] {
            let error = merge_patch(json!({"a": 1}), &patch).expect_err("refused");
            assert_eq!(error.http_code(), 400, "{patch}");
        }
        let deep = json!({"a": (0..200).fold(json!(1), |inner, _| json!([inner]))});
        assert_eq!(merge_patch(json!({}), &deep), Err(PatchError::TooDeep));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-d]", json_value(), 0..5)
            .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
    }

    /// The merge patch that leads from `old` to `new`; exact for values without `null`.
    fn difference(old: &Value, new: &Value) -> Value {
        let (Value::Object(old), Value::Object(new)) = (old, new) else {
            return new.clone();
        };
        let removed = old
            .keys()
            .filter(|key| !new.contains_key(*key))
            .map(|key| (key.clone(), Value::Null));
        let changed = new
            .iter()
            .filter(|(key, value)| old.get(*key) != Some(value))
            .map(|(key, value)| {
                let patch = match old.get(key) {
                    Some(before @ Value::Object(_)) => difference(before, value),
                    _ => value.clone(),
                };
                (key.clone(), patch)
            });
        Value::Object(removed.chain(changed).collect())
    }

    proptest! {
        #[test]
        fn the_empty_patch_changes_nothing(target in object()) {
            prop_assert_eq!(merge_patch(target.clone(), &json!({})), Ok(target));
        }

        #[test]
        fn the_difference_leads_to_the_new_object(old in object(), new in object()) {
            let patch = difference(&old, &new);
            prop_assert_eq!(merge_patch(old, &patch), Ok(new));
        }

        #[test]
        fn twice_is_once(target in object(), patch in object()) {
            let once = merge_patch(target, &patch).unwrap();
            prop_assert_eq!(merge_patch(once.clone(), &patch), Ok(once));
        }
    }
}
