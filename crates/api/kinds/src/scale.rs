//! Scale: the part of a workload that says how many pods it has, in one shape for all kinds.
//!
//! Rules follow `ScaleREST` in `pkg/registry/apps/deployment/storage/storage.go` and
//! `pkg/apis/autoscaling/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use crate::{
    fields::{Fields, map_mut},
    find, label_selector, validate_metadata,
    workload::replicas,
};

/// The `autoscaling/v1` Scale of a Deployment, ReplicaSet or StatefulSet.
///
/// A selector that cannot be evaluated is shown as the empty text, which only objects that were never checked have.
pub fn scale_of(workload: &Map<String, Value>) -> Map<String, Value> {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = workload.map("metadata").member(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    match workload.map("spec").int("replicas") {
        None | Some(0) => {}
        Some(replicas) => {
            spec.insert("replicas".to_owned(), replicas.into());
        }
    }
    let mut status = Map::new();
    let current = workload.map("status").int("replicas").unwrap_or_default();
    status.insert("replicas".to_owned(), current.into());
    let selector = label_selector::text(workload.map("spec").map("selector")).unwrap_or_default();
    if !selector.is_empty() {
        status.insert("selector".to_owned(), selector.into());
    }
    Map::from_iter([
        ("kind".to_owned(), "Scale".into()),
        ("apiVersion".to_owned(), "autoscaling/v1".into()),
        ("metadata".to_owned(), metadata.into()),
        ("spec".to_owned(), spec.into()),
        ("status".to_owned(), status.into()),
    ])
}

/// Everything that is wrong with a scale that somebody wants.
pub fn validate_scale(scale: &Map<String, Value>) -> Vec<FieldError> {
    // The rule of names is the one of all kinds that have a scale.
    let deployments = find("apps", "v1", "deployments").expect("deployments are served");
    let mut errors = validate_metadata(scale, deployments);
    replicas(&mut errors, scale.map("spec"));
    errors
}

/// Gives the workload the number of replicas of the scale, and the revision that the scale is about.
pub fn set_scale(workload: &mut Map<String, Value>, scale: &Map<String, Value>) {
    let replicas = scale.map("spec").int("replicas").unwrap_or_default();
    if let Some(spec) = map_mut(workload, "spec") {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let revision = scale.map("metadata").text("resourceVersion");
    if let Some(metadata) = map_mut(workload, "metadata") {
        metadata.insert("resourceVersion".to_owned(), revision.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn a_scale_shows_replicas_and_the_selector_as_text() {
        let mut deployment = map(json!({
            "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "2", "a": "1"}}}, "status": {"replicas": 2}}));
        let mut scale = scale_of(&deployment);
        assert_eq!(
            Value::Object(scale.clone()),
            json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "7"},
                "spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "a=1,b=2"}})
        );
        scale.insert("spec".to_owned(), json!({}));
        set_scale(&mut deployment, &scale);
        assert_eq!(deployment["spec"]["replicas"], 0);
        assert_eq!(scale_of(&deployment)["spec"], json!({}));
    }

    #[test]
    fn nobody_scales_below_zero() {
        let scale = map(json!({"metadata": {"name": "d", "namespace": "n"}, "spec": {"replicas": -1}}));
        assert_eq!(
            texts(&validate_scale(&scale)),
            ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]
        );
    }
}
