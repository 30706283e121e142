//! Lists: replaced, united, or merged element by element.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    Object,
    directive::{self, Directive},
    go_text::{GO_LIST, go_text, go_type},
    merge_objects,
    order::{self, Places, identity},
    shape::{FieldStrategy, Shape},
};
use crate::PatchError;

/// Merges the patch's list into the original's, by the strategy of the field.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    elements: Shape,
    strategy: FieldStrategy,
    deletes_scalars: bool,
) -> Result<Vec<Value>, PatchError> {
    if !strategy.merges() && !deletes_scalars {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    match (element_type(&original, &patch)?, strategy.merge_key) {
        (ElementType::Object, None) => Err(PatchError::NoMergeKey),
        (ElementType::Object, Some(key)) => merge_keyed(original, patch, elements, key),
        (ElementType::Scalar, _) if deletes_scalars => Ok(subtract(original, &patch)),
        (ElementType::Scalar, key) => unite(original, patch, key),
    }
}

enum ElementType {
    Object,
    Scalar,
}

/// The one type that all elements have.
fn element_type(original: &[Value], patch: &[Value]) -> Result<ElementType, PatchError> {
    let mut elements = original.iter().chain(patch);
    let first = elements.next().ok_or(PatchError::NoElements)?;
    if first.is_array() {
        return Err(PatchError::ListOfLists);
    }
    if first.is_null() || elements.any(|element| go_type(element) != go_type(first)) {
        let lists = format!("[{} {}]", go_text(original), go_text(patch));
        return Err(PatchError::MixedElementTypes { lists });
    }
    Ok(if first.is_object() {
        ElementType::Object
    } else {
        ElementType::Scalar
    })
}

fn subtract(original: Vec<Value>, unwanted: &[Value]) -> Vec<Value> {
    let unwanted: HashSet<String> = unwanted.iter().map(Value::to_string).collect();
    original
        .into_iter()
        .filter(|element| !unwanted.contains(&element.to_string()))
        .collect()
}

fn unite(original: Vec<Value>, patch: Vec<Value>, merge_key: Option<&str>) -> Result<Vec<Value>, PatchError> {
    let patch_order = Places::of(&patch, merge_key)?;
    let live_order = Places::of(&original, merge_key)?;
    let mut seen = HashSet::new();
    let united = original
        .into_iter()
        .chain(patch)
        .filter(|element| seen.insert(element.to_string()))
        .collect();
    order::arrange(united, &patch_order, &live_order, merge_key)
}

fn merge_keyed(
    original: Vec<Value>,
    patch: Vec<Value>,
    elements: Shape,
    key: &str,
) -> Result<Vec<Value>, PatchError> {
    let (original, patch) = carry_out_directives(original, patch, key)?;
    let patch_order = Places::of(&patch, Some(key))?;
    let live_order = lenient_places(&original, key);
    let mut places = live_order.clone();
    let mut merged = original;
    for element in patch {
        let identity = identity(&element, Some(key))?;
        match places.get(&identity) {
            Some(&place) => {
                let (Value::Object(old), Value::Object(new)) = (merged[place].take(), element) else {
                    unreachable!("element_type() found objects only");
                };
                merged[place] = Value::Object(merge_objects(old, new, elements)?);
            }
            None => {
                places.insert(identity, merged.len());
                merged.push(element);
            }
        }
    }
    order::arrange(merged, &patch_order, &Places::from(live_order), Some(key))
}

/// Elements without the key have no place; whether that matters shows when the merged list is put in order.
fn lenient_places(list: &[Value], key: &str) -> HashMap<String, usize> {
    let mut places = HashMap::with_capacity(list.len());
    for (place, element) in list.iter().enumerate() {
        if let Ok(identity) = identity(element, Some(key)) {
            places.entry(identity).or_insert(place);
        }
    }
    places
}

/// Deletes what elements with `$patch: delete` name, and takes the patch alone if any says `$patch: replace`.
fn carry_out_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    let mut deleted = HashSet::new();
    for mut element in patch {
        let directive = element.as_object_mut().map_or(Ok(None), Directive::take_from)?;
        match directive {
            None => plain.push(element),
            Some(Directive::Delete) => {
                deleted
                    .insert(identity(&element, Some(key)).map_err(|error| with_directive(error, &element))?);
            }
            Some(Directive::Replace) => replace = true,
            Some(Directive::Merge) => return Err(PatchError::MergeDirectiveInList),
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    original
        .retain(|element| !identity(element, Some(key)).is_ok_and(|identity| deleted.contains(&identity)));
    Ok((original, plain))
}

/// The error shows the element as the client wrote it.
fn with_directive(error: PatchError, element: &Value) -> PatchError {
    match error {
        PatchError::MissingMergeKey { key, .. } => {
            let mut whole = element.as_object().cloned().unwrap_or_default();
            whole.insert("$patch".to_owned(), Value::from("delete"));
            PatchError::MissingMergeKey {
                map: go_text(&whole).to_string(),
                key,
            }
        }
        other => other,
    }
}

/// Carries out every `$setElementOrder/f`, together with the patch's own `f` if there is one.
pub(super) fn merge_ordered_lists(
    original: &mut Object,
    patch: &mut Object,
    shape: Shape,
) -> Result<(), PatchError> {
    let mut ordered = Vec::new();
    for key in patch.keys() {
        if let Some(list) = directive::ordered_list_of(key)? {
            ordered.push((key.clone(), list.to_owned()));
        }
    }
    for (directive, list) in ordered {
        let order = as_list(patch.remove(&directive))?.unwrap_or_default();
        merge_ordered_list(original, patch, list, &order, shape)?;
    }
    Ok(())
}

fn merge_ordered_list(
    original: &mut Object,
    patch: &mut Object,
    list: String,
    order: &[Value],
    shape: Shape,
) -> Result<(), PatchError> {
    let live = as_list(original.get(&list).filter(|value| !value.is_null()).cloned())?;
    let change = as_list(patch.get(&list).cloned())?;
    let (elements, strategy) = shape.list_at(&list)?;
    check_order(change.as_deref().unwrap_or_default(), order, strategy.merge_key)?;
    let live_order = match strategy.merge_key {
        Some(key) => live_order(
            live.as_deref().unwrap_or_default(),
            change.as_deref().unwrap_or_default(),
            key,
        ),
        None => Places::of(live.as_deref().unwrap_or_default(), None)?,
    };
    element_type(
        live.as_deref().unwrap_or_default(),
        change.as_deref().unwrap_or_default(),
    )
    .or_else(|error| {
        if live.is_none() && change.is_none() {
            Ok(ElementType::Scalar)
        } else {
            Err(error)
        }
    })?;
    let merged = match (live, change) {
        (None, None) => return Ok(()),
        (Some(live), None) => live,
        (None, Some(change)) => change
            .into_iter()
            .filter_map(directive::without_directives)
            .collect(),
        (Some(live), Some(change)) => merge(live, change, elements, strategy, false)?,
    };
    let wanted = Places::of(order, strategy.merge_key)?;
    let arranged = order::arrange(merged, &wanted, &live_order, strategy.merge_key)?;
    patch.remove(&list);
    original.insert(list, Value::Array(arranged));
    Ok(())
}

/// The order of the live list as the merge leaves it: elements that the patch deletes make room at the end for as many
/// that it adds, so that what replaces an element does not come before those the patch does not know.
fn live_order(live: &[Value], patch: &[Value], key: &str) -> Places {
    let known = |element: &Value| identity(element, Some(key)).ok();
    let deleted: HashSet<_> = patch
        .iter()
        .filter(|element| Directive::deletes(element))
        .filter_map(known)
        .collect();
    let stays = |element: &&Value| known(element).is_none_or(|identity| !deleted.contains(&identity));
    let replaced = patch
        .iter()
        .any(|element| Directive::stands_in(element) && !Directive::deletes(element));
    if deleted.is_empty() || replaced {
        return Places::from(lenient_places(live, key));
    }
    let remaining: Vec<_> = live.iter().filter(stays).cloned().collect();
    let room = live.len() - remaining.len();
    let mut places = lenient_places(&remaining, key);
    let added = patch
        .iter()
        .filter(|element| !Directive::stands_in(element))
        .filter_map(known);
    let mut place = remaining.len();
    for identity in added {
        if place < remaining.len() + room && !places.contains_key(&identity) {
            places.insert(identity, place);
            place += 1;
        }
    }
    Places::from(places)
}

fn as_list(value: Option<Value>) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(PatchError::WrongType {
            expected: GO_LIST,
            actual: go_type(&other),
        }),
    }
}

/// The patch's elements must all be named by the order, and come in that order. Deletions need not be named.
fn check_order(patch: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    for element in patch {
        if merge_key.is_some() && (Directive::deletes(element) || Directive::stands_in(element)) {
            continue;
        }
        let found = identity(element, merge_key)?;
        let named = wanted
            .by_ref()
            .map(|name| identity(name, merge_key))
            .find(|name| match name {
                Ok(name) => *name == found,
                Err(_) => true,
            });
        match named {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
            None => {
                return Err(PatchError::OrderMismatch {
                    patch: go_text(patch).to_string(),
                    order: go_text(order).to_string(),
                });
            }
        }
    }
    Ok(())
}
