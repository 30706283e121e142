//! What the kinds that make pods have in common.
//!
//! Rules follow `pkg/apis/apps/validation/validation.go` and `pkg/registry/apps`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use crate::{
    Column,
    fields::{Fields, set_absent},
    label_selector,
    pod::template,
    rules::{self, Errors, IMMUTABLE, child, label, not_negative},
    table,
};

pub(crate) const TEMPLATE: &str = "spec.template";
const SELECTOR: &str = "spec.selector";

pub(crate) const CONTAINERS: Column =
    table::wide("Containers", "string", "Names of the containers in the template.");
pub(crate) const IMAGES: Column =
    table::wide("Images", "string", "Images of the containers in the template.");
pub(crate) const SELECTOR_COLUMN: Column = table::wide("Selector", "string", "Which pods belong to it.");

/// How many old revisions are kept unless told otherwise.
pub(crate) const REVISION_HISTORY_LIMIT: i64 = 10;

/// Fills in the number of replicas.
pub(crate) fn default_replicas(spec: &mut Map<String, Value>) {
    set_absent(spec, "replicas", 1.into());
}

/// Checks a selector that must select something.
pub(crate) fn selector(errors: &mut Errors, spec: &Map<String, Value>, kind: &str) {
    let Some(held) = spec.member("selector") else {
        errors.push(FieldError::required(SELECTOR, ""));
        return;
    };
    let selector = spec.map("selector");
    label_selector::validate(errors, SELECTOR, selector);
    if label_selector::is_empty(selector) {
        let rule = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(SELECTOR, held.clone(), rule));
    }
}

/// Checks that the selector finds the pods that are made of the template; no selector finds nothing, an empty one
/// everything.
pub(crate) fn selector_matches_template(errors: &mut Errors, spec: &Map<String, Value>) {
    let selector = spec.map("selector");
    let metadata = spec.map("template").map("metadata");
    if spec.member("selector").is_none() || !label_selector::matches(selector, metadata.map("labels")) {
        errors.push(FieldError::invalid(
            "spec.template.metadata.labels",
            metadata.get("labels").cloned().unwrap_or_default(),
            "`selector` does not match template `labels`",
        ));
    }
}

/// Checks selector and template of replicas that run for ever.
pub(crate) fn template_of_replicas(errors: &mut Errors, spec: &Map<String, Value>) {
    let selector = spec.map("selector");
    if label_selector::is_valid(selector) {
        selector_matches_template(errors, spec);
        template::validate(errors, TEMPLATE, spec.map("template"));
        runs_for_ever(errors, spec, "ReplicaSet");
    } else {
        let value = Value::Object(selector.clone());
        errors.push(FieldError::invalid(SELECTOR, value, "invalid label selector"));
    }
}

/// Checks what pods that shall always run must be like.
pub(crate) fn runs_for_ever(errors: &mut Errors, spec: &Map<String, Value>, kind: &str) {
    let pod = spec.map("template").map("spec");
    let policy = pod.text("restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(
            "spec.template.spec.restartPolicy",
            policy,
            &["Always"],
        ));
    }
    if pod.member("activeDeadlineSeconds").is_some() {
        errors.push(FieldError::forbidden(
            "spec.template.spec.activeDeadlineSeconds",
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

/// Checks that a selector stays what it is.
pub(crate) fn selector_stays(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    let (new, old) = (new.map("spec").get("selector"), old.map("spec").get("selector"));
    if new != old {
        errors.push(FieldError::invalid(
            SELECTOR,
            new.cloned().unwrap_or_default(),
            IMMUTABLE,
        ));
    }
}

/// Checks that numbers below `path` are not below zero.
pub(crate) fn counts(errors: &mut Errors, path: &str, object: &Map<String, Value>, fields: &[&str]) {
    for field in fields {
        not_negative(errors, child(path, field), object.int(field));
    }
}

/// Checks that none of the parts in a status is more than the whole.
pub(crate) fn at_most(
    errors: &mut Errors,
    status: &Map<String, Value>,
    parts: &[&str],
    whole: &str,
    rule: &str,
) {
    let most = status.int(whole).unwrap_or_default();
    for part in parts {
        let count = status.int(part).unwrap_or_default();
        if count > most {
            errors.push(FieldError::invalid(child("status", part), count, rule));
        }
    }
}

/// Checks that the count of hash collisions only grows.
pub(crate) fn collisions_grow(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    let count = |object: &Map<String, Value>| object.map("status").int("collisionCount");
    if let Some(before) = count(old)
        && count(new).is_none_or(|now| now < before)
    {
        errors.push(FieldError::invalid(
            "status.collisionCount",
            count(new).unwrap_or_default(),
            "cannot be decremented",
        ));
    }
}

/// Warnings about a workload whose name becomes part of the names of its pods, and about its template.
pub(crate) fn warnings(object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
    let mut warnings = about_name(object, old);
    if is_news(object, old) {
        warnings.extend(template::warnings(TEMPLATE, object.map("spec").map("template")));
    }
    warnings
}

/// Whether what a warning would be about is new.
pub(crate) fn is_news(object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> bool {
    let generation = |object: &Map<String, Value>| object.map("metadata").int("generation");
    old.is_none_or(|old| generation(old) != generation(object))
}

/// Whether a controller has made it; what its owner was told is not said again to nobody.
pub(crate) fn is_controlled(object: &Map<String, Value>) -> bool {
    let owners = object.map("metadata").list("ownerReferences");
    owners.iter().any(|owner| owner.is_set("controller"))
}

/// A warning about a name that makes surprising names of pods.
pub(crate) fn about_name(object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
    let name_is_new = old.is_none();
    name_warning(object).into_iter().filter(|_| name_is_new).collect()
}

fn name_warning(object: &Map<String, Value>) -> Option<String> {
    let rules = label(object.map("metadata").text("name"));
    (!rules.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [{}]",
            rules.join(" ")
        )
    })
}

/// The cells of [`CONTAINERS`] and [`IMAGES`] for the template below `spec`.
pub(crate) fn container_cells(spec: &Map<String, Value>) -> [Value; 2] {
    let containers = spec.map("template").map("spec").list("containers");
    ["name", "image"].map(|field| {
        let texts: Vec<&str> = containers.iter().map(|one| one.text(field)).collect();
        texts.join(",").into()
    })
}

/// The cell of [`SELECTOR_COLUMN`].
pub(crate) fn selector_cell(spec: &Map<String, Value>) -> Value {
    match label_selector::text(spec.map("selector")) {
        None => "<error>".into(),
        Some(text) => table::or_none(&text),
    }
}

/// `2/3`, of counts that are zero when absent.
pub(crate) fn share(part: Option<i64>, whole: Option<i64>) -> Value {
    format!("{}/{}", part.unwrap_or_default(), whole.unwrap_or_default()).into()
}

/// A count, zero when absent.
pub(crate) fn count(object: &Map<String, Value>, field: &str) -> Value {
    object.int(field).unwrap_or_default().into()
}

/// Checks what a scale may ask for.
pub(crate) fn replicas(errors: &mut Errors, spec: &Map<String, Value>) {
    rules::not_negative(errors, "spec.replicas".to_owned(), spec.int("replicas"));
}
