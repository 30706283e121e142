//! What may change in a pod that exists: images, and very little else.
//!
//! Rules follow `ValidatePodUpdate` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36. Below the sentence about
//! forbidden changes upstream prints a difference of its structures; here are the paths that differ, without values.

use std::collections::BTreeSet;

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::spec;
use crate::{
    fields::{Fields, keep, list_mut},
    rules::{Errors, child, index, key},
};

const MAY_CHANGE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
/// Says that a pod is a node's own, which the API only shows.
pub(super) const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// Differences are named up to this many; a replaced pod differs everywhere.
const SHOWN_MAX: usize = 10;

/// Everything that is wrong with a change of a pod through its own path.
pub(super) fn validate(new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    spec::metadata_and_spec(&mut errors, new);
    mirror_annotation(&mut errors, new, old);
    let (new, old) = (new.map("spec"), old.map("spec"));
    for list in ["containers", "initContainers"] {
        if new.list(list).len() != old.list(list).len() {
            let path = child("spec", list);
            errors.push(FieldError::forbidden(
                path,
                "pod updates may not add or remove containers",
            ));
            return errors;
        }
    }
    if !deadline_shrinks(&mut errors, new, old) {
        return errors;
    }
    tolerations_grow(&mut errors, new, old);
    gates_shrink(&mut errors, new, old);
    if new != old {
        rest_stays(&mut errors, new, old);
    }
    errors
}

/// Whether this annotation, which says that a pod is a node's own, is left alone.
pub(super) fn mirror_annotation(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    let held = |pod: &Map<String, Value>| {
        let annotations = pod.map("metadata").map("annotations");
        annotations.get(MIRROR_ANNOTATION).cloned()
    };
    let rule = match (held(old), held(new)) {
        (Some(before), after) if after.as_ref() != Some(&before) => {
            "may not remove or update mirror pod annotation"
        }
        (None, Some(_)) => "may not add mirror pod annotation",
        _ => return,
    };
    errors.push(FieldError::forbidden(
        key("metadata.annotations", MIRROR_ANNOTATION),
        rule,
    ));
}

/// A deadline may be set and may come earlier; whether it makes sense to look on.
fn deadline_shrinks(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) -> bool {
    const FIELD: &str = "activeDeadlineSeconds";
    const PATH: &str = "spec.activeDeadlineSeconds";
    match (new.int(FIELD), old.int(FIELD)) {
        (Some(seconds), before) => {
            if !spec::deadline(errors, seconds, 0) {
                return false;
            }
            if before.is_some_and(|before| before < seconds) {
                let rule = "must be less than or equal to previous value";
                errors.push(FieldError::invalid(PATH, seconds, rule));
                return false;
            }
        }
        (None, Some(_)) => {
            let rule = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(PATH, Value::Null, rule));
        }
        (None, None) => {}
    }
    true
}

fn tolerations_grow(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    let without_time = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
        }
        toleration
    };
    let now: Vec<Value> = new.list("tolerations").iter().map(without_time).collect();
    if old
        .list("tolerations")
        .iter()
        .any(|before| !now.contains(&without_time(before)))
    {
        errors.push(FieldError::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    } else {
        spec::tolerations(errors, new.list("tolerations"));
    }
}

fn gates_shrink(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    for gate in new.list("schedulingGates") {
        if !old.list("schedulingGates").contains(gate) {
            errors.push(FieldError::forbidden(
                "spec.schedulingGates",
                format!(
                    "only deletion is allowed, but found new scheduling gate '{}'",
                    gate.text("name")
                ),
            ));
        }
    }
}

fn rest_stays(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    let mut munged = new.clone();
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut munged, old, field);
    }
    for list in ["containers", "initContainers"] {
        let before = old.list(list);
        let containers = list_mut(&mut munged, list).iter_mut();
        for (container, before) in containers.filter_map(Value::as_object_mut).zip(before) {
            if let Some(before) = before.as_object() {
                keep(container, before, "image");
            }
        }
    }
    let grace = "terminationGracePeriodSeconds";
    if old.int(grace).is_some_and(|seconds| seconds < 0) && munged.int(grace) == Some(1) {
        keep(&mut munged, old, grace);
    }
    // A pod that nobody has scheduled yet may still become pickier about its node.
    let is_gated = !old.list("schedulingGates").is_empty();
    if is_gated
        && old
            .map("nodeSelector")
            .iter()
            .all(|pair| munged.map("nodeSelector").get(pair.0) == Some(pair.1))
    {
        keep(&mut munged, old, "nodeSelector");
    }
    if munged != *old {
        let mut paths = BTreeSet::new();
        let (before, after) = (Value::Object(old.clone()), Value::Object(munged));
        differences(&mut paths, "spec", &before, &after);
        let mut shown: Vec<String> = paths.iter().take(SHOWN_MAX).cloned().collect();
        if paths.len() > SHOWN_MAX {
            shown.push(format!("and {} more", paths.len() - SHOWN_MAX));
        }
        errors.push(FieldError::forbidden(
            "spec",
            format!(
                "pod updates may not change fields other than {MAY_CHANGE}\nchanged: {}",
                shown.join(", ")
            ),
        ));
    }
}

/// The paths at which two values differ.
pub(super) fn differences(paths: &mut BTreeSet<String>, path: &str, old: &Value, new: &Value) {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let (before, after) = (before.get(name), after.get(name));
                if before != after {
                    let null = Value::Null;
                    let path = child(path, name);
                    differences(paths, &path, before.unwrap_or(&null), after.unwrap_or(&null));
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                if before != after {
                    differences(paths, &index(path, at), before, after);
                }
            }
        }
        _ => {
            paths.insert(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Strategy,
        pod::Pod,
        testing::{map, texts},
    };

    fn pod(with: Value) -> Map<String, Value> {
        let mut spec = map(json!({"containers": [{"name": "c", "image": "i:1"}]}));
        spec.extend(map(with));
        let mut pod = map(json!({ "spec": spec }));
        Pod.default(&mut pod);
        pod
    }

    #[test]
    fn little_may_change() {
        let changed = |paths: &str| {
            vec![format!(
                "spec: Forbidden: pod updates may not change fields other than {MAY_CHANGE}\nchanged: {paths}"
            )]
        };
        let toleration = json!({"key": "k", "operator": "Exists", "effect": "NoExecute"});
        let table = [
            (json!({}), json!({"containers": [{"name": "c", "image": "i:2", "imagePullPolicy": "IfNotPresent"}]}), vec![]),
            (json!({}), json!({"activeDeadlineSeconds": 5}), vec![]),
            (json!({}), json!({"tolerations": [toleration]}), vec![]),
            (
                json!({}),
                json!({"containers": [{"name": "c", "image": "i:1", "env": [{"name": "A", "value": "secret"}]}]}),
                changed("spec.containers[0].env"),
            ),
            (
                json!({}),
                json!({"hostname": "h", "nodeSelector": {"a": "b"}}),
                changed("spec.hostname, spec.nodeSelector"),
            ),
            (
                json!({}),
                json!({"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "i:1"}]}),
                vec!["spec.containers: Forbidden: pod updates may not add or remove containers".to_owned()],
            ),
            (
                json!({"activeDeadlineSeconds": 5}),
                json!({"activeDeadlineSeconds": 6}),
                vec![
                    "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value".to_owned(),
                ],
            ),
            (
                json!({"tolerations": [toleration]}),
                json!({}),
                vec![
                    "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
                        .to_owned(),
                ],
            ),
            (json!({"schedulingGates": [{"name": "a/b"}]}), json!({"nodeSelector": {"a": "b"}}), vec![]),
            (json!({"terminationGracePeriodSeconds": -1}), json!({"terminationGracePeriodSeconds": 1}), vec![]),
        ];
        for (old, new, wanted) in table {
            let found = texts(&Pod.validate_update(&pod(new.clone()), &pod(old), ""));
            assert_eq!(found, wanted, "{new}");
        }
    }
}
