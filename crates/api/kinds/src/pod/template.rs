//! Pod templates: what workloads make their pods of.
//!
//! Rules follow `ValidatePodTemplateSpec` in `pkg/apis/core/validation/validation.go` and `SetDefaults_PodSpec` in
//! `pkg/apis/core/v1/defaults.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::{defaults, spec, warnings};
use crate::{
    fields::{Fields, map_mut},
    metadata,
    rules::{Errors, child},
};

/// Fills in the template below `owner`, the spec of a workload.
pub(crate) fn fill_in(owner: &mut Map<String, Value>) {
    if let Some(template) = map_mut(owner, "template") {
        // Shown in every object, empty or not.
        map_mut(template, "metadata");
        if let Some(spec) = map_mut(template, "spec") {
            defaults::fill_in_spec(spec);
        }
    }
}

/// Checks a template at `path`.
pub(crate) fn validate(errors: &mut Errors, path: &str, template: &Map<String, Value>) {
    let (fields, spec) = (template.map("metadata"), template.map("spec"));
    let annotations = child(path, "annotations");
    metadata::labels(errors, &child(path, "labels"), fields.map("labels"));
    metadata::annotations(errors, &annotations, fields.map("annotations"));
    spec::mirrors_have_a_node(errors, &annotations, fields.map("annotations"), spec);
    let mut found = Vec::new();
    spec::validate(&mut found, spec, spec::Of::Template);
    // The rules of pods know one path of a spec: their own.
    errors.extend(found.into_iter().map(|error| FieldError {
        field: child(path, &error.field),
        ..error
    }));
    if spec.has("ephemeralContainers") {
        errors.push(FieldError::forbidden(
            child(path, "spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        ));
    }
}

/// Warnings about a template at `path`.
pub(crate) fn warnings(path: &str, template: &Map<String, Value>) -> Vec<String> {
    warnings::of_spec(&child(path, "spec"), template.map("spec"))
}
