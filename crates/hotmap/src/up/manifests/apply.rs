//! Applies one object as `kubectl apply` would.
//!
//! What a file said the last time is kept in the annotation that kubectl uses, so that a field taken out of the file goes
//! from the object too, and kubectl can go on from there (ADR 10).

use hotmap_client::{Client, ClientError, PatchType, RawObject, WriteParams};
use serde_json::{Map, Value, json};

use super::target::{Reference, Target};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const FIELD_MANAGER: &str = "hotmap-up";

/// An object is as its manifest says.
#[derive(Debug)]
pub(in crate::up) struct Applied {
    pub(super) target: Target,
    pub(super) reference: Reference,
    pub(super) uid: String,
    pub(super) outcome: Outcome,
}

/// What had to be done for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Configured,
    Unchanged,
}

impl Applied {
    /// As kubectl says it.
    pub(super) fn line(&self) -> String {
        let outcome = match self.outcome {
            Outcome::Created => "created",
            Outcome::Configured => "configured",
            Outcome::Unchanged => "unchanged",
        };
        format!("{} {outcome}", self.target.printed)
    }
}

/// # Errors
/// A sentence that names the object. [`is_final`] tells those that do not get better by themselves.
pub(super) async fn apply(client: &Client, mut wanted: Value) -> anyhow::Result<Applied> {
    let reference = Reference::of(&wanted);
    let target = Target::of(&reference)?;
    let written = wanted.to_string();
    // A scalar in the place of a map is the server's to refuse, with the words for it.
    if let Some(annotations) = annotations(&mut wanted) {
        annotations.insert(LAST_APPLIED.to_owned(), written.clone().into());
    }
    let write = WriteParams {
        field_manager: FIELD_MANAGER.to_owned(),
        field_validation: "Strict",
        ..WriteParams::default()
    };
    let (held, outcome) = match client.get(&target.object()).await {
        Err(error) if error.is_not_found() => {
            let created = client.create(&target.collection, &wanted, &write).await;
            (created, Outcome::Created)
        }
        Err(error) => return Err(target.refused(error)),
        Ok(held) => {
            let current: Value = held.parse()?;
            let last = current["metadata"]["annotations"][LAST_APPLIED].as_str();
            if last == Some(&written) {
                (Ok(held), Outcome::Unchanged)
            } else {
                (
                    patch(client, &target, last, &wanted, &write).await,
                    Outcome::Configured,
                )
            }
        }
    };
    match held {
        Ok(held) => Ok(Applied {
            uid: held.uid().to_owned(),
            target,
            reference,
            outcome,
        }),
        Err(error) => Err(target.refused(error)),
    }
}

async fn patch(
    client: &Client,
    target: &Target,
    last: Option<&str>,
    wanted: &Value,
    write: &WriteParams,
) -> Result<RawObject, ClientError> {
    let last = last
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Value::Null);
    let patch = overlaid(removals(&last, wanted), wanted);
    client
        .patch(&target.object(), PatchType::StrategicMerge, &patch, write)
        .await
}

/// Whether the same manifest is refused again for as long as it is the same: its content is wrong.
pub(super) fn is_final(error: &anyhow::Error) -> bool {
    let answer = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<ClientError>());
    match answer {
        None => true,
        Some(error) => error
            .status()
            .is_some_and(|status| matches!(status.code, 400 | 405 | 413 | 415 | 422)),
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = json!({});
    }
    annotations.as_object_mut()
}

/// A merge patch that takes away what `last` had and `wanted` has no more.
fn removals(last: &Value, wanted: &Value) -> Value {
    let (Value::Object(last), Value::Object(wanted)) = (last, wanted) else {
        return json!({});
    };
    let mut patch = Map::new();
    for (key, held) in last {
        match wanted.get(key) {
            None => drop(patch.insert(key.clone(), Value::Null)),
            Some(still) if held.is_object() => {
                let below = removals(held, still);
                if below.as_object().is_some_and(|below| !below.is_empty()) {
                    patch.insert(key.clone(), below);
                }
            }
            Some(_) => {}
        }
    }
    patch.into()
}

/// `wanted` over a patch of removals.
fn overlaid(patch: Value, wanted: &Value) -> Value {
    match (patch, wanted) {
        (Value::Object(mut patch), Value::Object(wanted)) => {
            for (key, value) in wanted {
                let below = patch.remove(key).unwrap_or(Value::Null);
                patch.insert(key.clone(), overlaid(below, value));
            }
            patch.into()
        }
        (_, wanted) => wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_the_file_leaves_the_object() {
        let last = json!({"data": {"a": "1", "b": "2"}, "immutable": false});
        let wanted = json!({"data": {"a": "3"}, "metadata": {"name": "x"}});
        let patch = overlaid(removals(&last, &wanted), &wanted);
        assert_eq!(
            patch,
            json!({"data": {"a": "3", "b": null}, "immutable": null, "metadata": {"name": "x"}})
        );
    }

    #[test]
    fn annotations_are_made_where_none_are() {
        for (object, has_place) in [
            (json!({"metadata": {"name": "a"}}), true),
            (json!({"metadata": {"annotations": null}}), true),
            (json!({"metadata": {"annotations": {"b": "c"}}}), true),
            (json!({"metadata": {"annotations": "text"}}), false),
            (json!({"metadata": "text"}), false),
        ] {
            let mut object = object;
            assert_eq!(annotations(&mut object).is_some(), has_place, "{object}");
        }
    }
}
