//! `metadata` of objects in the making: reading it without trust, and what the server alone decides.

use hotmap_kinds::Resource;
use hotmap_object::{Status, timestamp};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::uuid;

pub(super) type Object = Map<String, Value>;

/// Fields a client does not decide on create; `generation` and `managedFields` are the server's as well.
const SYSTEM_FIELDS: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
    "managedFields",
];

/// Letters and digits of generated names: none that make words or look alike
/// (`apimachinery/pkg/util/rand/rand.go`, Kubernetes 1.36).
const NAME_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_SUFFIX_LEN: usize = 5;
/// Bytes of `generateName` that are kept, so that the result is a DNS label.
const NAME_PREFIX_MAX: usize = 58;

pub(super) fn of(object: &Object) -> &Object {
    static NOTHING: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Map::new);
    object
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&NOTHING)
}

pub(super) fn of_mut(object: &mut Object) -> &mut Object {
    let held = object.entry("metadata").or_insert(Value::Null);
    if !held.is_object() {
        *held = Value::Object(Map::new());
    }
    held.as_object_mut().expect("just made an object")
}

/// A text, or the empty one.
pub(super) fn text<'o>(object: &'o Object, field: &str) -> &'o str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a field is there and not null.
pub(super) fn has(object: &Object, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

pub(super) fn finalizers(metadata: &Object) -> Vec<&str> {
    let held = metadata.get("finalizers").and_then(Value::as_array);
    held.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Makes `new[field]` what `old[field]` is, absence included.
pub(super) fn keep(new: &mut Object, old: &Object, field: &str) {
    match old.get(field) {
        Some(held) => new.insert(field.to_owned(), held.clone()),
        None => new.remove(field),
    };
}

/// Drops what a client may send but does not decide.
pub(super) fn wipe_system_fields(object: &mut Object) {
    let metadata = of_mut(object);
    for field in SYSTEM_FIELDS {
        metadata.remove(field);
    }
}

/// Sets what the server decides when an object begins.
///
/// # Errors
///
/// 500 if the system has no randomness.
pub(super) fn fill_system_fields(
    object: &mut Object,
    resource: &Resource,
    now: Timestamp,
) -> Result<(), Status> {
    let uid = uuid::random().map_err(Status::internal)?;
    let metadata = of_mut(object);
    metadata.insert("uid".to_owned(), uid.into());
    metadata.insert("creationTimestamp".to_owned(), timestamp::seconds(now).into());
    if resource.has_generation {
        metadata.insert("generation".to_owned(), 1.into());
    }
    Ok(())
}

/// Fills in the namespace of the request.
///
/// # Errors
///
/// 400 if the object names another one.
pub(super) fn ensure_namespace(
    object: &mut Object,
    resource: &Resource,
    namespace: &str,
) -> Result<(), Status> {
    let metadata = of_mut(object);
    if !resource.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    match text(metadata, "namespace") {
        held if held == namespace => Ok(()),
        "" => {
            metadata.insert("namespace".to_owned(), namespace.into());
            Ok(())
        }
        _ => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// A name from `generateName`.
///
/// # Errors
///
/// 500 if the system has no randomness.
pub(super) fn generate_name(prefix: &str) -> Result<String, Status> {
    let mut end = prefix.len().min(NAME_PREFIX_MAX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix[..end].to_owned();
    // Bytes beyond the last whole multiple of the alphabet would favour its first letters.
    let fair = u8::MAX - u8::MAX % NAME_ALPHABET.len() as u8;
    let mut left = NAME_SUFFIX_LEN;
    while left > 0 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(Status::internal)?;
        for byte in bytes.into_iter().filter(|byte| *byte < fair).take(left) {
            name.push(char::from(NAME_ALPHABET[usize::from(byte) % NAME_ALPHABET.len()]));
            left -= 1;
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_have_the_known_form() {
        let long = "a".repeat(80);
        for (prefix, kept) in [("web-", "web-"), (long.as_str(), &long[..58])] {
            let name = generate_name(prefix).expect("randomness");
            let suffix = name.strip_prefix(kept).expect("keeps the prefix");
            assert!(
                suffix.len() == 5 && suffix.bytes().all(|byte| NAME_ALPHABET.contains(&byte)),
                "{name}"
            );
        }
    }
}
