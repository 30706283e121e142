//! What the status of a Job may say, and how it may change: whoever reads it relies on an end being an end.
//!
//! Rules follow `ValidateJobStatusUpdate` in `pkg/apis/batch/validation/validation.go` and `getStatusValidationOptions`
//! in `pkg/registry/batch/job/strategy.go`, Kubernetes 1.36. Most rules look only at what changes, so that a write is not
//! refused for something it has not touched.

use std::collections::BTreeSet;

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::indexes;
use crate::{
    fields::Fields,
    rules::{Errors, child, index},
    workload,
};

const CONDITIONS: &str = "status.conditions";

/// Whether a condition is true.
pub(super) fn is_true(status: &Map<String, Value>, condition: &str) -> bool {
    has_condition(status, condition, "True")
}

fn has_condition(status: &Map<String, Value>, condition: &str, value: &str) -> bool {
    let mut conditions = status.list("conditions").iter();
    conditions.any(|one| one.text("type") == condition && one.text("status") == value)
}

/// Checks a status and its change.
pub(super) fn validate(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    let (spec, new, old) = (new.map("spec"), new.map("status"), old.map("status"));
    workload::counts(
        errors,
        "status",
        new,
        &["active", "succeeded", "failed", "ready", "terminating"],
    );
    uncounted(errors, new.map("uncountedTerminatedPods"));
    let change = Change { spec, new, old };
    change.ends(errors);
    change.times(errors);
    change.counters(errors);
    change.indexes(errors);
}

fn uncounted(errors: &mut Errors, uncounted: &Map<String, Value>) {
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        let path = child("status.uncountedTerminatedPods", list);
        for (at, uid) in uncounted.list(list).iter().enumerate() {
            let uid = uid.as_str().unwrap_or_default();
            if uid.is_empty() {
                errors.push(FieldError::invalid(index(&path, at), "", "must not be empty"));
            } else if !seen.insert(uid) {
                errors.push(FieldError::duplicate(index(&path, at), uid));
            }
        }
    }
}

struct Change<'a> {
    spec: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    old: &'a Map<String, Value>,
}

impl Change<'_> {
    fn is_finished(status: &Map<String, Value>) -> bool {
        is_true(status, "Complete") || is_true(status, "Failed")
    }

    fn turns(&self, condition: &str) -> bool {
        is_true(self.new, condition) != is_true(self.old, condition)
    }

    fn changes(&self, field: &str) -> bool {
        self.new.member(field) != self.old.member(field)
    }

    fn finishes(&self) -> bool {
        Self::is_finished(self.new) != Self::is_finished(self.old)
    }

    /// Conditions that exclude or need each other.
    fn ends(&self, errors: &mut Errors) {
        let now = |condition| is_true(self.new, condition);
        let [complete, failed, target, met] =
            ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(now);
        let was_met = is_true(self.old, "SuccessCriteriaMet");
        let is_completing = self.turns("Complete");
        let mut broken = vec![
            (
                complete && failed && (is_completing || self.turns("Failed")),
                "cannot set Complete=True and Failed=true conditions",
            ),
            (
                complete && target && (is_completing || self.turns("FailureTarget")),
                "cannot set Complete=True and FailureTarget=true conditions",
            ),
            (
                failed && !target && (self.turns("Failed") || self.changes("failedIndexes")),
                "cannot set Failed=True condition without the FailureTarget=true condition",
            ),
            (
                complete && !met && (is_completing || self.turns("SuccessCriteriaMet")),
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            ),
            (
                met && failed,
                "cannot set SuccessCriteriaMet=True and Failed=true conditions",
            ),
            (
                met && target,
                "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
            ),
            (
                self.spec.member("successPolicy").is_some() && !met && complete,
                "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
            ),
            (
                was_met && !met,
                "cannot disable the SuccessCriteriaMet=True condition",
            ),
            (
                is_true(self.old, "Complete") && !was_met && met,
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            ),
        ];
        for (condition, rule) in [
            ("Failed", "cannot disable the terminal Failed=True condition"),
            ("Complete", "cannot disable the terminal Complete=True condition"),
            (
                "FailureTarget",
                "cannot disable the terminal FailureTarget=True condition",
            ),
        ] {
            broken.push((is_true(self.old, condition) && !now(condition), rule));
        }
        let broken = broken.into_iter().filter(|(is_broken, _)| *is_broken);
        errors.extend(broken.map(|(_, rule)| FieldError::invalid(CONDITIONS, Value::Null, rule)));
    }

    fn times(&self, errors: &mut Errors) {
        const START: &str = "status.startTime";
        const COMPLETION: &str = "status.completionTime";
        let complete = is_true(self.new, "Complete");
        let [start, completion] = ["startTime", "completionTime"].map(|field| self.new.member(field));
        let shown = |value: Option<&Value>| value.cloned().unwrap_or_default();
        let is_at_stake = self.turns("Complete") || self.changes("completionTime");
        if is_at_stake && completion.is_some() && !complete {
            let rule = "cannot set completionTime when there is no Complete=True condition";
            errors.push(FieldError::invalid(COMPLETION, shown(completion), rule));
        }
        if is_at_stake && completion.is_none() && complete {
            let rule = "completionTime is required for Complete jobs";
            errors.push(FieldError::required(COMPLETION, rule));
        }
        if (self.changes("startTime") || self.changes("completionTime"))
            && let (Some(start), Some(end)) = (self.new.time("startTime"), self.new.time("completionTime"))
            && end < start
        {
            let rule = "must be equal to or after `startTime`";
            errors.push(FieldError::invalid(COMPLETION, shown(completion), rule));
        }
        let never_starts = self.spec.is_set("suspend") && self.spec.int("completions") == Some(0);
        if start.is_none()
            && Self::is_finished(self.new)
            && (self.finishes() || self.changes("startTime"))
            && !never_starts
        {
            errors.push(FieldError::required(
                START,
                "startTime is required for finished job",
            ));
        }
        if completion.is_some() && self.old.has("completionTime") && self.changes("completionTime") {
            errors.push(FieldError::invalid(
                COMPLETION,
                shown(completion),
                "field is immutable",
            ));
        }
        let resumes = is_true(self.old, "Suspended") && has_condition(self.new, "Suspended", "False");
        if self.old.has("startTime") && self.changes("startTime") && !resumes && !self.spec.is_set("suspend")
        {
            let rule = "field is immutable for unsuspended job once set";
            errors.push(FieldError::invalid(START, shown(start), rule));
        }
    }

    fn counters(&self, errors: &mut Errors) {
        let count = |status: &Map<String, Value>, field| status.int(field).unwrap_or_default();
        let is_finished = Self::is_finished(self.new);
        for (field, rule) in [
            ("active", "active>0 is invalid for finished job"),
            ("terminating", "terminating>0 is invalid for finished job"),
        ] {
            let number = count(self.new, field);
            if number > 0 && is_finished && (self.finishes() || self.changes(field)) {
                errors.push(FieldError::invalid(child("status", field), number, rule));
            }
        }
        let uncounted = self.new.map("uncountedTerminatedPods");
        let holds_some = ["failed", "succeeded"].iter().any(|list| uncounted.has(list));
        if is_finished && holds_some && (self.finishes() || self.changes("uncountedTerminatedPods")) {
            errors.push(FieldError::invalid(
                "status.uncountedTerminatedPods",
                Value::Object(uncounted.clone()),
                "must be empty for finished job",
            ));
        }
        let (ready, active) = (count(self.new, "ready"), count(self.new, "active"));
        if ready > active && (self.changes("ready") || self.changes("active")) {
            let rule = "cannot set more ready pods than active";
            errors.push(FieldError::invalid("status.ready", ready, rule));
        }
        // An indexed Job that shrinks forgets the successes of the indexes that go.
        let may_shrink = self.spec.text("completionMode") == "Indexed"
            && self.spec.int("completions") == self.spec.int("parallelism");
        for (field, may_shrink, rule) in [
            ("failed", false, "cannot decrease the failed counter"),
            ("succeeded", may_shrink, "cannot decrease the succeeded counter"),
        ] {
            let number = count(self.new, field);
            if number < count(self.old, field) && !may_shrink {
                errors.push(FieldError::invalid(child("status", field), number, rule));
            }
        }
    }

    fn indexes(&self, errors: &mut Errors) {
        const COMPLETED: &str = "status.completedIndexes";
        const FAILED: &str = "status.failedIndexes";
        let completions = self.spec.int("completions");
        let completed = self.new.text("completedIndexes");
        let failed = self.new.member("failedIndexes").and_then(Value::as_str);
        let has_limit = self.spec.member("backoffLimitPerIndex").is_some();
        let (completed_changes, failed_changes) =
            (self.changes("completedIndexes"), self.changes("failedIndexes"));
        if let Some(completions) = completions.filter(|_| completed_changes)
            && let Err(error) = indexes::count(completed, completions)
        {
            let rule = format!("error parsing completedIndexes: {error}");
            errors.push(FieldError::invalid(COMPLETED, completed, rule));
        }
        if completed_changes && !completed.is_empty() && self.spec.text("completionMode") != "Indexed" {
            let rule = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(FieldError::invalid(COMPLETED, completed, rule));
        }
        let Some(failed) = failed else { return };
        if let Some(completions) = completions.filter(|_| failed_changes && has_limit)
            && let Err(error) = indexes::count(failed, completions)
        {
            let rule = format!("error parsing failedIndexes: {error}");
            errors.push(FieldError::invalid(FAILED, failed, rule));
        }
        if failed_changes && !has_limit {
            let rule = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(FieldError::invalid(FAILED, failed, rule));
        }
        if let Some(completions) = completions.filter(|_| failed_changes || completed_changes)
            && let Some(at) = indexes::overlap(completed, failed, completions)
        {
            let rule = format!("failedIndexes and completedIndexes overlap at index: {at}");
            errors.push(FieldError::invalid(FAILED, failed, rule));
        }
    }
}
