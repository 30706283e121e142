//! What a ControllerRevision holds of its owner, and the name that this gives it.

use serde_json::{Map, Value, json};

/// A revision is named by its owner and the hash; so many bytes of the owner's name are used.
const OWNER_NAME_BYTES_MAX: usize = 223;
/// The letters of hashes: no vowels and no digits that look like them, so that no words appear.
const SAFE_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A pod template as its revision's `data`: a strategic merge patch that puts the template back.
///
/// `kubectl rollout undo` sends it as it is, `kubectl rollout history` applies it and shows the result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Snapshot(Value);

impl Snapshot {
    /// The snapshot of a `PodTemplateSpec`. Null fields mean nothing and are left out, so that they make no difference.
    pub(crate) fn of(template: &Value) -> Self {
        let mut template = without_nulls(template);
        template["$patch"] = "replace".into();
        Self(json!({"spec": {"template": template}}))
    }

    pub(crate) fn data(&self) -> &Value {
        &self.0
    }

    /// Whether a revision with this `data` stands for the same template.
    pub(crate) fn is(&self, data: &Value) -> bool {
        self.0 == *data
    }

    /// The hash that tells templates apart: FNV-1 over the JSON and the number of collisions so far.
    pub(crate) fn hash(&self, collisions: i32) -> String {
        let text = format!("{}{collisions}", self.0);
        let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
        });
        let letter = |digit: u8| char::from(SAFE_LETTERS[usize::from(digit) % SAFE_LETTERS.len()]);
        hash.to_string().bytes().map(letter).collect()
    }

    /// The name of `owner`'s revision with this hash.
    pub(crate) fn name(owner: &str, hash: &str) -> String {
        // Names are ASCII, the server has checked that.
        let owner = owner.get(..OWNER_NAME_BYTES_MAX).unwrap_or(owner);
        format!("{owner}-{hash}")
    }
}

/// The template that a revision's `data` puts back; nothing if it is no snapshot of a template.
pub(crate) fn template_of(data: &Value) -> Option<Value> {
    let mut template = data.pointer("/spec/template")?.as_object()?.clone();
    (template.remove("$patch")? == "replace").then_some(Value::Object(template))
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(name, value)| (name.clone(), without_nulls(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_a_patch_that_replaces_the_template_and_gives_it_back() {
        let template = json!({
            "metadata": {"creationTimestamp": null, "labels": {"app": "web"}},
            "spec": {"volumes": null, "containers": [{"name": "a", "lifecycle": null}], "securityContext": {}},
        });
        let meant = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "a"}], "securityContext": {}},
        });
        let snapshot = Snapshot::of(&template);
        assert_eq!(snapshot.data()["spec"]["template"]["$patch"], "replace");
        assert_eq!(template_of(snapshot.data()), Some(meant.clone()));
        assert!(snapshot.is(Snapshot::of(&meant).data()));
        assert!(!snapshot.is(Snapshot::of(&json!({"metadata": {}})).data()));
    }

    #[test]
    fn only_snapshots_give_a_template() {
        for data in [
            json!(null),
            json!({}),
            json!({"spec": {"template": "x"}}),
            json!({"spec": {"template": {"spec": {}}}}),
            json!({"spec": {"template": {"$patch": "delete"}}}),
        ] {
            assert_eq!(template_of(&data), None, "{data}");
        }
    }

    #[test]
    fn hashes_are_short_safe_and_upstreams() {
        let snapshot = Snapshot::of(&json!({"spec": {}}));
        // FNV-1 of `{"spec":{"template":{"$patch":"replace","spec":{}}}}` and a collision count, as upstream writes it.
        let hashes = [0, 1, 2].map(|collisions| snapshot.hash(collisions));
        assert_eq!(hashes, ["559ccffb7f", "559ccffb7d", "559ccffb7c"]);
        assert_eq!(
            snapshot.hash(0),
            Snapshot::of(&json!({"spec": {}, "metadata": null})).hash(0)
        );
    }

    #[test]
    fn names_have_room_for_the_hash() {
        assert_eq!(Snapshot::name("web", "5d9c"), "web-5d9c");
        assert_eq!(
            Snapshot::name(&"a".repeat(253), "5d9c").len(),
            OWNER_NAME_BYTES_MAX + 5
        );
    }
}
