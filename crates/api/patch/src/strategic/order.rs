//! The order of a merged list.
//!
//! Elements the patch speaks of take the order the patch asks for, elements only the server has keep theirs, and the
//! two runs are woven together so that, as far as possible, nothing changes its place in the live list.

use std::collections::HashMap;

use serde_json::Value;

use super::go_text::{GO_OBJECT, go_text, go_type};
use crate::PatchError;

/// What identifies an element: the JSON text of its merge key, or of the scalar itself. Text, so that lists of any
/// length are matched through a hash table and not by comparing each with each.
pub(super) type Identity = String;

/// The identity of an element of a list.
pub(super) fn identity(element: &Value, merge_key: Option<&str>) -> Result<Identity, PatchError> {
    let Some(key) = merge_key else {
        return Ok(element.to_string());
    };
    let object = element.as_object().ok_or_else(|| PatchError::WrongType {
        expected: GO_OBJECT,
        actual: go_type(element),
    })?;
    let value = object.get(key);
    value
        .map(Value::to_string)
        .ok_or_else(|| PatchError::MissingMergeKey {
            map: go_text(object).to_string(),
            key: key.to_owned(),
        })
}

/// The first place of each element in a list.
pub(super) struct Places(HashMap<Identity, usize>);

impl From<HashMap<Identity, usize>> for Places {
    fn from(places: HashMap<Identity, usize>) -> Self {
        Self(places)
    }
}

impl Places {
    pub(super) fn of(list: &[Value], merge_key: Option<&str>) -> Result<Self, PatchError> {
        let mut places = HashMap::with_capacity(list.len());
        for (place, element) in list.iter().enumerate() {
            places.entry(identity(element, merge_key)?).or_insert(place);
        }
        Ok(Self(places))
    }

    pub(super) fn get(&self, identity: &str) -> Option<usize> {
        self.0.get(identity).copied()
    }
}

/// Puts a merged list in order: `patch_order` for what it names, `live_order` for the rest.
pub(super) fn arrange(
    merged: Vec<Value>,
    patch_order: &Places,
    live_order: &Places,
    merge_key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let mut patched = Vec::new();
    let mut server_only = Vec::new();
    for element in merged {
        let identity = identity(&element, merge_key)?;
        let live_place = live_order.get(&identity);
        match patch_order.get(&identity) {
            Some(place) => patched.push((Some(place), live_place, element)),
            None => server_only.push((live_place, live_place, element)),
        }
    }
    // What has no place comes last; the sort is stable, so such elements keep the order they came in.
    let by_place = |(place, _, _): &(Option<usize>, Option<usize>, Value)| place.unwrap_or(usize::MAX);
    patched.sort_by_key(by_place);
    server_only.sort_by_key(by_place);
    Ok(weave(server_only, patched))
}

type Placed = (Option<usize>, Option<usize>, Value);

/// An element only the server has goes in front of the next patched one if it stood in front of it in the live list.
fn weave(server_only: Vec<Placed>, patched: Vec<Placed>) -> Vec<Value> {
    let mut all = Vec::with_capacity(server_only.len() + patched.len());
    let mut server_only = server_only.into_iter().peekable();
    for (_, patched_place, element) in patched {
        let stands_before = |(_, place, _): &Placed| matches!((place, patched_place), (Some(left), Some(right)) if *left < right);
        while let Some((_, _, before)) = server_only.next_if(stands_before) {
            all.push(before);
        }
        all.push(element);
    }
    all.extend(server_only.map(|(_, _, element)| element));
    all
}
