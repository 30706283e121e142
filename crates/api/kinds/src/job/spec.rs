//! The spec of a Job, of its own or below a CronJob.
//!
//! Rules follow `validateJobSpec` in `pkg/apis/batch/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::policies;
use crate::{
    fields::Fields,
    pod::template,
    rules::{Errors, broken, child, subdomain},
    workload,
};

const PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Indexed Jobs with a limit per index and more completions than this must keep their lists of indexes short.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const MANY_COMPLETIONS_PARALLELISM_MAX: i64 = 10_000;
const MANY_COMPLETIONS_FAILED_MAX: i64 = 10_000;
const MANAGED_BY_MAX: usize = 63;

/// Checks a spec at `path`, its selector apart.
pub(crate) fn validate(errors: &mut Errors, path: &str, spec: &Map<String, Value>) {
    const COUNTS: &[&str] = &[
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    workload::counts(errors, path, spec, COUNTS);
    if spec.member("maxFailedIndexes").is_some() && spec.member("backoffLimitPerIndex").is_none() {
        let path = child(path, "backoffLimitPerIndex");
        errors.push(FieldError::required(path, "when maxFailedIndexes is specified"));
    }
    if let Some(manager) = spec.member("managedBy").and_then(Value::as_str) {
        managed_by(errors, &child(path, "managedBy"), manager);
    }
    match spec.text("completionMode") {
        "Indexed" => indexed(errors, path, spec),
        "" | "NonIndexed" => not_indexed(errors, path, spec),
        other => errors.push(FieldError::not_supported(
            child(path, "completionMode"),
            other,
            &["NonIndexed", "Indexed"],
        )),
    }
    policies::failure(errors, &child(path, "podFailurePolicy"), spec);
    policies::success(errors, &child(path, "successPolicy"), spec);
    policies::replacement(errors, &child(path, "podReplacementPolicy"), spec);
    template::validate(errors, &child(path, "template"), spec.map("template"));
    restart_policy(errors, &child(path, "template.spec.restartPolicy"), spec);
}

/// Warnings about what a spec asks for and will hardly want.
pub(crate) fn warnings(path: &str, spec: &Map<String, Value>) -> Vec<String> {
    let number = |field| spec.int(field).unwrap_or_default();
    let is_large = spec.text("completionMode") == "Indexed"
        && number("completions") > 100_000
        && number("parallelism") > 10_000;
    let mut warnings = Vec::new();
    if is_large {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    warnings
}

fn indexed(errors: &mut Errors, path: &str, spec: &Map<String, Value>) {
    let [completions, parallelism, failed] =
        ["completions", "parallelism", "maxFailedIndexes"].map(|field| spec.int(field));
    let at_most = |errors: &mut Errors, field: &str, count: Option<i64>, most: i64, when: &str| {
        if let Some(count) = count.filter(|count| *count > most) {
            let rule = format!("must be less than or equal to {most}{when}");
            errors.push(FieldError::invalid(child(path, field), count, rule));
        }
    };
    if completions.is_none() {
        let path = child(path, "completions");
        errors.push(FieldError::required(path, "when completion mode is Indexed"));
    }
    let when = " when completion mode is Indexed";
    at_most(errors, "parallelism", parallelism, PARALLELISM_MAX, when);
    if let (Some(completions), Some(failed)) = (completions, failed)
        && failed > completions
    {
        let rule = "must be less than or equal to completions";
        errors.push(FieldError::invalid(child(path, "maxFailedIndexes"), failed, rule));
    }
    at_most(errors, "maxFailedIndexes", failed, FAILED_INDEXES_MAX, "");
    let is_many = completions.is_some_and(|completions| completions > COMPLETIONS_SOFT_MAX);
    if !is_many || spec.member("backoffLimitPerIndex").is_none() {
        return;
    }
    if failed.is_none() {
        let rule = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
        errors.push(FieldError::required(child(path, "maxFailedIndexes"), rule));
    }
    let when =
        format!(" when completions are above {COMPLETIONS_SOFT_MAX} and used with backoff limit per index");
    at_most(
        errors,
        "parallelism",
        parallelism,
        MANY_COMPLETIONS_PARALLELISM_MAX,
        &when,
    );
    at_most(
        errors,
        "maxFailedIndexes",
        failed,
        MANY_COMPLETIONS_FAILED_MAX,
        &when,
    );
}

fn not_indexed(errors: &mut Errors, path: &str, spec: &Map<String, Value>) {
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if let Some(count) = spec.int(field) {
            let rule = "requires indexed completion mode";
            errors.push(FieldError::invalid(child(path, field), count, rule));
        }
    }
}

fn managed_by(errors: &mut Errors, path: &str, manager: &str) {
    match manager.split_once('/') {
        _ if manager.is_empty() => errors.push(FieldError::required(path, "")),
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            broken(errors, path, host, subdomain(host));
            if !rest.bytes().all(is_path_byte) {
                errors.push(FieldError::invalid(
                    path,
                    rest,
                    "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
                ));
            }
        }
        _ => {
            let rule = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, manager, rule));
        }
    }
    if manager.len() > MANAGED_BY_MAX {
        errors.push(FieldError::too_long(path, MANAGED_BY_MAX));
    }
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)
}

fn restart_policy(errors: &mut Errors, path: &str, spec: &Map<String, Value>) {
    match spec.map("template").map("spec").text("restartPolicy") {
        "" | "Always" => errors.push(FieldError::required(
            path,
            "valid values: \"OnFailure\", \"Never\"",
        )),
        "OnFailure" if spec.member("podFailurePolicy").is_some() => {
            errors.push(FieldError::invalid(
                path,
                "OnFailure",
                "only \"Never\" is supported when podFailurePolicy is specified",
            ));
        }
        "OnFailure" | "Never" => {}
        other => errors.push(FieldError::not_supported(path, other, &["OnFailure", "Never"])),
    }
}
