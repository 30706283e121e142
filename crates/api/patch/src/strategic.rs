//! Strategic merge patch: a partial object whose lists merge by key, and words that begin with `$` to steer it.
//!
//! ```text
//!   $patch: delete | replace            this object or list element goes, or is taken as it stands
//!   $deleteFromPrimitiveList/f: [..]    these scalars leave the list f
//!   $setElementOrder/f: [..]            the order of the list f; what only the server knows keeps its place
//!   $retainKeys: [..]                   of the target's fields only these stay
//! ```
//!
//! Behaviour follows `apimachinery/pkg/util/strategicpatch/patch.go`, Kubernetes 1.36, as the API server calls it:
//! deletion lists are carried out and a `null` for an absent field leaves no trace. Where upstream depends on the order
//! in which Go walks a map, directives come first here.

mod directive;
mod go_text;
mod list;
mod order;
mod shape;
#[cfg(test)]
mod tests;

use hotmap_schema::Message;
use serde_json::{Map, Value};

use self::{directive::Directive, go_text::go_type, shape::Shape};
use crate::{PatchError, nesting};

/// Applies a strategic merge patch to an object whose fields `message` describes.
///
/// # Errors
/// [`PatchError::Undecodable`] if the patch is no JSON object, [`PatchError::TooDeep`], and everything that
/// [`PatchError`] names about directives, merge keys and lists. A non-object `original` counts as empty.
pub fn strategic_merge_patch(
    original: Value,
    patch: Value,
    message: &'static Message,
) -> Result<Value, PatchError> {
    if nesting::too_deep(&patch) {
        return Err(PatchError::TooDeep);
    }
    let Value::Object(patch) = patch else {
        return Err(PatchError::Undecodable(
            "a strategic merge patch is a JSON object".to_owned(),
        ));
    };
    let original = match original {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    merge_objects(original, patch, Shape::Structure(message)).map(Value::Object)
}

type Object = Map<String, Value>;

/// Merges `patch` into `original`; the heart of it, called again for every object both have.
fn merge_objects(mut original: Object, mut patch: Object, shape: Shape) -> Result<Object, PatchError> {
    match Directive::take_from(&mut patch)? {
        Some(Directive::Replace) => return Ok(patch),
        Some(Directive::Delete) => return Ok(Object::new()),
        Some(Directive::Merge) => return Err(directive::unknown("merge", &patch)),
        None => {}
    }
    directive::retain_keys(&mut original, &mut patch)?;
    list::merge_ordered_lists(&mut original, &mut patch, shape)?;
    for (key, change) in patch {
        let (key, deletes_scalars) = match directive::primitive_list_of(&key)? {
            Some(list) => (list.to_owned(), true),
            None => (key, false),
        };
        merge_member(&mut original, key, change, deletes_scalars, shape)?;
    }
    Ok(original)
}

fn merge_member(
    original: &mut Object,
    key: String,
    change: Value,
    deletes_scalars: bool,
    shape: Shape,
) -> Result<(), PatchError> {
    if change.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let Some(current) = original.get_mut(&key) else {
        if !deletes_scalars {
            take_as_it_stands(original, key, change);
        }
        return Ok(());
    };
    match (current.take(), change) {
        (Value::Object(old), Value::Object(new)) => {
            let (inner, strategy) = shape.structure_at(&key)?;
            let merged = if strategy.replaces() {
                new
            } else {
                merge_objects(old, new, inner)?
            };
            *current = Value::Object(merged);
        }
        (Value::Array(old), Value::Array(new)) => {
            let (elements, strategy) = shape.list_at(&key)?;
            *current = Value::Array(list::merge(old, new, elements, strategy, deletes_scalars)?);
        }
        (old, new) if deletes_scalars && go_type(&old) != go_type(&new) => *current = old,
        (_, new) => take_as_it_stands(original, key, new),
    }
    Ok(())
}

/// Sets a member that the object does not have, or has with another type: nothing to merge with.
fn take_as_it_stands(original: &mut Object, key: String, mut change: Value) {
    directive::discard_nulls(&mut change);
    match directive::without_directives(change) {
        Some(value) => original.insert(key, value),
        None => original.remove(&key),
    };
}
