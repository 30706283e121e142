//! Node: a machine that runs pods.
//!
//! Rules follow `pkg/registry/core/node/strategy.go` and `pkg/apis/core/validation/validation.go` (`ValidateNode`),
//! Kubernetes 1.36.

use std::collections::BTreeSet;

use hotmap_object::{FieldError, names};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, map_mut},
    quantity,
    rules::{Errors, broken, child, index},
    table,
};

const ROLE_LABEL_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";
const TAINT_EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The rules of Nodes.
pub(crate) struct Node;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column(
        "Status",
        "string",
        "Whether the node is ready, and whether new pods may come.",
    ),
    table::column("Roles", "string", "Roles that its labels give it."),
    table::AGE,
    table::column("Version", "string", "Release of the node agent."),
    table::wide("Internal-IP", "string", "Address within the cluster."),
    table::wide("External-IP", "string", "Address for the outside."),
    table::wide("OS-Image", "string", "Operating system as it calls itself."),
    table::wide("Kernel-Version", "string", "Kernel release and architecture."),
    table::wide(
        "Container-Runtime",
        "string",
        "What runs containers, with its release.",
    ),
];

impl Strategy for Node {
    fn default(&self, object: &mut Map<String, Value>) {
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
            && status.member("allocatable").is_none()
            && let Some(capacity) = status.member("capacity").cloned()
        {
            status.insert("allocatable".to_owned(), capacity);
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            join_pod_cidrs(spec);
        }
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        drop_dynamic_config(object);
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        if subresource == "status" {
            keep(new, old, "spec");
        } else {
            keep(new, old, "status");
            drop_dynamic_config(new);
        }
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        // Upstream puts taints below metadata; clients see that path.
        taints(&mut errors, "metadata.taints", object.map("spec").list("taints"));
        resources(&mut errors, object);
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        let mut errors = self.validate(new);
        let addresses = new.map("status").list("addresses");
        for (at, address) in addresses.iter().enumerate() {
            if addresses[..at].contains(address) {
                errors.push(FieldError::duplicate(
                    index("status.addresses", at),
                    address.clone(),
                ));
            }
        }
        set_once(&mut errors, new.map("spec"), old.map("spec"));
        errors
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.unschedulable"]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        let cordoned = object.map("spec").is_set("unschedulable");
        vec![("spec.unschedulable", cordoned.to_string())]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let info = object.map("status").map("nodeInfo");
        let known = |text: &str| {
            if text.is_empty() {
                "<unknown>".to_owned()
            } else {
                text.to_owned()
            }
        };
        let mut kernel = known(info.text("kernelVersion"));
        if info.has("architecture") {
            kernel = format!("{kernel} ({})", info.text("architecture"));
        }
        vec![
            table::name(object),
            readiness(object).into(),
            roles(object).into(),
            table::age(object, now),
            info.text("kubeletVersion").into(),
            address(object, "InternalIP"),
            address(object, "ExternalIP"),
            known(info.text("osImage")).into(),
            kernel.into(),
            known(info.text("containerRuntimeVersion")).into(),
        ]
    }
}

/// The first network of the node is written in two places; the single field wins where they differ.
fn join_pod_cidrs(spec: &mut Map<String, Value>) {
    let (single, first) = (spec.text("podCIDR"), spec.list("podCIDRs").first());
    match (single, first.and_then(Value::as_str)) {
        ("", Some(first)) if !first.is_empty() => {
            let first = first.to_owned();
            spec.insert("podCIDR".to_owned(), first.into());
        }
        (single, first) if !single.is_empty() && first != Some(single) => {
            let all = json!([single]);
            spec.insert("podCIDRs".to_owned(), all);
        }
        _ => {}
    }
}

/// Configuration of a kubelet through its Node was removed from Kubernetes; the fields are left.
fn drop_dynamic_config(object: &mut Map<String, Value>) {
    for (part, field) in [("spec", "configSource"), ("status", "config")] {
        if object.contains_key(part)
            && let Some(part) = map_mut(object, part)
        {
            part.remove(field);
        }
    }
}

fn taints(errors: &mut Errors, path: &str, taints: &[Value]) {
    for (at, taint) in taints.iter().enumerate() {
        let path = index(path, at);
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        broken(errors, &child(&path, "key"), key, names::qualified_name(key));
        let rules = names::label_value(value);
        if !rules.is_empty() {
            errors.push(FieldError::invalid(child(&path, "value"), value, rules.join(";")));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(child(&path, "effect"), ""));
        } else {
            taint_effect(errors, child(&path, "effect"), effect);
        }
        let same = |earlier: &Value| earlier.text("key") == key && earlier.text("effect") == effect;
        if taints[..at].iter().any(same) {
            let mut error = FieldError::duplicate(path, taint.clone());
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
}

/// Checks the effect of a taint, or the one that a toleration names.
pub(crate) fn taint_effect(errors: &mut Errors, path: String, effect: &str) {
    if !TAINT_EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(path, effect, TAINT_EFFECTS));
    }
}

fn resources(errors: &mut Errors, object: &Map<String, Value>) {
    for part in ["capacity", "allocatable"] {
        for (name, amount) in object.map("status").map(part) {
            quantity::check_amount(errors, &format!("status.{part}.{name}"), name, amount);
        }
    }
}

fn set_once(errors: &mut Errors, new: &Map<String, Value>, old: &Map<String, Value>) {
    if old.has("podCIDRs") && new.list("podCIDRs") != old.list("podCIDRs") {
        errors.push(FieldError::forbidden(
            "spec.podCIDRs",
            "node updates may not change podCIDR except from \"\" to valid",
        ));
    }
    if old.has("providerID") && new.text("providerID") != old.text("providerID") {
        errors.push(FieldError::forbidden(
            "spec.providerID",
            "node updates may not change providerID except from \"\" to valid",
        ));
    }
    if new.text("externalID") != old.text("externalID") {
        errors.push(FieldError::forbidden("spec.externalID", "may not be updated"));
    }
}

fn readiness(object: &Map<String, Value>) -> String {
    let conditions = object.map("status").list("conditions");
    let ready = conditions
        .iter()
        .rfind(|condition| condition.text("type") == "Ready");
    let status = match ready.map(|condition| condition.text("status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if object.map("spec").is_set("unschedulable") {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

fn roles(object: &Map<String, Value>) -> String {
    let labels = object.map("metadata").map("labels");
    let roles: BTreeSet<&str> = labels
        .iter()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_LABEL_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE_LABEL => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return table::NONE.to_owned();
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address(object: &Map<String, Value>, of: &str) -> Value {
    let addresses = object.map("status").list("addresses");
    let found = addresses.iter().find(|address| address.text("type") == of);
    found.map_or_else(|| table::NONE.into(), |address| address.text("address").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn the_first_network_is_in_both_places() {
        for (spec, wanted) in [
            (
                json!({"podCIDR": "a"}),
                json!({"podCIDR": "a", "podCIDRs": ["a"]}),
            ),
            (
                json!({"podCIDRs": ["a", "b"]}),
                json!({"podCIDR": "a", "podCIDRs": ["a", "b"]}),
            ),
            (json!({}), json!({})),
        ] {
            let mut node = map(json!({ "spec": spec }));
            Node.default(&mut node);
            assert_eq!(node["spec"], wanted);
        }
    }

    #[test]
    fn taints_and_resources_are_checked() {
        let table = [
            (
                json!({"spec": {"taints": [{"key": "a/b", "effect": "NoSchedule"}, {"key": "a/b", "effect": "NoExecute"}]}}),
                vec![],
            ),
            (
                json!({"spec": {"taints": [{"key": "k", "effect": "Never"}, {"key": "k", "value": "v"}]}}),
                vec![
                    "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                    "metadata.taints[1].effect: Required value",
                ],
            ),
            (
                json!({"status": {"capacity": {"cpu": "-1"}}}),
                vec!["status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
        ];
        for (object, wanted) in table {
            assert_eq!(texts(&Node.validate(&map(object.clone()))), wanted, "{object}");
        }
    }

    #[test]
    fn identity_is_set_once() {
        let old = map(json!({"spec": {"podCIDRs": ["10.0.0.0/24"], "providerID": "a"}}));
        let new = map(json!({"spec": {"providerID": "b"}}));
        assert_eq!(
            texts(&Node.validate_update(&new, &old, "")),
            [
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
                "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
            ]
        );
        assert_eq!(texts(&Node.validate_update(&old, &new, "")).len(), 1);
    }

    #[test]
    fn each_path_writes_its_own_half() {
        let old = map(json!({"spec": {"providerID": "a"}, "status": {"phase": "old"}}));
        let written = json!({"spec": {"unschedulable": true}, "status": {"phase": "new"}});
        for (subresource, wanted) in [
            (
                "",
                json!({"spec": {"unschedulable": true}, "status": {"phase": "old"}}),
            ),
            (
                "status",
                json!({"spec": {"providerID": "a"}, "status": {"phase": "new"}}),
            ),
        ] {
            let mut new = map(written.clone());
            Node.prepare_for_update(&mut new, &old, subresource);
            assert_eq!(Value::Object(new), wanted);
        }
    }

    #[test]
    fn the_row_tells_readiness_and_roles() {
        let now = "2026-01-01T00:00:05Z".parse().expect("a time");
        let node = map(
            json!({"metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
            "spec": {"unschedulable": true},
            "status": {"conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "amd64", "osImage": "os"}}}),
        );
        assert_eq!(
            Value::Array(Node.cells(&node, now)),
            json!([
                "n",
                "Ready,SchedulingDisabled",
                "edge,worker",
                "5s",
                "v1",
                "10.0.0.1",
                "<none>",
                "os",
                "6.1 (amd64)",
                "<unknown>"
            ])
        );
        assert_eq!(Node.cells(&map(json!({})), now)[1], json!("Unknown"));
        assert_eq!(Node.cells(&map(json!({})), now)[2], json!("<none>"));
    }
}
