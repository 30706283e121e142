//! What may change in a Job that exists.
//!
//! Rules follow `ValidateJobSpecUpdate` in `pkg/apis/batch/validation/validation.go` and `validationOptionsForJob` in
//! `pkg/registry/batch/job/strategy.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::status::is_true;
use crate::{
    fields::{Fields, keep, list_mut, map_mut},
    rules::{Errors, IMMUTABLE, child},
};

const TEMPLATE: &str = "spec.template";

/// Checks a change of the spec; what holds of the new one alone is checked elsewhere.
pub(super) fn validate(errors: &mut Errors, new: &Map<String, Value>, old_job: &Map<String, Value>) {
    let (new, old) = (new.map("spec"), old_job.map("spec"));
    completions(errors, new, old);
    stays(errors, new, old, "selector");
    template(errors, new, old_job);
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        stays(errors, new, old, field);
    }
}

fn stays(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>, field: &str) {
    if new.member(field) != old.member(field) {
        let value = new.member(field).cloned().unwrap_or_default();
        errors.push(FieldError::invalid(child("spec", field), value, IMMUTABLE));
    }
}

/// An indexed Job may grow and shrink, together with its parallelism.
fn completions(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    if new.text("completionMode") != "Indexed" {
        stays(errors, new, old, "completions");
        return;
    }
    let (wanted, before) = (new.int("completions"), old.int("completions"));
    if let Some(wanted) = wanted.filter(|_| wanted != before)
        && Some(wanted) != new.int("parallelism")
    {
        errors.push(FieldError::invalid(
            "spec.completions",
            wanted,
            "can only be modified in tandem with spec.parallelism",
        ));
    }
}

/// The template stays, but for where pods go and what they need while the Job is suspended and has none.
fn template(errors: &mut Errors, new: &Map<String, Value>, old_job: &Map<String, Value>) {
    let (status, old) = (old_job.map("status"), old_job.map("spec"));
    let is_suspended = old.is_set("suspend");
    let has_no_pods = (!status.has("startTime") || is_true(status, "Suspended"))
        && status.int("active").unwrap_or_default() == 0;
    let new = new.map("template");
    let mut allowed = old.map("template").clone();
    if is_suspended && has_no_pods {
        allow_scheduling(&mut allowed, new);
        allow_resources(&mut allowed, new);
    }
    if *new == allowed {
        return;
    }
    let (path, value) = match is_suspended && has_no_pods {
        true => (child(TEMPLATE, "spec"), new.map("spec").clone()),
        false => (TEMPLATE.to_owned(), new.clone()),
    };
    errors.push(FieldError::invalid(path, Value::Object(value), IMMUTABLE));
}

fn allow_scheduling(allowed: &mut Map<String, Value>, new: &Map<String, Value>) {
    if let Some(metadata) = map_mut(allowed, "metadata") {
        for field in ["annotations", "labels"] {
            keep(metadata, new.map("metadata"), field);
        }
    }
    let (spec, Some(allowed)) = (new.map("spec"), map_mut(allowed, "spec")) else {
        return;
    };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        keep(allowed, spec, field);
    }
    if let Some(affinity) = map_mut(allowed, "affinity") {
        keep(affinity, spec.map("affinity"), "nodeAffinity");
        if affinity.is_empty() && spec.map("affinity").is_empty() {
            keep(allowed, spec, "affinity");
        }
    }
}

fn allow_resources(allowed: &mut Map<String, Value>, new: &Map<String, Value>) {
    let (spec, Some(allowed)) = (new.map("spec"), map_mut(allowed, "spec")) else {
        return;
    };
    for list in ["containers", "initContainers"] {
        let wanted = spec.list(list);
        let held = list_mut(allowed, list);
        if wanted.len() != held.len() {
            continue;
        }
        for (held, wanted) in held.iter_mut().filter_map(Value::as_object_mut).zip(wanted) {
            if let Some(wanted) = wanted.as_object()
                && held.text("name") == wanted.text("name")
            {
                keep(held, wanted, "resources");
            }
        }
    }
}
