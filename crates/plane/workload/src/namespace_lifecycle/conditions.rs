//! What the status of a terminating namespace says about what is left in it.
//!
//! Types, reasons and messages follow `pkg/controller/namespace/deletion/status_condition_utils.go`, Kubernetes 1.36. One
//! thing is said earlier than there: pods that remain count as remaining content while they are waited for.

use std::collections::BTreeMap;

use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::view::Condition;

/// What is left in a namespace, and what went wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Objects by resource, `<plural>.<group>`; none without any.
    pub(super) remaining: BTreeMap<String, usize>,
    /// Objects by finalizer that holds them.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// What failed, one text per collection.
    pub(super) errors: Vec<String>,
}

impl Totals {
    pub(super) fn add(&mut self, resource: &str, finalizers: impl IntoIterator<Item = String>) {
        *self.remaining.entry(resource.to_owned()).or_default() += 1;
        for finalizer in finalizers {
            *self.finalizers.entry(finalizer).or_default() += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.remaining.is_empty() && self.errors.is_empty()
    }

    /// Type, whether it is so, reason, message; all that there are, in upstream's order.
    fn wanted(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let bad = |is_bad: bool, kind, reasons: [&'static str; 2], messages: [String; 2]| {
            let [bad_reason, good_reason] = reasons;
            let [bad_message, good_message] = messages;
            match is_bad {
                true => (kind, true, bad_reason, bad_message),
                false => (kind, false, good_reason, good_message),
            }
        };
        let mut errors = self.errors.clone();
        errors.sort();
        let count = |counts: &BTreeMap<String, usize>, verb: &str| {
            let mut parts: Vec<String> = counts
                .iter()
                .map(|(name, count)| format!("{name} {verb} {count} resource instances"))
                .collect();
            parts.sort();
            parts.join(", ")
        };
        [
            (
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned(),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
            bad(
                !errors.is_empty(),
                "NamespaceDeletionContentFailure",
                ["ContentDeletionFailed", "ContentDeleted"],
                [
                    format!(
                        "Failed to delete all resource types, {} remaining: {}",
                        errors.len(),
                        errors.join(", ")
                    ),
                    "All content successfully deleted, may be waiting on finalization".to_owned(),
                ],
            ),
            bad(
                !self.remaining.is_empty(),
                "NamespaceContentRemaining",
                ["SomeResourcesRemain", "ContentRemoved"],
                [
                    format!("Some resources are remaining: {}", count(&self.remaining, "has")),
                    "All content successfully removed".to_owned(),
                ],
            ),
            bad(
                !self.finalizers.is_empty(),
                "NamespaceFinalizersRemaining",
                ["SomeFinalizersRemain", "ContentHasNoFinalizers"],
                [
                    format!(
                        "Some content in the namespace has finalizers remaining: {}",
                        count(&self.finalizers, "in")
                    ),
                    "All content-preserving finalizers finished".to_owned(),
                ],
            ),
        ]
    }

    /// The conditions that have to be written so that the status says so; none if it does.
    pub(super) fn changes(&self, current: &[Condition], now: Timestamp) -> Vec<Value> {
        let mut changes = Vec::new();
        for (kind, is_bad, reason, message) in self.wanted() {
            let status = if is_bad { "True" } else { "False" };
            let held = current.iter().find(|held| held.kind == kind);
            let is_same =
                |held: &Condition| held.status == status && held.reason == reason && held.message == message;
            if held.is_some_and(is_same) {
                continue;
            }
            let mut change = json!({"type": kind, "status": status, "reason": reason, "message": message});
            if held.is_none_or(|held| held.status != status) {
                change["lastTransitionTime"] = timestamp::seconds(now).into();
            }
            changes.push(change);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T15:04:05Z".parse().expect("a time")
    }

    fn condition(value: &Value) -> Condition {
        serde_json::from_value(value.clone()).expect("a condition")
    }

    fn totals() -> Totals {
        let mut totals = Totals::default();
        totals.add("pods.", []);
        totals.add("configmaps.", ["example.com/hold".to_owned()]);
        totals.add("configmaps.", ["example.com/hold".to_owned(), "b/c".to_owned()]);
        totals.add("leases.coordination.k8s.io", []);
        totals
    }

    #[test]
    fn an_empty_namespace_has_five_good_conditions() {
        let said: Vec<_> = Totals::default()
            .changes(&[], now())
            .iter()
            .map(|one| format!("{} {} {}", one["type"], one["status"], one["reason"]).replace('"', ""))
            .collect();
        assert_eq!(
            said,
            [
                "NamespaceDeletionDiscoveryFailure False ResourcesDiscovered",
                "NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions",
                "NamespaceDeletionContentFailure False ContentDeleted",
                "NamespaceContentRemaining False ContentRemoved",
                "NamespaceFinalizersRemaining False ContentHasNoFinalizers",
            ]
        );
    }

    #[test]
    fn what_remains_is_counted_by_resource_and_by_finalizer() {
        let said = totals().changes(&[], now());
        assert_eq!(
            said[3]["message"],
            "Some resources are remaining: configmaps. has 2 resource instances, \
             leases.coordination.k8s.io has 1 resource instances, pods. has 1 resource instances"
        );
        assert_eq!(
            said[4]["message"],
            "Some content in the namespace has finalizers remaining: b/c in 1 resource instances, \
             example.com/hold in 2 resource instances"
        );
        let failed = Totals {
            errors: vec!["b".to_owned(), "a".to_owned()],
            ..Totals::default()
        };
        assert_eq!(
            failed.changes(&[], now())[2]["message"],
            "Failed to delete all resource types, 2 remaining: a, b"
        );
    }

    #[test]
    fn only_what_changes_is_written_and_times_move_with_the_status() {
        let written: Vec<Condition> = totals().changes(&[], now()).iter().map(condition).collect();
        assert!(totals().changes(&written, now()).is_empty());
        let mut less = totals();
        less.remaining.remove("pods.");
        let changes = less.changes(&written, now());
        assert_eq!((changes.len(), changes[0].get("lastTransitionTime")), (1, None));
        let changes = Totals::default().changes(&written, now());
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[0]["lastTransitionTime"], "2026-01-02T15:04:05Z");
    }
}
