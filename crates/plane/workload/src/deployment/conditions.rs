//! Conditions of a deployment: set, kept or taken away.
//!
//! Source: `SetDeploymentCondition` and its neighbours in `pkg/controller/deployment/util/deployment_util.go`, Kubernetes
//! 1.36.

use hotmap_object::timestamp;
use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde_json::{Value, json};

use crate::view::{Condition, deployment::DeploymentCondition};

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

pub(super) fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> DeploymentCondition {
    let now = seconds(now);
    DeploymentCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        last_update_time: Some(now),
        last_transition_time: Some(now),
    }
}

/// Times in conditions have whole seconds: rounded here as they are written, so that what is read back is the same.
pub(super) fn seconds(at: Timestamp) -> Timestamp {
    at.round(
        TimestampRound::new()
            .smallest(Unit::Second)
            .mode(RoundMode::Floor),
    )
    .unwrap_or(at)
}

/// A ReplicaSet's condition as one of its deployment.
pub(super) fn promoted(condition: &Condition) -> DeploymentCondition {
    DeploymentCondition {
        kind: condition.kind.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        last_update_time: condition.last_transition_time,
        last_transition_time: condition.last_transition_time,
    }
}

/// Adds or replaces a condition. One with the same status and reason stays as it is; the time of the transition stays
/// while the status does.
pub(super) fn set(conditions: &mut Vec<DeploymentCondition>, mut condition: DeploymentCondition) {
    if let Some(held) = conditions.iter().find(|held| held.kind == condition.kind)
        && held.status == condition.status
    {
        if held.reason == condition.reason {
            return;
        }
        condition.last_transition_time = held.last_transition_time;
    }
    remove(conditions, &condition.kind);
    conditions.push(condition);
}

pub(super) fn remove(conditions: &mut Vec<DeploymentCondition>, kind: &str) {
    conditions.retain(|held| held.kind != kind);
}

pub(super) fn to_json(conditions: &[DeploymentCondition]) -> Vec<Value> {
    let time = |at: Option<Timestamp>| at.map(timestamp::seconds);
    conditions
        .iter()
        .map(|condition| {
            json!({
                "type": condition.kind,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastUpdateTime": time(condition.last_update_time),
                "lastTransitionTime": time(condition.last_transition_time),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn conditions_change_with_status_or_reason_only() {
        let mut conditions = Vec::new();
        set(&mut conditions, condition("A", "True", "R1", "one", at(1)));
        set(&mut conditions, condition("B", "True", "R", "b", at(1)));
        set(&mut conditions, condition("A", "True", "R1", "two", at(2)));
        assert_eq!(conditions[0].message, "one");
        set(&mut conditions, condition("A", "True", "R2", "three", at(3)));
        let a = &conditions[1];
        assert_eq!(
            (a.message.as_str(), a.last_update_time, a.last_transition_time),
            ("three", Some(at(3)), Some(at(1)))
        );
        set(&mut conditions, condition("A", "False", "R2", "four", at(4)));
        assert_eq!(conditions[1].last_transition_time, Some(at(4)));
        remove(&mut conditions, "A");
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn times_are_written_as_they_are_kept() {
        let precise: Timestamp = "2026-01-02T15:04:05.9Z".parse().expect("valid");
        let made = condition("A", "True", "R", "", precise);
        assert_eq!(
            to_json(std::slice::from_ref(&made))[0]["lastUpdateTime"],
            "2026-01-02T15:04:05Z"
        );
        assert_eq!(made.last_update_time, "2026-01-02T15:04:05Z".parse().ok());
    }
}
