//! How many of the pods that a budget selects may go now.
//!
//! Rules follow `pkg/controller/disruption/disruption.go` and `component-helpers/apps/poddisruptionbudget`, Kubernetes 1.36.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use hotmap_object::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::view::{IntOrPercent, OwnerReference, Pod, PodDisruptionBudget, Round};

/// A pod whose eviction was granted and that is still there after this time was not deleted after all.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_secs(120);
const CONDITION: &str = "DisruptionAllowed";

/// A controller of pods and how many it is to run; a text says why nobody knows.
pub(super) type Scale = Result<(String, i64), String>;

/// What the status is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) expected: i64,
    pub(super) desired: i64,
    pub(super) healthy: i64,
    pub(super) allowed: i64,
    pub(super) disrupted: BTreeMap<String, Timestamp>,
    /// When a granted eviction counts as not used, the earliest.
    pub(super) look_again_at: Option<Timestamp>,
    /// Pods without a controller, where their controllers' scale was asked for.
    pub(super) unmanaged: Vec<String>,
}

/// Counts. `pods` are those the budget selects.
///
/// # Errors
/// A text for the condition where the number of pods there should be is not known.
pub(super) fn count(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    scale_of: impl Fn(&OwnerReference) -> Scale,
    now: Timestamp,
) -> Result<Count, String> {
    let (expected, desired, unmanaged) = expectation(budget, pods, scale_of)?;
    let disrupted: BTreeMap<String, Timestamp> = pods
        .iter()
        .filter(|pod| !pod.metadata.is_deleting())
        .filter_map(|pod| budget.status.disrupted_pods.get_key_value(&pod.metadata.name))
        .filter(|(_, since)| until(**since) >= now)
        .map(|(name, since)| (name.clone(), *since))
        .collect();
    let counts = |pod: &&Arc<Pod>| {
        let is_going = disrupted
            .get(&pod.metadata.name)
            .is_some_and(|since| until(*since) > now);
        !pod.metadata.is_deleting() && !is_going && pod.is_ready()
    };
    let healthy = i64::try_from(pods.iter().filter(counts).count()).unwrap_or(i64::MAX);
    let allowed = match expected {
        // A budget that selects nothing yet must not let the first pods go.
        ..=0 => 0,
        _ => (healthy - desired).max(0),
    };
    Ok(Count {
        expected,
        desired,
        healthy,
        allowed,
        look_again_at: disrupted.values().map(|since| until(*since)).min(),
        disrupted,
        unmanaged,
    })
}

fn until(since: Timestamp) -> Timestamp {
    since.saturating_add(DELETION_TIMEOUT).unwrap_or(Timestamp::MAX)
}

/// How many pods there should be, how many of them healthy, and which of them nobody answers for.
fn expectation(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    scale_of: impl Fn(&OwnerReference) -> Scale,
) -> Result<(i64, i64, Vec<String>), String> {
    let spec = &budget.spec;
    match (spec.max_unavailable, spec.min_available) {
        (Some(most), _) => {
            let (expected, unmanaged) = expected_scale(pods, scale_of)?;
            Ok((
                expected,
                (expected - most.of(expected, Round::Up)).max(0),
                unmanaged,
            ))
        }
        (None, Some(IntOrPercent::Int(least))) => {
            let expected = i64::try_from(pods.len()).unwrap_or(i64::MAX);
            Ok((expected, least, Vec::new()))
        }
        (None, Some(share)) => {
            let (expected, unmanaged) = expected_scale(pods, scale_of)?;
            Ok((expected, share.of(expected, Round::Up), unmanaged))
        }
        (None, None) => Ok((0, 0, Vec::new())),
    }
}

/// The scales of all controllers of the pods, added up.
fn expected_scale(
    pods: &[Arc<Pod>],
    scale_of: impl Fn(&OwnerReference) -> Scale,
) -> Result<(i64, Vec<String>), String> {
    let mut known: HashMap<&str, String> = HashMap::new();
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    let mut unmanaged = Vec::new();
    for pod in pods {
        let Some(controller) = pod.metadata.controller() else {
            unmanaged.push(pod.metadata.name.clone());
            continue;
        };
        if !known.contains_key(&*controller.uid) {
            let (uid, scale) = scale_of(controller).map_err(|why| match why.is_empty() {
                true => format!("found no controllers for pod {:?}", pod.metadata.name),
                false => why,
            })?;
            known.insert(&controller.uid, uid.clone());
            scales.insert(uid, scale);
        }
    }
    Ok((scales.values().sum(), unmanaged))
}

/// The patch that makes the status say so; nothing if it does.
pub(super) fn patch(
    budget: &PodDisruptionBudget,
    count: Result<&Count, &str>,
    now: Timestamp,
) -> Option<Value> {
    let (held, generation) = (&budget.status, budget.metadata.generation);
    let mut status = Map::new();
    let condition = match count {
        Ok(count) => {
            let numbers = [
                ("disruptionsAllowed", held.disruptions_allowed, count.allowed),
                ("currentHealthy", held.current_healthy, count.healthy),
                ("desiredHealthy", held.desired_healthy, count.desired),
                ("expectedPods", held.expected_pods, count.expected),
                ("observedGeneration", held.observed_generation, generation),
            ];
            for (field, before, now) in numbers {
                if before != now {
                    status.insert(field.to_owned(), now.into());
                }
            }
            let gone = held.disrupted_pods.keys();
            let gone: Map<String, Value> = gone
                .filter(|name| !count.disrupted.contains_key(*name))
                .map(|name| (name.clone(), Value::Null))
                .collect();
            if !gone.is_empty() {
                status.insert("disruptedPods".to_owned(), gone.into());
            }
            match count.allowed {
                0 => ("False", "InsufficientPods", ""),
                _ => ("True", "SufficientPods", ""),
            }
        }
        Err(why) => {
            if held.disruptions_allowed != 0 {
                status.insert("disruptionsAllowed".to_owned(), 0.into());
            }
            ("False", "SyncFailed", why)
        }
    };
    // Who could not count has not seen this generation either.
    let generation = if count.is_ok() {
        generation
    } else {
        held.observed_generation
    };
    if let Some(conditions) = with_condition(&held.conditions, condition, generation, now) {
        status.insert("conditions".to_owned(), conditions.into());
    }
    (!status.is_empty()).then(|| {
        // The version: an eviction that was granted meanwhile must not be forgotten.
        json!({
            "metadata": {"uid": budget.metadata.uid, "resourceVersion": budget.metadata.resource_version},
            "status": status,
        })
    })
}

fn with_condition(
    held: &[Value],
    (status, reason, message): (&str, &str, &str),
    generation: i64,
    now: Timestamp,
) -> Option<Vec<Value>> {
    let before = held.iter().find(|one| one["type"] == CONDITION);
    let since = before.filter(|before| before["status"] == status).map_or_else(
        || timestamp::seconds(now).into(),
        |before| before["lastTransitionTime"].clone(),
    );
    let condition = json!({
        "type": CONDITION, "status": status, "reason": reason, "message": message,
        "observedGeneration": generation, "lastTransitionTime": since,
    });
    let is_same = |before: &Value| {
        let fields = ["status", "reason", "message"];
        fields.iter().all(|field| before[*field] == condition[*field])
            && before["observedGeneration"].as_i64().unwrap_or_default() == generation
    };
    if before.is_some_and(is_same) {
        return None;
    }
    let mut all: Vec<Value> = held
        .iter()
        .filter(|one| one["type"] != CONDITION)
        .cloned()
        .collect();
    all.push(condition);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T15:04:05Z".parse().expect("a time")
    }

    fn budget(spec: Value, status: Value) -> PodDisruptionBudget {
        let metadata = json!({"name": "b", "uid": "u", "resourceVersion": "7", "generation": 2});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}))
            .expect("a budget")
    }

    /// `r`: ready, `-`: not, `x`: ready and being deleted; a controller of the name's first letter, `.` for none.
    fn pods(all: &str) -> Vec<Arc<Pod>> {
        let pod = |(at, text): (usize, &str)| {
            let (controller, state) = text.split_at(1);
            let owners = match controller {
                "." => json!([]),
                uid => {
                    json!([{"uid": uid, "controller": true, "kind": "ReplicaSet", "name": uid, "apiVersion": "apps/v1"}])
                }
            };
            let ready = if state == "-" { "False" } else { "True" };
            let deletion = (state == "x").then_some("2026-01-02T15:04:00Z");
            let pod = json!({
                "metadata": {"name": format!("p{at}"), "ownerReferences": owners, "deletionTimestamp": deletion},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            Arc::new(serde_json::from_value(pod).expect("a pod"))
        };
        all.split_whitespace().enumerate().map(pod).collect()
    }

    /// Controllers a and b have 4 pods each and c 1; d cannot be asked.
    fn scale(controller: &OwnerReference) -> Scale {
        match controller.uid.as_str() {
            "a" | "b" => Ok((controller.uid.clone(), 4)),
            "c" => Ok(("c".to_owned(), 1)),
            "d" => Err("jobs.batch does not implement the scale subresource".to_owned()),
            _ => Err(String::new()),
        }
    }

    #[test]
    fn what_may_go_follows_from_the_budget_and_the_controllers_scale() {
        for (spec, all, wanted) in [
            // Expected, desired, healthy, allowed.
            (json!({"minAvailable": 2}), "ar ar ar", (3, 2, 3, 1)),
            (json!({"minAvailable": 2}), "ar a- ax", (3, 2, 1, 0)),
            (json!({"minAvailable": 0}), "ar", (1, 0, 1, 1)),
            (json!({"minAvailable": 1}), "", (0, 1, 0, 0)),
            (json!({"minAvailable": "50%"}), "ar ar ar ar", (4, 2, 4, 2)),
            (json!({"minAvailable": "51%"}), "ar ar ar ar", (4, 3, 4, 1)),
            (json!({"minAvailable": "50%"}), "ar ar", (4, 2, 2, 0)),
            (json!({"minAvailable": "100%"}), "ar br cr", (9, 9, 3, 0)),
            (json!({"maxUnavailable": 1}), "ar ar ar ar", (4, 3, 4, 1)),
            (json!({"maxUnavailable": 1}), "ar ar ar a-", (4, 3, 3, 0)),
            (json!({"maxUnavailable": "30%"}), "ar ar ar ar", (4, 2, 4, 2)),
            (json!({"maxUnavailable": 9}), "cr", (1, 0, 1, 1)),
            (json!({"maxUnavailable": 0}), "cr", (1, 1, 1, 0)),
            (json!({"maxUnavailable": 1}), ".r .r", (0, 0, 2, 0)),
            (json!({}), "ar", (0, 0, 1, 0)),
        ] {
            let count = count(&budget(spec.clone(), json!({})), &pods(all), scale, now()).expect("known");
            let found = (count.expected, count.desired, count.healthy, count.allowed);
            assert_eq!(found, wanted, "{spec} {all}");
        }
    }

    #[test]
    fn who_is_not_managed_is_named_and_who_cannot_be_counted_ends_it() {
        let count = |all| {
            count(
                &budget(json!({"maxUnavailable": 1}), json!({})),
                &pods(all),
                scale,
                now(),
            )
        };
        assert_eq!(count(".r ar").expect("known").unmanaged, ["p0"]);
        assert_eq!(
            count("ar zr").expect_err("nobody"),
            r#"found no controllers for pod "p1""#
        );
        assert_eq!(
            count("dr").expect_err("a job"),
            "jobs.batch does not implement the scale subresource"
        );
    }

    #[test]
    fn a_granted_eviction_counts_until_the_pod_goes_or_two_minutes_are_over() {
        let status = json!({"disruptedPods": {
            "p0": "2026-01-02T15:03:05Z", "p1": "2026-01-02T15:02:04Z", "p2": "2026-01-02T15:04:00Z", "gone": "2026-01-02T15:04:00Z",
        }});
        let budget = budget(json!({"minAvailable": 1}), status);
        let count = count(&budget, &pods("ar ar ax ar"), scale, now()).expect("known");
        assert_eq!(count.disrupted.keys().collect::<Vec<_>>(), ["p0"]);
        assert_eq!((count.healthy, count.allowed), (2, 1));
        assert_eq!(
            count.look_again_at,
            Some("2026-01-02T15:05:05Z".parse().expect("a time"))
        );
        let patch = patch(&budget, Ok(&count), now()).expect("changes");
        assert_eq!(
            patch["status"]["disruptedPods"],
            json!({"gone": null, "p1": null, "p2": null})
        );
    }

    #[test]
    fn a_status_is_written_once() {
        let fresh = budget(json!({"minAvailable": 1}), json!({}));
        let counted = count(&fresh, &pods("ar ar"), scale, now()).expect("known");
        let patch = patch(&fresh, Ok(&counted), now()).expect("changes");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let status = &patch["status"];
        assert_eq!(status["disruptionsAllowed"], 1);
        let condition = &status["conditions"][0];
        assert_eq!(
            *condition,
            json!({"type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
                "observedGeneration": 2, "lastTransitionTime": "2026-01-02T15:04:05Z"})
        );
        let told = budget(json!({"minAvailable": 1}), status.clone());
        assert_eq!(super::patch(&told, Ok(&counted), now()), None);
    }

    #[test]
    fn what_cannot_be_counted_lets_nobody_go() {
        let told = budget(
            json!({"maxUnavailable": 1}),
            json!({"disruptionsAllowed": 2, "conditions": [{"type": "Other"}]}),
        );
        let patch = patch(&told, Err("why"), now()).expect("changes");
        assert_eq!(patch["status"]["disruptionsAllowed"], 0);
        let conditions = &patch["status"]["conditions"];
        assert_eq!(
            (&conditions[0]["type"], &conditions[1]["reason"]),
            (&"Other".into(), &"SyncFailed".into())
        );
    }
}
