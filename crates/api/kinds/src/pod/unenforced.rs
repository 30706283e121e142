//! What a pod may ask for, and no node gives it: stored as it is written, and said so.
//!
//! Which fields these are says the table that nodes judge pods by (`hotmap_support`). A pod that no node can run is refused
//! there, by the field's name.

use hotmap_support::{Finding, State, judge};
use serde_json::{Map, Value};

use crate::rules::child;

/// Warnings about a spec at `path`, one for each field, however many containers have it.
pub(super) fn of(path: &str, spec: &Map<String, Value>) -> Vec<String> {
    let mut groups: Vec<(Finding, usize)> = Vec::new();
    for found in judge(spec) {
        if found.state != State::Warned {
            continue;
        }
        let same = |(first, _): &&mut (Finding, usize)| {
            first.why == found.why && field(&first.path).eq(field(&found.path))
        };
        match groups.iter_mut().find(same) {
            Some((_, others)) => *others += 1,
            None => groups.push((found, 0)),
        }
    }
    let sentence = |(found, others): (Finding, usize)| {
        let said = format!(
            "{}: stored, but without effect: {}",
            child(path, &found.path),
            found.why
        );
        // Something that is a list in a container may be there several times in one.
        let place = match found.path.matches('[').count() {
            1 => "container",
            _ => "place",
        };
        match others {
            0 => said,
            1 => format!("{said} (in 1 more {place} too)"),
            others => format!("{said} (in {others} more {place}s too)"),
        }
    };
    groups.into_iter().map(sentence).collect()
}

/// A path without the numbers in it.
fn field(path: &str) -> impl Iterator<Item = char> + '_ {
    path.chars().filter(|letter| !letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::map;

    #[test]
    fn what_has_no_effect_is_named_once() {
        let spec = map(
            json!({"priorityClassName": "high", "dnsPolicy": "ClusterFirst", "imagePullSecrets": [],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}},
            "topologySpreadConstraints": [{}],
            "containers": [{"resources": {}}, {"resizePolicy": [{"resourceName": "cpu"}]}, {"resizePolicy": [{"resourceName": "cpu"}]}]}),
        );
        assert_eq!(
            of("spec.template.spec", &spec),
            [
                "spec.template.spec.affinity.podAntiAffinity: stored, but without effect: pods are not placed by it",
                "spec.template.spec.containers[1].resizePolicy: stored, but without effect: resources of a pod that runs are not changed (in 1 more container too)",
                "spec.template.spec.priorityClassName: stored, but without effect: pods are not ordered by priority",
                "spec.template.spec.topologySpreadConstraints: stored, but without effect: pods are not placed by it",
            ]
        );
        assert_eq!(of("spec", &map(json!({"containers": [{"name": "c"}]}))), [""; 0]);
    }

    #[test]
    fn what_has_an_effect_is_not_warned_of() {
        // Required node affinity, node selector and tolerations decide where a pod is bound.
        let spec = map(
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}},
            "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "dnsPolicy": "Default",
            "containers": [{"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}]}),
        );
        assert_eq!(of("spec", &spec), [""; 0]);
        let spec = map(
            json!({"priorityClassName": "s", "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}},
            "containers": [{"securityContext": {"procMount": "Unmasked", "seccompProfile": {"type": "RuntimeDefault"}}}]}),
        );
        assert_eq!(
            of("spec", &spec),
            [
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution: stored, but without effect: pods are not placed by it",
                "spec.containers[0].securityContext.procMount: stored, but without effect: /proc is always masked",
                "spec.priorityClassName: stored, but without effect: pods are not ordered by priority",
            ]
        );
    }
}
