//! The spec as a whole, in the order in which upstream looks at it.
//!
//! Paths and texts follow `ValidatePodSpec` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36. Not checked:
//! resource claims, windows options; nothing here acts on them.

use hotmap_object::{FieldError, names};
use serde_json::{Map, Value};

use super::{affinity, container, environment, security, volume};
use crate::{
    fields::Fields,
    metadata,
    node::taint_effect,
    rules::{self, Errors, broken, child, index},
};

const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
const RESTART_POLICIES: &[&str] = &["Always", "OnFailure", "Never"];
const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PREEMPTION_POLICIES: &[&str] = &["Never", "PreemptLowerPriority"];
const TOLERATION_OPERATORS: &[&str] = &["Equal", "Exists"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_BYTES_MAX: usize = 2048;

/// Whose spec it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Pod,
    /// Some fields are filled in only when a pod is made of it.
    Template,
}

/// Everything that must hold on create and on update alike.
pub(super) fn metadata_and_spec(errors: &mut Errors, pod: &Map<String, Value>) {
    let spec = pod.map("spec");
    mirrors_have_a_node(
        errors,
        "metadata.annotations",
        pod.map("metadata").map("annotations"),
        spec,
    );
    validate(errors, spec, Of::Pod);
    tokens_need_an_account(errors, spec);
    container::trimmed_images(errors, spec);
}

/// A node's own pod names its node.
pub(super) fn mirrors_have_a_node(
    errors: &mut Errors,
    path: &str,
    annotations: &Map<String, Value>,
    spec: &Map<String, Value>,
) {
    if annotations.contains_key(MIRROR_ANNOTATION) && !spec.has("nodeName") {
        errors.push(FieldError::invalid(
            rules::key(path, MIRROR_ANNOTATION),
            annotations.text(MIRROR_ANNOTATION),
            "must set spec.nodeName if mirror pod annotation is set",
        ));
    }
}

/// What a new pod may not have, though an old one may.
pub(super) fn only_on_create(errors: &mut Errors, spec: &Map<String, Value>) {
    if spec.has("ephemeralContainers") {
        errors.push(FieldError::forbidden(
            "spec.ephemeralContainers",
            "cannot be set on create",
        ));
    }
    if spec.has("nodeName") && spec.has("schedulingGates") {
        errors.push(FieldError::forbidden(
            "spec.nodeName",
            "cannot be set until all schedulingGates have been cleared",
        ));
    }
}

/// The kernel takes no more.
const HOSTNAME_OVERRIDE_BYTES_MAX: usize = 64;

/// Checks a spec at the path `spec`.
pub(super) fn validate(errors: &mut Errors, spec: &Map<String, Value>, of: Of) {
    if spec.int("terminationGracePeriodSeconds").is_none() {
        errors.push(FieldError::required("spec.terminationGracePeriodSeconds", ""));
    }
    let volumes = volume::validate(errors, spec);
    container::validate(errors, spec, &volumes);
    host_network_ports(errors, spec, of);
    one_of(errors, spec, "restartPolicy", RESTART_POLICIES);
    one_of(errors, spec, "dnsPolicy", DNS_POLICIES);
    metadata::labels(errors, "spec.nodeSelector", spec.map("nodeSelector"));
    security::pod(errors, spec);
    affinity::validate(errors, spec);
    dns_config(errors, spec);
    for (at, gate) in spec.list("readinessGates").iter().enumerate() {
        let path = child(&index("spec.readinessGates", at), "conditionType");
        rules::qualified_name(errors, &path, gate.text("conditionType"));
    }
    scheduling_gates(errors, spec.list("schedulingGates"));
    affinity::topology_spread(errors, spec);
    security::host_users(errors, spec);
    named(errors, spec, "serviceAccountName", rules::subdomain);
    named(errors, spec, "nodeName", rules::subdomain);
    if let Some(seconds) = spec.int("activeDeadlineSeconds") {
        deadline(errors, seconds, 1);
    }
    named(errors, spec, "hostname", rules::label);
    named(errors, spec, "subdomain", rules::label);
    tolerations(errors, spec.list("tolerations"));
    host_aliases(errors, spec.list("hostAliases"));
    named(errors, spec, "priorityClassName", rules::subdomain);
    named(errors, spec, "runtimeClassName", rules::subdomain);
    if spec.has("preemptionPolicy") {
        one_of(errors, spec, "preemptionPolicy", PREEMPTION_POLICIES);
    }
    environment::file_volumes(errors, spec);
    hostname_override(errors, spec);
}

/// Checks the bounds of `activeDeadlineSeconds`; returns whether they hold.
pub(super) fn deadline(errors: &mut Errors, seconds: i64, low: i64) -> bool {
    let rules = rules::in_range(seconds, low, i64::from(i32::MAX));
    let holds = rules.is_empty();
    let path = "spec.activeDeadlineSeconds";
    errors.extend(
        rules
            .into_iter()
            .map(|rule| FieldError::invalid(path, seconds, rule)),
    );
    holds
}

fn one_of(errors: &mut Errors, spec: &Map<String, Value>, field: &str, supported: &[&str]) {
    let value = spec.text(field);
    if value.is_empty() {
        errors.push(FieldError::required(child("spec", field), ""));
    } else if !supported.contains(&value) {
        errors.push(FieldError::not_supported(child("spec", field), value, supported));
    }
}

fn named(errors: &mut Errors, spec: &Map<String, Value>, field: &str, rule: fn(&str) -> Vec<String>) {
    let name = spec.text(field);
    if !name.is_empty() {
        broken(errors, &child("spec", field), name, rule(name));
    }
}

/// `validateHostnameOverride`.
fn hostname_override(errors: &mut Errors, spec: &Map<String, Value>) {
    const FIELD: &str = "hostnameOverride";
    if !spec.has(FIELD) {
        return;
    }
    let path = child("spec", FIELD);
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.is_set(other) {
            let why = format!("may not be specified when {other} is true");
            errors.push(FieldError::forbidden(&path, why));
        }
    }
    if spec.text(FIELD).len() > HOSTNAME_OVERRIDE_BYTES_MAX {
        errors.push(FieldError::too_long(&path, HOSTNAME_OVERRIDE_BYTES_MAX));
    }
    named(errors, spec, FIELD, rules::subdomain);
}

fn host_network_ports(errors: &mut Errors, spec: &Map<String, Value>, of: Of) {
    if !spec.is_set("hostNetwork") {
        return;
    }
    for (at, container) in spec.list("containers").iter().enumerate() {
        for (port_at, port) in container.list("ports").iter().enumerate() {
            let number = |field| port.int(field).unwrap_or_default();
            let is_due = of == Of::Pod || number("hostPort") != 0;
            if is_due && number("hostPort") != number("containerPort") {
                let ports = child(&index("spec.containers", at), "ports");
                errors.push(FieldError::invalid(
                    child(&index(&ports, port_at), "hostPort"),
                    number("hostPort"),
                    "must match `containerPort` when `hostNetwork` is true",
                ));
            }
        }
    }
}

fn dns_config(errors: &mut Errors, spec: &Map<String, Value>) {
    const PATH: &str = "spec.dnsConfig";
    let config = spec.member("dnsConfig");
    if spec.text("dnsPolicy") == "None" {
        let rule = match config {
            None => Some((
                PATH.to_owned(),
                "must provide `dnsConfig` when `dnsPolicy` is None",
            )),
            Some(config) if config.list("nameservers").is_empty() => Some((
                child(PATH, "nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            )),
            Some(_) => None,
        };
        if let Some((path, rule)) = rule {
            errors.push(FieldError::required(path, rule));
            return;
        }
    }
    let Some(config) = config else { return };
    let (servers, searches) = (config.list("nameservers"), config.list("searches"));
    let path = child(PATH, "nameservers");
    if servers.len() > NAMESERVERS_MAX {
        let rule = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(FieldError::invalid(path.as_str(), servers.to_vec(), rule));
    }
    for (at, server) in servers.iter().enumerate() {
        rules::ip(errors, &index(&path, at), server.as_str().unwrap_or_default());
    }
    let path = child(PATH, "searches");
    if searches.len() > SEARCHES_MAX {
        let rule = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(FieldError::invalid(path.as_str(), searches.to_vec(), rule));
    }
    let bytes: usize = searches
        .iter()
        .filter_map(Value::as_str)
        .map(|one| one.len() + 1)
        .sum();
    if bytes.saturating_sub(1) > SEARCH_BYTES_MAX {
        let rule = format!(
            "must not have more than {SEARCH_BYTES_MAX} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(path.as_str(), searches.to_vec(), rule));
    }
    for (at, option) in config.list("options").iter().enumerate() {
        if !option.has("name") {
            let path = index(&child(PATH, "options"), at);
            errors.push(FieldError::required(path, "must not be empty"));
        }
    }
}

fn scheduling_gates(errors: &mut Errors, gates: &[Value]) {
    for (at, gate) in gates.iter().enumerate() {
        let (path, name) = (index("spec.schedulingGates", at), gate.text("name"));
        rules::qualified_name(errors, &path, name);
        if gates[..at].iter().any(|earlier| earlier.text("name") == name) {
            errors.push(FieldError::duplicate(path, name));
        }
    }
}

/// Checks tolerations.
pub(super) fn tolerations(errors: &mut Errors, tolerations: &[Value]) {
    for (at, toleration) in tolerations.iter().enumerate() {
        let path = index("spec.tolerations", at);
        let text = |field| toleration.text(field);
        let operator_path = child(&path, "operator");
        match (text("key"), text("operator")) {
            ("", "Exists") => {}
            ("", operator) => errors.push(FieldError::invalid(
                operator_path.as_str(),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            )),
            (key, _) => rules::qualified_name(errors, &child(&path, "key"), key),
        }
        if toleration.member("tolerationSeconds").is_some() && text("effect") != "NoExecute" {
            errors.push(FieldError::invalid(
                child(&path, "effect"),
                text("effect"),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        match text("operator") {
            "" | "Equal" => {
                let rules = names::label_value(text("value"));
                if !rules.is_empty() {
                    errors.push(FieldError::invalid(operator_path, text("value"), rules.join(";")));
                }
            }
            "Exists" => {
                if toleration.has("value") {
                    let rule = "value must be empty when `operator` is 'Exists'";
                    errors.push(FieldError::invalid(operator_path, text("value"), rule));
                }
            }
            other => errors.push(FieldError::not_supported(
                operator_path,
                other,
                TOLERATION_OPERATORS,
            )),
        }
        if toleration.has("effect") {
            taint_effect(errors, child(&path, "effect"), text("effect"));
        }
    }
}

fn host_aliases(errors: &mut Errors, aliases: &[Value]) {
    for (at, alias) in aliases.iter().enumerate() {
        let path = index("spec.hostAliases", at);
        rules::ip(errors, &child(&path, "ip"), alias.text("ip"));
        for (name_at, name) in alias.list("hostnames").iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let path = index(&child(&path, "hostnames"), name_at);
            broken(errors, &path, name, rules::subdomain(name));
        }
    }
}

fn tokens_need_an_account(errors: &mut Errors, spec: &Map<String, Value>) {
    if spec.has("serviceAccountName") {
        return;
    }
    for (at, volume) in spec.list("volumes").iter().enumerate() {
        for (source_at, source) in volume.map("projected").list("sources").iter().enumerate() {
            if source.member("serviceAccountToken").is_some() {
                errors.push(FieldError::forbidden(
                    format!("spec.volumes[{at}].projected.sources[{source_at}].serviceAccountToken"),
                    "must not be specified when serviceAccountName is not set",
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Strategy,
        pod::Pod,
        testing::{map, texts},
    };

    fn check(with: Value, wanted: &[&str]) {
        let mut spec = map(json!({"containers": [{"name": "c", "image": "i"}]}));
        spec.extend(map(with));
        let mut pod = map(json!({ "spec": spec }));
        Pod.default(&mut pod);
        assert_eq!(texts(&Pod.validate(&pod)), wanted, "{pod:?}");
    }

    #[test]
    fn a_defaulted_pod_is_valid() {
        check(json!({}), &[]);
    }

    #[test]
    fn policies_come_from_a_list() {
        check(
            json!({"restartPolicy": "Sometimes", "dnsPolicy": "None"}),
            &[
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
                "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
            ],
        );
        check(
            json!({"dnsPolicy": "X"}),
            &[
                "spec.dnsPolicy: Unsupported value: \"X\": supported values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
            ],
        );
    }

    #[test]
    fn names_in_the_spec_have_their_alphabets() {
        check(
            json!({"nodeName": "N", "hostname": "a.b", "activeDeadlineSeconds": 0}),
            &[
                "spec.nodeName: Invalid value: \"N\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
                "spec.hostname: Invalid value: \"a.b\": must not contain dots",
            ],
        );
    }

    #[test]
    fn a_host_name_of_its_own_stands_alone_and_fits() {
        let long = "a".repeat(65);
        check(json!({"hostnameOverride": "one.two"}), &[]);
        check(
            json!({"hostnameOverride": long, "setHostnameAsFQDN": true, "hostNetwork": true}),
            &[
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
                "spec.hostnameOverride: Too long: may not be more than 64 bytes",
            ],
        );
    }

    #[test]
    fn tolerations_and_aliases_are_checked() {
        check(
            json!({"tolerations": [{"operator": "Exists"}, {"value": "x"},
                                   {"key": "k", "operator": "Exists", "value": "v", "tolerationSeconds": 1}],
                   "hostAliases": [{"ip": "x", "hostnames": ["ok"]}]}),
            &[
                "spec.tolerations[1].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                "spec.tolerations[2].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
                "spec.tolerations[2].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
                "spec.hostAliases[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        );
    }

    #[test]
    fn some_things_are_only_for_later_or_for_accounts() {
        check(
            json!({"ephemeralContainers": [{"name": "e", "image": "i"}]}),
            &["spec.ephemeralContainers: Forbidden: cannot be set on create"],
        );
        check(
            json!({"nodeName": "n", "schedulingGates": [{"name": "a/b"}]}),
            &["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        );
        check(
            json!({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}),
            &[
                "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
            ],
        );
        check(
            json!({"containers": [{"name": "c", "image": " i"}]}),
            &[
                "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace",
            ],
        );
    }
}
