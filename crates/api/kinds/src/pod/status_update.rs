//! What a node agent may say about a pod.
//!
//! Rules follow `ValidatePodStatusUpdate` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use std::net::IpAddr;

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::update::mirror_annotation;
use crate::{
    fields::Fields,
    rules::{self, Errors, IMMUTABLE, broken, child, index},
};

const SYSTEM_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];
const NOT_NEGATIVE: &str = "must be a non-negative integer";

/// Everything that is wrong with a change of `status`.
pub(super) fn validate(new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    mirror_annotation(&mut errors, new, old);
    let spec = old.map("spec");
    let (new, old) = (new.map("status"), old.map("status"));
    conditions(&mut errors, new.list("conditions"));
    nominated_node(&mut errors, new, old, spec);
    observed_generation(&mut errors, "status", new.int("observedGeneration"));
    if new.text("qosClass") != old.text("qosClass") {
        errors.push(FieldError::invalid(
            "status.qosClass",
            new.text("qosClass"),
            IMMUTABLE,
        ));
    }
    for (statuses, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
    ] {
        stay_ended(
            &mut errors,
            &child("status", statuses),
            new.list(statuses),
            old.list(statuses),
            spec,
            containers,
        );
    }
    ephemeral_stay_ended(
        &mut errors,
        "status.ephemeralContainerStatuses",
        new.list("ephemeralContainerStatuses"),
        old.list("ephemeralContainerStatuses"),
    );
    addresses(
        &mut errors,
        "status.podIPs",
        new.list("podIPs"),
        old.list("podIPs"),
    );
    let host_ips = new.list("hostIPs");
    if let Some(first) = host_ips.first().map(|ip| ip.text("ip"))
        && first != new.text("hostIP")
    {
        let rule = "must be equal to `hostIP`";
        errors.push(FieldError::invalid("status.hostIPs[0].ip", first, rule));
    }
    addresses(&mut errors, "status.hostIPs", host_ips, old.list("hostIPs"));
    errors
}

fn conditions(errors: &mut Errors, conditions: &[Value]) {
    for (at, condition) in conditions.iter().enumerate() {
        let path = index("status.conditions", at);
        observed_generation(errors, &path, condition.int("observedGeneration"));
        let of = condition.text("type");
        if !SYSTEM_CONDITIONS.contains(&of) {
            rules::qualified_name(errors, &child(&path, "Type"), of);
        }
    }
}

fn observed_generation(errors: &mut Errors, path: &str, generation: Option<i64>) {
    if let Some(generation) = generation.filter(|generation| *generation < 0) {
        let path = child(path, "observedGeneration");
        errors.push(FieldError::invalid(path, generation, NOT_NEGATIVE));
    }
}

fn nominated_node(
    errors: &mut Errors,
    new: &Map<String, Value>,
    old: &Map<String, Value>,
    spec: &Map<String, Value>,
) {
    const PATH: &str = "status.nominatedNodeName";
    let node = new.text("nominatedNodeName");
    if node.is_empty() || node == old.text("nominatedNodeName") {
        return;
    }
    broken(errors, PATH, node, rules::subdomain(node));
    if spec.has("nodeName") {
        let rule = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(PATH, rule));
    }
}

/// A container that has ended stays so unless its restart policy starts it again.
fn stay_ended(
    errors: &mut Errors,
    path: &str,
    new: &[Value],
    old: &[Value],
    spec: &Map<String, Value>,
    containers: &str,
) {
    for (at, before) in old.iter().enumerate() {
        let Some(ended) = before.map("state").member("terminated") else {
            continue;
        };
        let name = before.text("name");
        let after = new.iter().find(|after| after.text("name") == name);
        if after.is_none_or(|after| after.map("state").member("terminated").is_some()) {
            continue;
        }
        let container = spec.list(containers).iter().find(|one| one.text("name") == name);
        let exit_code = ended.int("exitCode").unwrap_or_default();
        if !container.is_some_and(|container| restarts(container, spec, exit_code)) {
            errors.push(FieldError::forbidden(
                child(&index(path, at), "state"),
                "may not be transitioned to non-terminated state",
            ));
        }
    }
}

/// Nothing starts an ephemeral container again.
fn ephemeral_stay_ended(errors: &mut Errors, path: &str, new: &[Value], old: &[Value]) {
    let has_ended = |one: &Value| one.map("state").member("terminated").is_some();
    for (at, before) in old.iter().enumerate().filter(|(_, before)| has_ended(before)) {
        let name = before.text("name");
        if new
            .iter()
            .any(|after| after.text("name") == name && !has_ended(after))
        {
            errors.push(FieldError::forbidden(
                child(&index(path, at), "state"),
                "may not be transitioned to non-terminated state",
            ));
        }
    }
}

fn restarts(container: &Value, spec: &Map<String, Value>, exit_code: i64) -> bool {
    let rules = container.list("restartPolicyRules");
    if rules.iter().any(|rule| names_code(rule, exit_code)) {
        return true;
    }
    let policy = match container.text("restartPolicy") {
        "" => spec.text("restartPolicy"),
        policy => policy,
    };
    match policy {
        "Always" => true,
        "OnFailure" => exit_code != 0,
        _ => false,
    }
}

fn names_code(rule: &Value, exit_code: i64) -> bool {
    let codes = rule.map("exitCodes");
    let holds = codes
        .list("values")
        .iter()
        .any(|code| code.as_i64() == Some(exit_code));
    match codes.text("operator") {
        "In" => holds,
        "NotIn" => !holds,
        _ => false,
    }
}

fn addresses(errors: &mut Errors, path: &str, new: &[Value], old: &[Value]) {
    let mut families = Vec::new();
    for (at, address) in new.iter().enumerate() {
        let ip = address.text("ip");
        if old.iter().any(|before| before.text("ip") == ip) {
            families.extend(ip.parse().ok().map(|ip: IpAddr| ip.is_ipv4()));
        } else {
            families.extend(rules::ip(errors, &index(path, at), ip).map(|ip| ip.is_ipv4()));
        }
    }
    let same_family = matches!(families[..], [first, second] if first == second);
    if same_family || new.len() > 2 {
        errors.push(FieldError::invalid(
            path,
            new.to_vec(),
            "may specify no more than one IP for each IP family",
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    fn check(spec: Value, old: Value, new: Value, wanted: &[&str]) {
        let pod = |status: Value| map(json!({"spec": spec, "status": status}));
        assert_eq!(texts(&validate(&pod(new.clone()), &pod(old))), wanted, "{new}");
    }

    #[test]
    fn ended_containers_come_back_only_by_policy() {
        let ended = |code: i64| json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": code}}}]});
        let running = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]});
        let refused =
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
        for (policy, code, wanted) in [
            ("Always", 0, vec![]),
            ("OnFailure", 1, vec![]),
            ("OnFailure", 0, vec![refused]),
            ("Never", 1, vec![refused]),
        ] {
            let spec = json!({"restartPolicy": policy, "containers": [{"name": "c"}]});
            check(spec, ended(code), running.clone(), &wanted);
        }
        let own = json!({"restartPolicy": "Never", "containers": [{"name": "c", "restartPolicy": "Always"}]});
        check(own, ended(0), running, &[]);
        let ephemeral = |state: Value| json!({"ephemeralContainerStatuses": [{"name": "e", "state": state}]});
        let refused = "status.ephemeralContainerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
        for (after, wanted) in [
            (ephemeral(json!({"running": {}})), vec![refused]),
            (ephemeral(json!({"terminated": {"exitCode": 1}})), vec![]),
            (json!({}), vec![]),
        ] {
            let before = ephemeral(json!({"terminated": {"exitCode": 1}}));
            check(json!({"restartPolicy": "Always"}), before, after, &wanted);
        }
    }

    #[test]
    fn addresses_and_classes_are_checked() {
        check(
            json!({}),
            json!({"qosClass": "BestEffort"}),
            json!({"qosClass": "Burstable", "podIPs": [{"ip": "x"}], "hostIPs": [{"ip": "10.0.0.1"}],
                   "conditions": [{"type": "a b"}, {"type": "Ready"}]}),
            &[
                "status.conditions[0].Type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "status.qosClass: Invalid value: \"Burstable\": field is immutable",
                "status.podIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                "status.hostIPs[0].ip: Invalid value: \"10.0.0.1\": must be equal to `hostIP`",
            ],
        );
        check(
            json!({}),
            json!({}),
            json!({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}),
            &[
                "status.podIPs: Invalid value: [{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"}]: may specify no more than one IP for each IP family",
            ],
        );
    }
}
