//! Job: pods that run to their end.
//!
//! Rules follow `pkg/apis/batch/v1/defaults.go`, `pkg/apis/batch/validation/validation.go` and
//! `pkg/registry/batch/job/strategy.go`, Kubernetes 1.36. A Job that selects its pods itself, as all but a few do, is
//! given its selector and the labels of its template when it is created.

mod indexes;
mod policies;
mod selector;
mod spec;
mod status;
mod update;

pub(crate) use spec::{validate as validate_spec, warnings as spec_warnings};

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, list_mut, map_mut, set_absent, set_default},
    label_selector,
    pod::template,
    rules::{Errors, label},
    table, workload,
};

/// Pods of a Job that may fail before it fails, unless told otherwise.
const BACKOFF_LIMIT: i64 = 6;

/// The rules of Jobs.
pub(crate) struct Job;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Status", "string", "Where the job stands."),
    table::column(
        "Completions",
        "string",
        "Pods that have succeeded, of those wanted.",
    ),
    table::column("Duration", "string", "How long the job ran, or has been running."),
    table::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR_COLUMN,
];

impl Strategy for Job {
    fn default(&self, object: &mut Map<String, Value>) {
        let labels = object.map("spec").map("template").map("metadata").map("labels");
        if !labels.is_empty() && object.map("metadata").map("labels").is_empty() {
            let labels = labels.clone();
            if let Some(metadata) = map_mut(object, "metadata") {
                metadata.insert("labels".to_owned(), labels.into());
            }
        }
        if let Some(spec) = map_mut(object, "spec") {
            default_spec(spec);
        }
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        if !object.map("spec").is_set("manualSelector") {
            selector::generate(object);
        }
        object.insert("status".to_owned(), json!({}));
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, if subresource == "status" { "spec" } else { "status" });
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        whole(&mut errors, object, true);
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        subresource: &str,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if subresource == "status" {
            status::validate(&mut errors, new, old);
        } else {
            whole(&mut errors, new, selector::has_prefixed_labels(old));
            update::validate(&mut errors, new, old);
        }
        errors
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        if workload::is_controlled(object) {
            return Vec::new();
        }
        let mut warnings = workload::warnings(object, old);
        if workload::is_news(object, old) {
            warnings.extend(spec::warnings("spec", object.map("spec")));
        }
        warnings
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["status.successful"]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        let succeeded = object.map("status").int("succeeded").unwrap_or_default();
        vec![("status.successful", succeeded.to_string())]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (object.map("spec"), object.map("status"));
        let [containers, images] = workload::container_cells(spec);
        vec![
            table::name(object),
            word(object).into(),
            completions(spec, status).into(),
            duration(status, now).into(),
            table::age(object, now),
            containers,
            images,
            workload::selector_cell(spec),
        ]
    }
}

fn default_spec(spec: &mut Map<String, Value>) {
    if spec.member("completions").is_none() && spec.member("parallelism").is_none() {
        spec.insert("completions".to_owned(), 1.into());
    }
    set_absent(spec, "parallelism", 1.into());
    let limit = match spec.member("backoffLimitPerIndex") {
        None => BACKOFF_LIMIT,
        Some(_) => i64::from(i32::MAX),
    };
    set_absent(spec, "backoffLimit", limit.into());
    set_absent(spec, "completionMode", "NonIndexed".into());
    set_absent(spec, "suspend", false.into());
    let replacement = match spec.member("podFailurePolicy") {
        None => "TerminatingOrFailed",
        Some(_) => "Failed",
    };
    set_absent(spec, "podReplacementPolicy", replacement.into());
    set_absent(spec, "manualSelector", false.into());
    fill_in_template(spec);
}

/// Defaults that the template of a Job has below a CronJob as well.
pub(crate) fn fill_in_template(spec: &mut Map<String, Value>) {
    template::fill_in(spec);
    let Some(policy) = spec.get_mut("podFailurePolicy").and_then(Value::as_object_mut) else {
        return;
    };
    for rule in list_mut(policy, "rules")
        .iter_mut()
        .filter_map(Value::as_object_mut)
    {
        let patterns = list_mut(rule, "onPodConditions").iter_mut();
        for pattern in patterns.filter_map(Value::as_object_mut) {
            set_default(pattern, "status", "True");
        }
    }
}

fn whole(errors: &mut Errors, object: &Map<String, Value>, with_prefixed_labels: bool) {
    let spec = object.map("spec");
    selector::is_generated(errors, object, with_prefixed_labels);
    spec::validate(errors, "spec", spec);
    selects_its_pods(errors, spec);
    // Pods of an indexed Job carry their index in their host names; the last one is the longest.
    let completions = spec.int("completions").unwrap_or_default();
    if spec.text("completionMode") == "Indexed" && completions > 0 {
        let name = object.map("metadata").text("name");
        let longest = format!("{name}-{}", completions - 1);
        if !label(&longest).is_empty() {
            let rule = format!("will not able to create pod with invalid DNS label: {longest}");
            errors.push(FieldError::invalid("metadata.name", name, rule));
        }
    }
}

fn selects_its_pods(errors: &mut Errors, spec: &Map<String, Value>) {
    const SELECTOR: &str = "spec.selector";
    let selector = spec.map("selector");
    if spec.member("selector").is_none() {
        errors.push(FieldError::required(SELECTOR, ""));
    } else {
        label_selector::validate(errors, SELECTOR, selector);
    }
    if label_selector::is_valid(selector) {
        workload::selector_matches_template(errors, spec);
    }
}

fn word(job: &Map<String, Value>) -> &'static str {
    let status = job.map("status");
    let is_true = |condition| status::is_true(status, condition);
    if is_true("Complete") {
        "Complete"
    } else if is_true("Failed") {
        "Failed"
    } else if job.map("metadata").has("deletionTimestamp") {
        "Terminating"
    } else if is_true("Suspended") {
        "Suspended"
    } else if is_true("FailureTarget") {
        "FailureTarget"
    } else if is_true("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(spec: &Map<String, Value>, status: &Map<String, Value>) -> String {
    let succeeded = status.int("succeeded").unwrap_or_default();
    match (
        spec.int("completions"),
        spec.int("parallelism").unwrap_or_default(),
    ) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(status: &Map<String, Value>, now: Timestamp) -> String {
    let start = status.time("startTime");
    if start.is_none() {
        return String::new();
    }
    table::ago(start, status.time("completionTime").unwrap_or(now))
}

#[cfg(test)]
mod tests;
