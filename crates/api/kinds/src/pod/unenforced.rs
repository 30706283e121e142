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
    ("subdomain", "there is no cluster domain"),
];

const SECCOMP: &str = "seccomp profiles are not applied";
const MESSAGES: &str = "termination messages are not read";

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
    if matches!(spec.text("dnsPolicy"), "None" | "ClusterFirstWithHostNet") {
        say("dnsPolicy", "the host's resolv.conf is used");
    }
    if spec.map("securityContext").has("seccompProfile") {
        say("securityContext.seccompProfile", SECCOMP);
    }
    in_containers(
        spec,
        |one| one.has("resources"),
        "resources",
        "requests and limits are not enforced",
        &mut say,
    );
    in_containers(
        spec,
        |one| one.map("securityContext").has("seccompProfile"),
        "securityContext.seccompProfile",
        SECCOMP,
        &mut say,
    );
    in_containers(
        spec,
        |one| !matches!(one.text("terminationMessagePath"), "" | "/dev/termination-log"),
        "terminationMessagePath",
        MESSAGES,
        &mut say,
    );
    in_containers(
        spec,
        |one| one.text("terminationMessagePolicy") == "FallbackToLogsOnError",
        "terminationMessagePolicy",
        MESSAGES,
        &mut say,
    );
    warnings
}

/// One sentence for all containers of a list that have this.
fn in_containers(
    spec: &Map<String, Value>,
    holds: impl Fn(&Value) -> bool,
    field: &str,
    why: &str,
    say: &mut impl FnMut(&str, &str),
) {
    for list in ["initContainers", "containers"] {
        let containers = spec.list(list).iter().enumerate();
        let holders: Vec<usize> = containers
            .filter(|(_, one)| holds(one))
            .map(|(at, _)| at)
            .collect();
        let Some(first) = holders.first() else { continue };
        let field = child(&index(list, *first), field);
        match holders.len() - 1 {
            0 => say(&field, why),
            1 => say(&field, &format!("{why} (in 1 more container too)")),
            others => say(&field, &format!("{why} (in {others} more containers too)")),
        }
    }
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
                "spec.template.spec.containers[1].resources: stored, but without effect: requests and limits are not enforced (in 1 more container too)",
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
            json!({"subdomain": "s", "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}},
            "containers": [{"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}]}),
        );
        assert_eq!(
            of("spec", &spec),
            [
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution: stored, but without effect: pods are not placed by it",
                "spec.subdomain: stored, but without effect: there is no cluster domain",
                "spec.containers[0].securityContext.seccompProfile: stored, but without effect: seccomp profiles are not applied",
            ]
        );
    }
}
