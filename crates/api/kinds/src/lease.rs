//! Lease: a heartbeat, or who leads.
//!
//! Rules follow `pkg/apis/coordination/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::{Fields, map_mut},
    rules::NOT_NEGATIVE,
    table,
};

/// The rules of Leases.
pub(crate) struct Lease;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Holder", "string", "Who holds the lease now."),
    table::AGE,
];

impl Strategy for Lease {
    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        drop_coordinated_election(object, false, false);
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, _subresource: &str) {
        let spec = old.map("spec");
        drop_coordinated_election(new, spec.has("strategy"), spec.has("preferredHolder"));
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let spec = object.map("spec");
        let mut errors = Vec::new();
        if let Some(seconds) = spec.int("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            errors.push(FieldError::invalid(
                "spec.leaseDurationSeconds",
                seconds,
                "must be greater than 0",
            ));
        }
        if let Some(count) = spec.int("leaseTransitions").filter(|count| *count < 0) {
            errors.push(FieldError::invalid("spec.leaseTransitions", count, NOT_NEGATIVE));
        }
        if spec.has("preferredHolder") && !spec.has("strategy") {
            errors.push(FieldError::forbidden(
                "spec.preferredHolder",
                "may only be specified if `strategy` is defined",
            ));
        }
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let holder = object.map("spec").text("holderIdentity");
        vec![table::name(object), holder.into(), table::age(object, now)]
    }
}

/// Coordinated leader election is behind a gate that is off by default; fields already stored survive.
fn drop_coordinated_election(object: &mut Map<String, Value>, has_strategy: bool, has_holder: bool) {
    let Some(spec) = map_mut(object, "spec") else {
        return;
    };
    if !has_strategy {
        spec.remove("strategy");
    }
    if !has_holder {
        spec.remove("preferredHolder");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn durations_are_positive_and_transitions_not_negative() {
        let table = [
            (
                json!({"spec": {"leaseDurationSeconds": 15, "leaseTransitions": 0}}),
                vec![],
            ),
            (
                json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}),
                vec![
                    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                    "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
        ];
        for (object, wanted) in table {
            assert_eq!(texts(&Lease.validate(&map(object))), wanted);
        }
    }
}
