//! The selector that a Job is given, and the labels of its pods that go with it.
//!
//! Rules follow `generateSelector` in `pkg/registry/batch/job/strategy.go` and `validateGeneratedSelector` in
//! `pkg/apis/batch/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value, json};

use crate::{
    fields::{Fields, map_mut},
    label_selector,
    rules::{Errors, key},
};

const NAME: &str = "batch.kubernetes.io/job-name";
const UID: &str = "batch.kubernetes.io/controller-uid";
/// Spellings from before labels of the project had a prefix.
const OLD_NAME: &str = "job-name";
const OLD_UID: &str = "controller-uid";

/// Labels the template with name and uid of the Job, and selects by the uid. Labels that are there stay: if they are
/// wrong, the Job is refused.
pub(super) fn generate(job: &mut Map<String, Value>) {
    let metadata = job.map("metadata");
    let (name, uid) = (metadata.text("name").to_owned(), metadata.text("uid").to_owned());
    let Some(spec) = map_mut(job, "spec") else { return };
    let labels = map_mut(spec, "template")
        .and_then(|template| map_mut(template, "metadata"))
        .and_then(|metadata| map_mut(metadata, "labels"));
    if let Some(labels) = labels {
        for (key, value) in [(OLD_NAME, &name), (NAME, &name), (OLD_UID, &uid), (UID, &uid)] {
            labels.entry(key).or_insert_with(|| value.as_str().into());
        }
    }
    let labels = map_mut(spec, "selector").and_then(|selector| map_mut(selector, "matchLabels"));
    if let Some(labels) = labels {
        labels.entry(UID).or_insert(uid.into());
    }
}

/// Whether the template has the labels with a prefix, which Jobs of old releases have not.
pub(super) fn has_prefixed_labels(job: &Map<String, Value>) -> bool {
    let labels = job.map("spec").map("template").map("metadata").map("labels");
    labels.contains_key(NAME) && labels.contains_key(UID)
}

/// Checks that selector and labels are those of this Job.
pub(super) fn is_generated(errors: &mut Errors, job: &Map<String, Value>, with_prefixed_labels: bool) {
    let (metadata, spec) = (job.map("metadata"), job.map("spec"));
    if spec.is_set("manualSelector") || spec.member("selector").is_none() {
        return;
    }
    let (name, uid) = (metadata.text("name"), metadata.text("uid"));
    if uid.is_empty() {
        errors.push(FieldError::required("metadata.uid", ""));
    }
    let mut wanted = vec![(OLD_UID, uid), (OLD_NAME, name)];
    if with_prefixed_labels {
        wanted.extend([(UID, uid), (NAME, name)]);
    }
    let labels = spec.map("template").map("metadata").map("labels");
    for (label, value) in &wanted {
        let path = key("spec.template.metadata.labels", label);
        let rule = format!("must be '{value}'");
        match labels.get(*label) {
            None => errors.push(FieldError::required(path, rule)),
            Some(held) if *held != json!(value) => {
                errors.push(FieldError::invalid(path, Value::Object(labels.clone()), rule));
            }
            Some(_) => {}
        }
    }
    let selector = spec.map("selector");
    let generated = wanted
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value.into()));
    if label_selector::is_valid(selector) && !label_selector::matches(selector, &generated.collect()) {
        errors.push(FieldError::invalid(
            "spec.selector",
            Value::Object(selector.clone()),
            "`selector` not auto-generated",
        ));
    }
}
