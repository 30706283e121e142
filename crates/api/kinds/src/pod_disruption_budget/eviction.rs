//! Eviction: a pod goes, if its budget allows it.
//!
//! Rules follow `pkg/registry/core/pod/storage/eviction.go`, Kubernetes 1.36.

use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    fields::{Fields, map_mut},
    label_selector,
};

/// Evictions that the budget's controller has not confirmed yet; beyond this it must be broken.
const DISRUPTED_PODS_MAX: usize = 2_000;

/// Why a budget does not let a pod go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvictionError {
    /// The budget has changed and nobody has counted its pods since.
    #[error("The disruption budget {budget} is still being processed by the server.")]
    Unprocessed {
        /// Name of the budget.
        budget: String,
    },
    /// No pod may go now; the text says which counts stand in the way.
    #[error("{0}")]
    Exhausted(String),
    /// The status of the budget makes no sense.
    #[error("{0}")]
    Broken(&'static str),
}

/// What is counted when a pod is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disruption {
    /// The pod serves, so it is one of those that may go.
    Counted,
    /// The pod does not serve: it goes, as long as it still does not.
    Uncounted,
}

/// Whether no budget is asked about this pod: it has ended, has not begun, or is on its way out.
pub fn is_beyond_budgets(pod: &Map<String, Value>) -> bool {
    matches!(
        pod.map("status").text("phase"),
        "Succeeded" | "Failed" | "Pending"
    ) || pod.map("metadata").has("deletionTimestamp")
}

/// Whether a budget of the same namespace is about this pod; one without a selector, or with one that cannot be
/// evaluated, is about none.
pub fn guards(budget: &Map<String, Value>, pod: &Map<String, Value>) -> bool {
    let spec = budget.map("spec");
    let selector = spec.map("selector");
    spec.member("selector").is_some()
        && label_selector::is_valid(selector)
        && label_selector::matches(selector, pod.map("metadata").map("labels"))
}

/// Whether the eviction of this pod counts.
pub fn disruption(budget: &Map<String, Value>, pod: &Map<String, Value>) -> Disruption {
    let (spec, status) = (budget.map("spec"), budget.map("status"));
    let count = |field| status.int(field).unwrap_or_default();
    let desired = count("desiredHealthy");
    let is_undisturbed = count("currentHealthy") >= desired && desired > 0;
    let lets_unhealthy_go = spec.text("unhealthyPodEvictionPolicy") == "AlwaysAllow" || is_undisturbed;
    if !is_ready(pod) && lets_unhealthy_go {
        Disruption::Uncounted
    } else {
        Disruption::Counted
    }
}

/// Takes one disruption from the budget and notes whose it is.
///
/// # Errors
///
/// The budget does not allow it, and is unchanged.
pub fn count_disruption(
    budget: &mut Map<String, Value>,
    pod: &str,
    now: Timestamp,
) -> Result<(), EvictionError> {
    let allowed = check(budget)?;
    let Some(status) = map_mut(budget, "status") else {
        return Err(EvictionError::Broken("pdb has no status"));
    };
    status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
    if allowed == 1 {
        let observed = status.int("observedGeneration").unwrap_or_default();
        let mut condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""});
        if observed != 0 {
            condition["observedGeneration"] = observed.into();
        }
        set_condition(status, condition, now);
    }
    if let Some(pods) = map_mut(status, "disruptedPods") {
        pods.insert(pod.to_owned(), timestamp::seconds(now).into());
    }
    Ok(())
}

/// Notes in a pod that it was evicted.
pub fn mark_evicted(pod: &mut Map<String, Value>, now: Timestamp) {
    if let Some(status) = map_mut(pod, "status") {
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null});
        set_condition(status, condition, now);
    }
}

fn check(budget: &Map<String, Value>) -> Result<i64, EvictionError> {
    let (metadata, status) = (budget.map("metadata"), budget.map("status"));
    let name = metadata.text("name");
    let count = |field| status.int(field).unwrap_or_default();
    if count("observedGeneration") < metadata.int("generation").unwrap_or_default() {
        let budget = name.to_owned();
        return Err(EvictionError::Unprocessed { budget });
    }
    if status.map("disruptedPods").len() > DISRUPTED_PODS_MAX {
        return Err(EvictionError::Broken(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    match count("disruptionsAllowed") {
        ..=-1 => Err(EvictionError::Broken("pdb disruptions allowed is negative")),
        0 => Err(EvictionError::Exhausted(exhausted(name, status))),
        allowed => Ok(allowed),
    }
}

fn exhausted(name: &str, status: &Map<String, Value>) -> String {
    let count = |field| status.int(field).unwrap_or_default();
    let (current, desired) = (count("currentHealthy"), count("desiredHealthy"));
    let mut conditions = status.list("conditions").iter();
    let refusal = conditions.find(|one| {
        one.text("type") == "DisruptionAllowed" && one.text("status") == "False" && one.has("message")
    });
    let (reason, message) = refusal.map_or(("", ""), |one| (one.text("reason"), one.text("message")));
    if reason == "SyncFailed" {
        // The counts mean nothing then.
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        )
    } else if current <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
    } else if refusal.is_some() {
        format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn is_ready(pod: &Map<String, Value>) -> bool {
    let mut conditions = pod.map("status").list("conditions").iter();
    conditions.any(|one| one.text("type") == "Ready" && one.text("status") == "True")
}

/// Puts a condition in the place of the one of its type; its time is that of the last change of its status.
fn set_condition(status: &mut Map<String, Value>, mut condition: Value, now: Timestamp) {
    let mut conditions = status.list("conditions").to_vec();
    let at = conditions
        .iter()
        .position(|one| one.text("type") == condition.text("type"));
    let before = at.map(|at| &conditions[at]);
    let since = before
        .filter(|before| before.text("status") == condition.text("status"))
        .and_then(|before| before.member("lastTransitionTime").cloned());
    condition["lastTransitionTime"] = since.unwrap_or_else(|| timestamp::seconds(now).into());
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    status.insert("conditions".to_owned(), conditions.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{map, with};

    fn budget(status: Value) -> Map<String, Value> {
        map(
            json!({"metadata": {"name": "web", "generation": 2}, "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": with(json!({"observedGeneration": 2, "disruptionsAllowed": 1, "currentHealthy": 3,
                                  "desiredHealthy": 2, "expectedPods": 3}), status)}),
        )
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().expect("a time")
    }

    #[test]
    fn a_budget_is_used_up() {
        let mut budget = budget(json!({}));
        assert_eq!(count_disruption(&mut budget, "web-0", now()), Ok(()));
        assert_eq!(
            budget["status"],
            json!({"observedGeneration": 2, "disruptionsAllowed": 0, "currentHealthy": 3, "desiredHealthy": 2,
                "expectedPods": 3, "disruptedPods": {"web-0": "2026-01-01T00:00:00Z"},
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
                    "message": "", "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
        );
        let error = count_disruption(&mut budget, "web-1", now()).expect_err("used up");
        assert_eq!(
            error.to_string(),
            "The disruption budget web does not allow evicting pods currently"
        );
    }

    #[test]
    fn a_refusal_says_what_stands_in_the_way() {
        let condition = |reason: &str, message: &str| json!([{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": message}]);
        for (status, wanted) in [
            (
                json!({"observedGeneration": 1}),
                "The disruption budget web is still being processed by the server.",
            ),
            (
                json!({"disruptionsAllowed": -1}),
                "pdb disruptions allowed is negative",
            ),
            (
                json!({"disruptionsAllowed": 0, "currentHealthy": 2}),
                "The disruption budget web needs 2 healthy pods and has 2 currently",
            ),
            (
                json!({"disruptionsAllowed": 0, "conditions": condition("SyncFailed", "no scale")}),
                "The disruption budget web does not allow evicting pods currently because it failed sync: no scale",
            ),
            (
                json!({"disruptionsAllowed": 0, "conditions": condition("Held", "by hand")}),
                "The disruption budget web does not allow evicting pods currently (Held): by hand",
            ),
        ] {
            let mut budget = budget(status);
            let before = budget.clone();
            let error = count_disruption(&mut budget, "web-0", now()).expect_err("refused");
            assert_eq!(error.to_string(), wanted);
            assert_eq!(budget, before);
        }
    }

    #[test]
    fn pods_that_do_not_serve_go_uncounted_where_nobody_is_hurt() {
        let pod =
            |status: &str| map(json!({"status": {"conditions": [{"type": "Ready", "status": status}]}}));
        let policy = |policy: &str, current: i64| {
            let mut budget = budget(json!({ "currentHealthy": current }));
            budget["spec"]["unhealthyPodEvictionPolicy"] = policy.into();
            budget
        };
        for (budget, ready, wanted) in [
            (policy("IfHealthyBudget", 3), "True", Disruption::Counted),
            (policy("IfHealthyBudget", 2), "False", Disruption::Uncounted),
            (policy("IfHealthyBudget", 1), "False", Disruption::Counted),
            (policy("AlwaysAllow", 1), "False", Disruption::Uncounted),
            (policy("AlwaysAllow", 1), "True", Disruption::Counted),
        ] {
            assert_eq!(disruption(&budget, &pod(ready)), wanted, "{budget:?}");
        }
    }

    #[test]
    fn budgets_are_about_the_pods_they_select_while_these_run() {
        let pod = |labels: Value| map(json!({"metadata": {"labels": labels}}));
        let mut budget = budget(json!({}));
        assert!(guards(&budget, &pod(json!({"app": "web"}))));
        assert!(!guards(&budget, &pod(json!({"app": "api"}))));
        budget["spec"] = json!({"selector": {}});
        assert!(guards(&budget, &pod(json!({}))));
        budget["spec"] = json!({});
        assert!(!guards(&budget, &pod(json!({}))));
        for (pod, beyond) in [
            (json!({"status": {"phase": "Running"}}), false),
            (json!({"status": {"phase": "Pending"}}), true),
            (json!({"status": {"phase": "Succeeded"}}), true),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}),
                true,
            ),
        ] {
            assert_eq!(is_beyond_budgets(&map(pod.clone())), beyond, "{pod}");
        }
    }
}
