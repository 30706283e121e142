//! When two pod templates are the same, and the hash that names a template's ReplicaSet.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::view::PodTemplate;

/// The label that keeps the pods of one template apart from those of all others.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// Maps that mean nothing when they are empty. Elsewhere `{}` is a choice: `emptyDir: {}`.
const MAPS: [&str; 7] = [
    "labels",
    "annotations",
    "nodeSelector",
    "limits",
    "requests",
    "overhead",
    "matchLabels",
];

/// Whether pods of both are the same; the label with the hash apart.
///
/// Source: `EqualIgnoreHash` in `pkg/controller/deployment/util/deployment_util.go`, Kubernetes 1.36: nothing and an empty
/// list or map are the same.
pub(crate) fn are_same(one: &PodTemplate, other: &PodTemplate) -> bool {
    unhashed_labels(one) == unhashed_labels(other)
        && same_objects(&one.value()["metadata"], &other.value()["metadata"], "labels")
        && same_objects(one.value(), other.value(), "metadata")
}

fn unhashed_labels(template: &PodTemplate) -> BTreeMap<&str, &str> {
    template.labels().filter(|(key, _)| *key != HASH_LABEL).collect()
}

/// Whether all members but `except` are the same.
fn same_objects(one: &Value, other: &Value, except: &str) -> bool {
    let mut keys = keys(one).chain(keys(other)).filter(|key| *key != except);
    keys.all(
        |key| match (meaningful(key, one.get(key)), meaningful(key, other.get(key))) {
            (None, None) => true,
            (Some(one), Some(other)) => same_values(one, other),
            _ => false,
        },
    )
}

fn keys(object: &Value) -> impl Iterator<Item = &String> {
    object.as_object().into_iter().flat_map(Map::keys)
}

fn same_values(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(_), Value::Object(_)) => same_objects(one, other, ""),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_values(one, other))
        }
        (one, other) => one == other,
    }
}

/// The value, unless it says as much as none.
fn meaningful<'a>(key: &str, value: Option<&'a Value>) -> Option<&'a Value> {
    value.filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty() || !MAPS.contains(&key),
        _ => true,
    })
}

/// The hash of a template: part of its ReplicaSet's name, and a label of its pods. Another `collision_count` gives another
/// hash, should the name be taken.
///
/// Upstream hashes Go's in-memory form of the template (`ComputeHash` in `pkg/controller/controller_utils.go`), so its
/// hashes are others; nothing compares them: a template's ReplicaSet is found by the template.
pub(crate) fn hash(template: &PodTemplate, collision_count: Option<i32>) -> String {
    let mut hash = Fnv32a::new();
    write_canonical(template.value(), &mut hash);
    if let Some(count) = collision_count {
        hash.write(&count.to_le_bytes());
    }
    safe_encode(&hash.0.to_string())
}

/// Keys in order, without what says nothing: equal templates have equal hashes.
fn write_canonical(value: &Value, hash: &mut Fnv32a) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map
                .iter()
                .filter(|(key, value)| meaningful(key, Some(value)).is_some())
                .collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            hash.write(b"{");
            for (key, value) in members {
                hash.write(key.as_bytes());
                hash.write(b":");
                write_canonical(value, hash);
            }
            hash.write(b"}");
        }
        Value::Array(items) => {
            hash.write(b"[");
            items.iter().for_each(|item| write_canonical(item, hash));
            hash.write(b"]");
        }
        scalar => hash.write(scalar.to_string().as_bytes()),
    }
}

struct Fnv32a(u32);

impl Fnv32a {
    fn new() -> Self {
        Self(0x811c_9dc5)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}

/// Letters and digits of which no bad words can be made; source: `SafeEncodeString` in `apimachinery/pkg/util/rand/rand.go`.
fn safe_encode(text: &str) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    text.bytes()
        .map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_are_compared_by_what_they_mean() {
        let base = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        let with = |pointer: &str, key: &str, value: Value| {
            let mut changed = base.clone();
            changed.pointer_mut(pointer).expect("there")[key] = value;
            changed
        };
        for (other, same) in [
            (base.clone(), true),
            (with("/metadata/labels", HASH_LABEL, json!("abc")), true),
            (with("/metadata", "creationTimestamp", json!(null)), true),
            (with("/metadata", "annotations", json!({})), true),
            (with("/spec", "volumes", json!([])), true),
            (with("/spec/containers/0", "resources", json!({})), false),
            (with("/spec/containers/0", "env", json!(null)), true),
            (with("/metadata/labels", "tier", json!("a")), false),
            (with("/metadata", "annotations", json!({"a": "b"})), false),
            (with("/spec/containers/0", "image", json!("busybox")), false),
            (with("/spec", "nodeSelector", json!({HASH_LABEL: "abc"})), false),
            (
                with("/spec", "volumes", json!([{"name": "v", "emptyDir": {}}])),
                false,
            ),
        ] {
            let (one, other) = (PodTemplate::from(base.clone()), PodTemplate::from(other));
            assert_eq!(are_same(&one, &other), same, "{:?}", other.value());
            assert_eq!(are_same(&other, &one), same, "{:?}", other.value());
        }
        let bare = PodTemplate::from(json!({"spec": {}}));
        let hashed = PodTemplate::from(json!({"metadata": {"labels": {HASH_LABEL: "abc"}}, "spec": {}}));
        assert!(are_same(
            &bare,
            &PodTemplate::from(json!({"metadata": {"labels": {}}, "spec": {}}))
        ));
        assert!(!are_same(
            &bare,
            &PodTemplate::from(json!({"spec": {"hostname": "a"}}))
        ));
        assert!(are_same(
            &PodTemplate::from(json!({"metadata": {}, "spec": {}})),
            &hashed
        ));
    }

    #[test]
    fn hashes_name_templates() {
        let template = |value: Value| PodTemplate::from(value);
        let one = template(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}));
        let same = template(
            json!({"spec": {"x": 1}, "metadata": {"creationTimestamp": null, "labels": {"a": "b"}}}),
        );
        let other = template(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": 2}}));
        assert_eq!(hash(&one, None), hash(&same, None));
        assert_ne!(hash(&one, None), hash(&other, None));
        assert_ne!(hash(&one, None), hash(&one, Some(1)));
        assert_ne!(hash(&one, Some(1)), hash(&one, Some(2)));
        assert!(hash(&one, None).len() <= 10);
    }

    #[test]
    fn the_alphabet_is_upstreams() {
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
    }
}
