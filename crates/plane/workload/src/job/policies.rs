//! What a Job's policies say of a failed pod, and of indexes that succeeded.
//!
//! Source: `pkg/controller/job/{pod_failure_policy,success_policy}.go`, Kubernetes 1.36.

use super::indexes::Indexes;
use crate::view::{
    ContainerStatus, Pod,
    job::{OnExitCodes, PodFailurePolicy, PodFailurePolicyRule, SuccessPolicy},
};

/// What is to be done about a failed pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FailureAction {
    /// It counts towards the back-off limits.
    Count,
    /// It does not count.
    Ignore,
    /// It counts, and its index has failed.
    FailIndex,
    /// It counts, and the Job has failed, for this reason.
    FailJob { message: String },
}

/// The action of the first rule that matches; without one the pod counts.
pub(super) fn failure_action(policy: Option<&PodFailurePolicy>, pod: &Pod) -> FailureAction {
    let rules = policy.map(|policy| policy.rules.as_slice()).unwrap_or_default();
    rules
        .iter()
        .enumerate()
        .find_map(|(index, rule)| rule_action(rule, index, pod))
        .unwrap_or(FailureAction::Count)
}

fn rule_action(rule: &PodFailurePolicyRule, index: usize, pod: &Pod) -> Option<FailureAction> {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let cause = match &rule.on_exit_codes {
        Some(requirement) => {
            let (container, code) = matching_exit(requirement, pod)?;
            format!("Container {container} for pod {namespace}/{name} failed with exit code {code}")
        }
        None => {
            let condition = pod.status.conditions.iter().find(|condition| {
                let wanted = &rule.on_pod_conditions;
                wanted
                    .iter()
                    .any(|wanted| wanted.kind == condition.kind && wanted.status == condition.status)
            })?;
            format!("Pod {namespace}/{name} has condition {}", condition.kind)
        }
    };
    match rule.action.as_str() {
        "Ignore" => Some(FailureAction::Ignore),
        "FailIndex" => Some(FailureAction::FailIndex),
        "Count" => Some(FailureAction::Count),
        "FailJob" => Some(FailureAction::FailJob {
            message: format!("{cause} matching FailJob rule at index {index}"),
        }),
        // Of a newer release; the next rules have their say.
        _ => None,
    }
}

/// The first container that matches, and its exit code; those of the pod come before its init containers.
fn matching_exit<'a>(requirement: &OnExitCodes, pod: &'a Pod) -> Option<(&'a str, i32)> {
    let matches = |container: &'a ContainerStatus| {
        let code = container.state.terminated.as_ref()?.exit_code;
        let is_named = requirement
            .container_name
            .as_ref()
            .is_none_or(|name| *name == container.name);
        let listed = requirement.values.contains(&code);
        let has_code = match requirement.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            _ => false,
        };
        (is_named && code != 0 && has_code).then_some((container.name.as_str(), code))
    };
    let status = &pod.status;
    let mut containers = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses);
    containers.find_map(matches)
}

/// Which rule of a success policy is met, as a condition's message.
pub(super) fn success(
    policy: Option<&SuccessPolicy>,
    completions: u32,
    succeeded: &Indexes,
) -> Option<String> {
    if succeeded.total() == 0 {
        return None;
    }
    let met = policy?.rules.iter().position(|rule| {
        let count = rule
            .succeeded_count
            .map(|count| usize::try_from(count).unwrap_or(0));
        match &rule.succeeded_indexes {
            Some(text) => {
                let required = Indexes::parse(text, completions);
                let common = required.common(succeeded);
                required.total() > 0
                    && (common == required.total() || count.is_some_and(|count| common >= count))
            }
            None => count.is_some_and(|count| succeeded.total() >= count),
        }
    })?;
    Some(format!("Matched rules at index {met}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let exit = |operator: &str, values: Value, action: &str| json!({"action": action, "onExitCodes": {"operator": operator, "values": values}});
        let named = |name: &str| json!({"action": "FailJob", "onExitCodes": {"containerName": name, "operator": "In", "values": [1, 2]}});
        let condition = |status: &str, action: &str| json!({"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": status}]});
        let pod = json!({"metadata": {"namespace": "default", "name": "mypod"}, "status": {
            "conditions": [{"type": "DisruptionTarget", "status": "True"}],
            "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 2}}}],
            "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 5}}},
                {"name": "idle", "state": {"running": {}}}, {"name": "good", "state": {"terminated": {"exitCode": 0}}}]}});
        let pod: Pod = from_value(pod).expect("a pod");
        let fail = |message: &str| FailureAction::FailJob {
            message: message.to_owned(),
        };
        for (rules, expected) in [
            (json!([]), FailureAction::Count),
            (json!([exit("In", json!([5]), "Ignore")]), FailureAction::Ignore),
            (
                json!([exit("NotIn", json!([5, 2]), "Ignore")]),
                FailureAction::Count,
            ),
            (
                json!([exit("NotIn", json!([4]), "FailIndex")]),
                FailureAction::FailIndex,
            ),
            (json!([exit("In", json!([0]), "Ignore")]), FailureAction::Count),
            (
                json!([exit("In", json!([5]), "Count"), exit("In", json!([5]), "FailJob")]),
                FailureAction::Count,
            ),
            (
                json!([
                    exit("In", json!([5]), "FailSomething"),
                    exit("In", json!([5]), "Ignore")
                ]),
                FailureAction::Ignore,
            ),
            (
                json!([named("main"), named("init")]),
                fail(
                    "Container init for pod default/mypod failed with exit code 2 matching FailJob rule at index 1",
                ),
            ),
            (
                json!([exit("In", json!([5]), "FailJob")]),
                fail(
                    "Container main for pod default/mypod failed with exit code 5 matching FailJob rule at index 0",
                ),
            ),
            (
                json!([condition("False", "Ignore"), condition("True", "FailJob")]),
                fail("Pod default/mypod has condition DisruptionTarget matching FailJob rule at index 1"),
            ),
        ] {
            let policy: PodFailurePolicy = from_value(json!({"rules": rules})).expect("a policy");
            assert_eq!(failure_action(Some(&policy), &pod), expected, "{rules}");
        }
        assert_eq!(failure_action(None, &pod), FailureAction::Count);
    }

    #[test]
    fn a_success_policy_is_met_by_its_first_rule_that_is() {
        for (rules, succeeded, met) in [
            (json!([{"succeededIndexes": "0-2"}]), "0-2", Some(0)),
            (json!([{"succeededIndexes": "0-2"}]), "0,2", None),
            (
                json!([{"succeededIndexes": "0-2", "succeededCount": 2}]),
                "0,2",
                Some(0),
            ),
            (
                json!([{"succeededIndexes": "0-2", "succeededCount": 2}]),
                "0,5-9",
                None,
            ),
            (json!([{"succeededCount": 3}]), "1,5-6", Some(0)),
            (
                json!([{"succeededIndexes": "9"}, {"succeededCount": 1}]),
                "1",
                Some(1),
            ),
            (json!([{"succeededIndexes": ""}]), "1", None),
            (json!([{"succeededCount": 0}]), "", None),
        ] {
            let policy: SuccessPolicy = from_value(json!({"rules": rules})).expect("a policy");
            let found = success(Some(&policy), 10, &Indexes::parse(succeeded, 10));
            assert_eq!(
                found,
                met.map(|index: i32| format!("Matched rules at index {index}")),
                "{rules}"
            );
        }
    }
}
