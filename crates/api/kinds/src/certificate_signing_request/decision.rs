//! Approval, denial, failure: what conditions say, and which of them a write may change.

use std::fmt;

use hotmap_object::{FieldError, timestamp};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    fields::{Fields, list_mut},
    rules::{Errors, child, index},
};

const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
const FAILED: &str = "Failed";
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// What has become of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestState {
    /// Somebody has said yes.
    pub approved: bool,
    /// Somebody has said no, which wins.
    pub denied: bool,
    /// The signer cannot sign it.
    pub failed: bool,
    /// The certificate is there.
    pub issued: bool,
}

impl RequestState {
    /// Reads it from `status`.
    pub fn of(status: &Map<String, Value>) -> Self {
        let has = |kind: &str| {
            status
                .list("conditions")
                .iter()
                .any(|one| one.text("type") == kind)
        };
        Self {
            approved: has(APPROVED),
            denied: has(DENIED),
            failed: has(FAILED),
            issued: status.has("certificate"),
        }
    }
}

impl fmt::Display for RequestState {
    // As `kubectl get` shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.denied, self.approved) {
            (true, _) => "Denied",
            (false, true) => "Approved",
            (false, false) => "Pending",
        })?;
        if self.failed {
            f.write_str(",Failed")?;
        }
        if self.issued {
            f.write_str(",Issued")?;
        }
        Ok(())
    }
}

/// Gives new conditions the times they lack: the transition is that of the old condition of the same type and status,
/// if there is one.
pub fn fill_condition_times(new: &mut Map<String, Value>, old: &Map<String, Value>, now: Timestamp) {
    let before = old.map("status").list("conditions");
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    for condition in list_mut(status, "conditions") {
        let same = before.iter().find(|earlier| {
            earlier.text("type") == condition.text("type")
                && earlier.text("status") == condition.text("status")
        });
        let since = same.map(|same| same.text("lastTransitionTime").to_owned());
        let now = timestamp::seconds(now);
        let Some(condition) = condition.as_object_mut() else {
            continue;
        };
        for (field, time) in [
            ("lastUpdateTime", now.clone()),
            (
                "lastTransitionTime",
                since.filter(|since| !since.is_empty()).unwrap_or(now),
            ),
        ] {
            if !condition.has(field) {
                condition.insert(field.to_owned(), time.into());
            }
        }
    }
}

/// Who writes the status keeps approvals and denials as they are, unless their number changes: then validation
/// refuses.
pub(super) fn keep_decisions(new: &mut Map<String, Value>, old: &Map<String, Value>) {
    for kind in [APPROVED, DENIED] {
        let before: Vec<Value> = of_type(old, kind).cloned().collect();
        if before.len() != of_type(new, kind).count() {
            continue;
        }
        let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else {
            continue;
        };
        let held = list_mut(status, "conditions").iter_mut();
        let held = held.filter(|condition| condition.text("type") == kind);
        for (held, before) in held.zip(before) {
            *held = before;
        }
    }
}

pub(super) fn conditions(errors: &mut Errors, path: &str, conditions: &[Value]) {
    let (mut approved, mut denied) = (false, false);
    for (at, condition) in conditions.iter().enumerate() {
        let (kind, status) = (condition.text("type"), condition.text("status"));
        let item = index(path, at);
        if kind.is_empty() {
            errors.push(FieldError::required(child(&item, "type"), ""));
        }
        let allowed = if [APPROVED, DENIED, FAILED].contains(&kind) {
            &["True"]
        } else {
            STATUSES
        };
        if status.is_empty() {
            errors.push(FieldError::required(child(&item, "status"), ""));
        } else if !allowed.contains(&status) {
            errors.push(FieldError::not_supported(child(&item, "status"), status, allowed));
        }
        approved |= kind == APPROVED;
        denied |= kind == DENIED;
        if approved && denied && [APPROVED, DENIED].contains(&kind) {
            let rule = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(path, kind, rule));
        }
        if conditions[..at]
            .iter()
            .any(|earlier| earlier.text("type") == kind)
        {
            errors.push(FieldError::duplicate(child(&item, "type"), kind));
        }
    }
}

/// What this path may not change.
pub(super) fn update(
    errors: &mut Errors,
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    subresource: &str,
) {
    let path = "status.conditions";
    for kind in [APPROVED, DENIED, FAILED] {
        if of_type(new, kind).count() < of_type(old, kind).count() {
            let rule = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(path, rule));
        }
    }
    if subresource != "approval" {
        for kind in [APPROVED, DENIED] {
            let (before, after) = (of_type(old, kind).count(), of_type(new, kind).count());
            if after > before {
                let rule = format!("updates may not add a condition of type {kind:?}");
                errors.push(FieldError::forbidden(path, rule));
            } else if after == before && !of_type(new, kind).eq(of_type(old, kind)) {
                let rule = format!("updates may not modify a condition of type {kind:?}");
                errors.push(FieldError::forbidden(path, rule));
            }
        }
    }
    let (held, sent) = (
        old.map("status").text("certificate"),
        new.map("status").text("certificate"),
    );
    if held != sent {
        if subresource != "status" {
            let rule = "updates may not set certificate content";
            errors.push(FieldError::forbidden("status.certificate", rule));
        } else if !held.is_empty() {
            let rule = "updates may not modify existing certificate content";
            errors.push(FieldError::forbidden("status.certificate", rule));
        }
    }
}

fn of_type<'a>(object: &'a Map<String, Value>, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let conditions = object.map("status").list("conditions").iter();
    conditions.filter(move |condition| condition.text("type") == kind)
}
