//! Containers, init containers and what ephemeral ones have in common with them.
//!
//! Paths and texts follow `validateContainers` and `validateInitContainers` in
//! `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use std::collections::BTreeSet;

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::{environment, ephemeral, probe, resources, security, stop_signal, volume_mount};
use crate::{
    fields::Fields,
    rules::{self, Errors, broken, child, index},
};

const CONTAINERS: &str = "spec.containers";
const INIT_CONTAINERS: &str = "spec.initContainers";
const MESSAGE_POLICIES: &[&str] = &["File", "FallbackToLogsOnError"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const RESTART_ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];
const EXIT_CODE_OPERATORS: &[&str] = &["In", "NotIn"];
const RESTART_RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";

/// What containers are checked against.
pub(super) struct Surroundings<'a> {
    volumes: &'a BTreeSet<&'a str>,
    grace_seconds: Option<i64>,
    os: Option<&'a str>,
    on_host_users: bool,
}

/// Checks all containers of a pod; ephemeral ones come through their own sub-resource and stay.
pub(super) fn validate(errors: &mut Errors, spec: &Map<String, Value>, volumes: &BTreeSet<&str>) {
    let surroundings = Surroundings {
        volumes,
        grace_seconds: spec.int("terminationGracePeriodSeconds"),
        os: spec.member("os").map(|os| os.text("name")),
        on_host_users: security::on_host_users(spec),
    };
    let containers = spec.list("containers");
    if containers.is_empty() {
        errors.push(FieldError::required(CONTAINERS, ""));
    }
    for (at, container) in containers.iter().enumerate() {
        let path = index(CONTAINERS, at);
        common(errors, &path, container, &surroundings);
        unique_name(errors, &path, container, &[&containers[..at]]);
        running(errors, &path, container, &surroundings);
        restart_policy(errors, &path, container);
    }
    host_port_conflicts(errors, CONTAINERS, containers);
    let init = spec.list("initContainers");
    for (at, container) in init.iter().enumerate() {
        let path = index(INIT_CONTAINERS, at);
        common(errors, &path, container, &surroundings);
        restart_policy(errors, &path, container);
        unique_name(errors, &path, container, &[containers, &init[..at]]);
        // They run one after the other, so their ports do not meet.
        host_port_conflicts(errors, INIT_CONTAINERS, std::slice::from_ref(container));
        if container.text("restartPolicy") == "Always" {
            running(errors, &path, container, &surroundings);
        } else {
            let fields = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];
            let set = fields
                .into_iter()
                .filter(|field| container.member(field).is_some());
            errors.extend(set.map(|field| FieldError::forbidden(child(&path, field), ONLY_SIDECARS)));
        }
    }
    ephemeral::validate(errors, spec, &surroundings);
}

/// Images of pods have no blanks around them; those of templates may.
pub(super) fn trimmed_images(errors: &mut Errors, spec: &Map<String, Value>) {
    for (path, list) in [(CONTAINERS, "containers"), (INIT_CONTAINERS, "initContainers")] {
        for (at, container) in spec.list(list).iter().enumerate() {
            trimmed_image(errors, &index(path, at), container);
        }
    }
}

pub(super) fn trimmed_image(errors: &mut Errors, path: &str, container: &Value) {
    let image = container.text("image");
    if image.trim() != image {
        errors.push(FieldError::invalid(
            child(path, "image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
}

/// What holds for a container of every list.
pub(super) fn common(errors: &mut Errors, path: &str, container: &Value, surroundings: &Surroundings<'_>) {
    match container.text("name") {
        "" => errors.push(FieldError::required(child(path, "name"), "")),
        name => broken(errors, &child(path, "name"), name, rules::label(name)),
    }
    if !container.has("image") {
        errors.push(FieldError::required(child(path, "image"), ""));
    }
    chosen(
        errors,
        path,
        container,
        "terminationMessagePolicy",
        MESSAGE_POLICIES,
    );
    ports(errors, &child(path, "ports"), container.list("ports"));
    environment::variables(errors, &child(path, "env"), container.list("env"));
    environment::sources(errors, &child(path, "envFrom"), container.list("envFrom"));
    volume_mount::validate(
        errors,
        &child(path, "volumeMounts"),
        container,
        surroundings.volumes,
    );
    chosen(errors, path, container, "imagePullPolicy", PULL_POLICIES);
    resources::validate(errors, &child(path, "resources"), container.map("resources"));
    if let Some(context) = container.member("securityContext") {
        security::container(
            errors,
            &child(path, "securityContext"),
            context,
            surroundings.on_host_users,
        );
    }
}

fn running(errors: &mut Errors, path: &str, container: &Value, surroundings: &Surroundings<'_>) {
    if let Some(lifecycle) = container.member("lifecycle") {
        probe::lifecycle(
            errors,
            &child(path, "lifecycle"),
            lifecycle,
            surroundings.grace_seconds,
        );
        if let Some(signal) = lifecycle.member("stopSignal").and_then(Value::as_str) {
            let path = child(path, "lifecycle.stopSignal");
            stop_signal::validate(errors, path, signal, surroundings.os);
        }
    }
    probe::probes(errors, path, container, surroundings.grace_seconds);
}

fn chosen(errors: &mut Errors, path: &str, container: &Value, field: &str, supported: &[&str]) {
    let value = container.text(field);
    if value.is_empty() {
        errors.push(FieldError::required(child(path, field), ""));
    } else if !supported.contains(&value) {
        errors.push(FieldError::not_supported(child(path, field), value, supported));
    }
}

pub(super) fn unique_name(errors: &mut Errors, path: &str, container: &Value, earlier: &[&[Value]]) {
    let name = container.text("name");
    let mut others = earlier.iter().flat_map(|list| list.iter());
    if others.any(|other| other.text("name") == name) {
        errors.push(FieldError::duplicate(child(path, "name"), name));
    }
}

fn ports(errors: &mut Errors, path: &str, ports: &[Value]) {
    let mut names = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = index(path, at);
        let name = port.text("name");
        let name_rules = if name.is_empty() {
            Vec::new()
        } else {
            rules::port_name(name)
        };
        if !name_rules.is_empty() {
            broken(errors, &child(&path, "name"), name, name_rules);
        } else if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(child(&path, "name"), name));
        }
        match port.int("containerPort").unwrap_or_default() {
            0 => errors.push(FieldError::required(child(&path, "containerPort"), "")),
            number => rules::port_number(errors, &child(&path, "containerPort"), number),
        }
        if let Some(number) = port.int("hostPort").filter(|number| *number != 0) {
            rules::port_number(errors, &child(&path, "hostPort"), number);
        }
        rules::protocol(errors, child(&path, "protocol"), port.text("protocol"));
    }
}

fn host_port_conflicts(errors: &mut Errors, path: &str, containers: &[Value]) {
    let mut taken = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        for (port_at, port) in container.list("ports").iter().enumerate() {
            let Some(number) = port.int("hostPort").filter(|number| *number != 0) else {
                continue;
            };
            let place = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if taken.contains(&place) {
                let path = index(&child(&index(path, at), "ports"), port_at);
                errors.push(FieldError::duplicate(child(&path, "hostPort"), place));
            } else {
                taken.insert(place);
            }
        }
    }
}

fn restart_policy(errors: &mut Errors, path: &str, container: &Value) {
    let rules = container.list("restartPolicyRules");
    let policy_path = child(path, "restartPolicy");
    match container.member("restartPolicy").and_then(Value::as_str) {
        None if !rules.is_empty() => {
            let rule = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(policy_path, rule));
        }
        None => {}
        Some(policy) if RESTART_POLICIES.contains(&policy) => {}
        Some(policy) => errors.push(FieldError::not_supported(policy_path, policy, RESTART_POLICIES)),
    }
    let path = child(path, "restartPolicyRules");
    if rules.len() > RESTART_RULES_MAX {
        errors.push(FieldError::too_many(
            path.as_str(),
            rules.len(),
            RESTART_RULES_MAX,
        ));
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = index(&path, at);
        let action = rule.text("action");
        if !RESTART_ACTIONS.contains(&action) {
            errors.push(FieldError::not_supported(
                child(&path, "action"),
                action,
                RESTART_ACTIONS,
            ));
        }
        let path = child(&path, "exitCodes");
        let Some(codes) = rule.member("exitCodes") else {
            errors.push(FieldError::required(path, "must be specified"));
            continue;
        };
        let operator = codes.text("operator");
        if !EXIT_CODE_OPERATORS.contains(&operator) {
            errors.push(FieldError::not_supported(
                child(&path, "operator"),
                operator,
                EXIT_CODE_OPERATORS,
            ));
        }
        let values = codes.list("values").len();
        if values > EXIT_CODES_MAX {
            errors.push(FieldError::too_many(
                child(&path, "values"),
                values,
                EXIT_CODES_MAX,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    /// A valid container with other members put over it.
    fn container(with: Value) -> Value {
        let mut container = map(json!({"name": "c", "image": "i", "imagePullPolicy": "Always",
                                       "terminationMessagePolicy": "File"}));
        container.extend(map(with));
        Value::Object(container)
    }

    fn check(spec: Value, wanted: &[&str]) {
        let mut errors = Vec::new();
        validate(&mut errors, &map(spec.clone()), &BTreeSet::new());
        assert_eq!(texts(&errors), wanted, "{spec}");
    }

    #[test]
    fn containers_have_names_and_images() {
        check(json!({"containers": [container(json!({}))]}), &[]);
        check(json!({}), &["spec.containers: Required value"]);
        check(
            json!({"containers": [container(json!({"name": "", "image": ""}))]}),
            &[
                "spec.containers[0].name: Required value",
                "spec.containers[0].image: Required value",
            ],
        );
        check(
            json!({"containers": [container(json!({})), container(json!({}))],
                   "initContainers": [container(json!({}))]}),
            &[
                "spec.containers[1].name: Duplicate value: \"c\"",
                "spec.initContainers[0].name: Duplicate value: \"c\"",
            ],
        );
        check(
            json!({"containers": [container(json!({"imagePullPolicy": "Sometimes"}))]}),
            &[
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
            ],
        );
    }

    #[test]
    fn ports_have_numbers_names_and_protocols() {
        let tcp = |port: Value| {
            let mut held = map(json!({"containerPort": 80, "protocol": "TCP"}));
            held.extend(map(port));
            Value::Object(held)
        };
        check(
            json!({"containers": [container(json!({"ports": [
                tcp(json!({"name": "a"})), tcp(json!({"name": "a"})), tcp(json!({"containerPort": 0})),
                tcp(json!({"containerPort": 65536, "protocol": "tcp"}))]}))]}),
            &[
                "spec.containers[0].ports[1].name: Duplicate value: \"a\"",
                "spec.containers[0].ports[2].containerPort: Required value",
                "spec.containers[0].ports[3].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
                "spec.containers[0].ports[3].protocol: Unsupported value: \"tcp\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
            ],
        );
        let host = container(json!({"ports": [tcp(json!({"hostPort": 80}))]}));
        let mut other = host.clone();
        other["name"] = json!("d");
        check(
            json!({"containers": [host, other]}),
            &["spec.containers[1].ports[0].hostPort: Duplicate value: \"TCP//80\""],
        );
    }

    #[test]
    fn init_containers_are_not_probed_unless_they_stay() {
        let probed = json!({"name": "i", "readinessProbe": {"exec": {"command": ["a"]}}});
        check(
            json!({"containers": [container(json!({}))], "initContainers": [container(probed.clone())]}),
            &[
                "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
            ],
        );
        let mut sidecar = container(probed);
        sidecar["restartPolicy"] = json!("Always");
        check(
            json!({"containers": [container(json!({}))], "initContainers": [sidecar]}),
            &[],
        );
        check(
            json!({"containers": [container(json!({"restartPolicy": "Maybe"}))]}),
            &[
                "spec.containers[0].restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \"Never\", \"OnFailure\"",
            ],
        );
    }

    #[test]
    fn restart_rules_go_with_a_policy_and_name_exit_codes() {
        let rules = |rules: Value| container(json!({"restartPolicy": "Never", "restartPolicyRules": rules}));
        let good = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}});
        check(json!({"containers": [rules(json!([good]))]}), &[]);
        check(
            json!({"containers": [container(json!({"restartPolicyRules": [good]}))]}),
            &[
                "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            ],
        );
        check(
            json!({"containers": [rules(json!([{"action": "Stop"}, {"action": "Restart",
                "exitCodes": {"operator": "Like", "values": vec![1; 256]}}]))]}),
            &[
                "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \"Restart\", \"RestartAllContainers\"",
                "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified",
                "spec.containers[0].restartPolicyRules[1].exitCodes.operator: Unsupported value: \"Like\": supported values: \"In\", \"NotIn\"",
                "spec.containers[0].restartPolicyRules[1].exitCodes.values: Too many: 256: must have at most 255 items",
            ],
        );
        check(
            json!({"containers": [rules(json!(vec![good; 21]))]}),
            &["spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"],
        );
    }
}
