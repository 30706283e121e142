//! What a pod may ask for, and nobody here gives it: stored as it is written, and said so.
//!
//! A node that cannot leave a field aside refuses the pod by the field's name; those are not here.

use serde_json::{Map, Value};

use super::affinity;
use crate::{
    fields::Fields,
    rules::{child, index},
};

/// Fields of a spec, and why they have no effect.
const FIELDS: &[(&str, &str)] = &[
    ("dnsConfig", "the host's resolv.conf is used"),
    ("imagePullSecrets", "no image is pulled"),
    ("priorityClassName", "pods are not ordered by priority"),
    ("resources", "requests and limits are not enforced"),
];
/// Fields of a container.
const CONTAINER_FIELDS: &[(&str, &str)] = &[("resources", "requests and limits are not enforced")];

/// Warnings about a spec at `path`, one for each field, however many containers have it.
pub(super) fn of(path: &str, spec: &Map<String, Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut say = |field: &str, why: &str| {
        warnings.push(format!(
            "{}: stored, but without effect: {why}",
            child(path, field)
        ));
    };
    for field in affinity::unevaluated(spec) {
        say(&field, "pods are not placed by it");
    }
    for (field, why) in FIELDS {
        if spec.has(field) {
            say(field, why);
        }
    }
    if spec.text("dnsPolicy") == "None" {
        say("dnsPolicy", "the host's resolv.conf is used");
    }
    if spec.map("securityContext").has("seccompProfile") {
        say(
            "securityContext.seccompProfile",
            "seccomp profiles are not applied",
        );
    }
    for (field, why) in CONTAINER_FIELDS {
        for list in ["initContainers", "containers"] {
            let holders = spec
                .list(list)
                .iter()
                .enumerate()
                .filter(|(_, one)| one.has(field));
            let holders: Vec<usize> = holders.map(|(at, _)| at).collect();
            if let [first, others @ ..] = &holders[..] {
                let field = child(&index(list, *first), field);
                match others.len() {
                    0 => say(&field, why),
                    count => say(&field, &format!("{why} (in {count} more containers too)")),
                }
            }
        }
    }
    warnings
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
            "containers": [{"resources": {}}, {"resources": {"limits": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "1"}}}]}),
        );
        assert_eq!(
            of("spec.template.spec", &spec),
            [
                "spec.template.spec.affinity.podAntiAffinity: stored, but without effect: pods are not placed by it",
                "spec.template.spec.topologySpreadConstraints: stored, but without effect: pods are not placed by it",
                "spec.template.spec.priorityClassName: stored, but without effect: pods are not ordered by priority",
                "spec.template.spec.containers[1].resources: stored, but without effect: requests and limits are not enforced (in 1 more containers too)",
            ]
        );
        assert_eq!(of("spec", &map(json!({"containers": [{"name": "c"}]}))), [""; 0]);
    }
}
