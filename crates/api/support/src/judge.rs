//! Looks through a spec, field by field, with the tables in hand.

use std::fmt::Write;

use hotmap_schema::{Message, Type, kind};
use serde_json::{Map, Value};

use crate::{Row, State, TABLES, Table};

/// Why a pod is refused for a field that no table has: it is newer than the node.
const UNKNOWN: &str = "this node does not know it";
/// A pod is root in its user namespace, which the host's network does not belong to.
const LOW_PORT: &str = "a port of the host below 1024, where no pod may listen";
/// `net.ipv4.ip_unprivileged_port_start`, unless the host says otherwise.
const LOW_PORTS_END: u64 = 1_024;
const OWN_RESTART_POLICY: &str = "only Always is supported, which makes a sidecar of an init container";

/// A field that is set and does not do here what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where it is in the spec: `containers[0].resources`.
    pub path: String,
    /// [`State::Warned`] or [`State::Refused`].
    pub state: State,
    /// Why, in a sentence without a full stop.
    pub why: &'static str,
}

/// Everything in a pod's spec that is warned of or refused, in the order of the document. The spec is as the API holds it,
/// defaults included, or as somebody wrote it.
pub fn judge(spec: &Map<String, Value>) -> Vec<Finding> {
    let mut judge = Judge {
        path: String::new(),
        findings: Vec::new(),
        host_network: spec.get("hostNetwork") == Some(&Value::Bool(true)),
    };
    judge.message(spec, pod_spec());
    judge.findings
}

/// The type of a pod's spec.
pub(crate) fn pod_spec() -> &'static Message {
    let pod = kind("", "v1", "Pod").expect("the schema has pods");
    match pod.message.field("spec").map(|field| field.kind) {
        Some(Type::Message(spec)) => spec,
        _ => unreachable!("a pod has a spec"),
    }
}

/// The table of a type.
pub(crate) fn table(message: &Message) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.message == message.short_name())
}

struct Judge {
    path: String,
    findings: Vec<Finding>,
    /// Its ports are those of the host.
    host_network: bool,
}

impl Judge {
    fn message(&mut self, object: &Map<String, Value>, message: &'static Message) {
        let rows = table(message).map_or(&[][..], |table| table.rows);
        for (field, value) in object {
            if asks_for_nothing(value) {
                continue;
            }
            let back = self.enter(format_args!("{field}"));
            match rows.iter().find(|row| row.field == field) {
                Some(row) => self.row(row, value, message),
                None => self.find(State::Refused, UNKNOWN),
            }
            self.path.truncate(back);
        }
    }

    fn row(&mut self, row: &Row, value: &Value, message: &'static Message) {
        if self.host_network {
            match row.field {
                "hostIP" | "hostPort" => return,
                "containerPort" if value.as_u64().is_some_and(|port| port < LOW_PORTS_END) => {
                    return self.find(State::Warned, LOW_PORT);
                }
                _ => {}
            }
        }
        let (state, why) = row.outcome(&shown(value));
        if state != State::Works {
            return self.find(state, why);
        }
        if row.field == "restartPolicy" && self.path.starts_with("containers[") {
            return self.find(State::Refused, OWN_RESTART_POLICY);
        }
        if message.short_name() == "ResourceRequirements" {
            return self.amounts(value);
        }
        let Some(Type::Message(nested)) = message.field(row.field).map(|field| field.kind) else {
            return;
        };
        match value {
            Value::Object(object) => self.message(object, nested),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let back = self.path.len();
                    write!(self.path, "[{index}]").expect("a string takes everything");
                    if let Value::Object(object) = item {
                        self.message(object, nested);
                    }
                    self.path.truncate(back);
                }
            }
            _ => {}
        }
    }

    /// Names of resources are not fields: those of which a node has none are told apart here.
    fn amounts(&mut self, amounts: &Value) {
        for name in amounts.as_object().into_iter().flat_map(Map::keys) {
            let why = match name.as_str() {
                "cpu" | "memory" => continue,
                "ephemeral-storage" if self.path.ends_with("limits") => continue,
                "ephemeral-storage" => "no part of the disk is set aside for it",
                _ => "the node has nothing of this name to give",
            };
            let back = self.enter(format_args!("{name}"));
            self.find(State::Warned, why);
            self.path.truncate(back);
        }
    }

    /// Appends a field to the path; returns the length to go back to.
    fn enter(&mut self, field: std::fmt::Arguments<'_>) -> usize {
        let back = self.path.len();
        let dot = if back == 0 { "" } else { "." };
        write!(self.path, "{dot}{field}").expect("a string takes everything");
        back
    }

    fn find(&mut self, state: State, why: &'static str) {
        self.findings.push(Finding {
            path: self.path.clone(),
            state,
            why,
        });
    }
}

/// `{}`, `[]`, `""` and `null`.
fn asks_for_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A scalar as rows name it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(spec: Value) -> Vec<String> {
        let Value::Object(spec) = spec else {
            panic!("an object")
        };
        let findings = judge(&spec).into_iter();
        findings
            .map(|found| format!("{} {}: {}", found.state.word(), found.path, found.why))
            .collect()
    }

    #[test]
    fn a_field_that_does_not_work_is_named_with_its_reason() {
        for (spec, found) in [
            (
                json!({"brandNew": 1}),
                "refused brandNew: this node does not know it",
            ),
            (
                json!({"hostPID": true}),
                "refused hostPID: pods do not share the host's namespaces",
            ),
            (
                json!({"initContainers": [{"restartPolicy": "Never"}]}),
                "refused initContainers[0].restartPolicy: only Always is supported, which makes a sidecar of an init container",
            ),
            (
                json!({"containers": [{"restartPolicy": "Always"}]}),
                "refused containers[0].restartPolicy: only Always is supported, which makes a sidecar of an init container",
            ),
            (
                json!({"initContainers": [{"restartPolicy": "Always", "restartPolicyRules": [{"action": "Restart"}]}]}),
                "refused initContainers[0].restartPolicyRules: exit codes do not decide about restarts here",
            ),
            (
                json!({"volumes": [{"name": "v", "nfs": {"server": "x"}}]}),
                "refused volumes[0].nfs: no network file system is mounted: mount it on the host and name it by a hostPath",
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"podCertificate": {"signerName": "x/y"}}]}}]}),
                "refused volumes[0].projected.sources[0].podCertificate: this kind of source is not supported",
            ),
            (
                json!({"containers": [{"name": "a"}, {"env": [{"name": "X", "valueFrom": {"fileKeyRef": {"key": "k"}}}]}]}),
                "refused containers[1].env[0].valueFrom.fileKeyRef: variables are not read from files of a volume",
            ),
            (
                json!({"containers": [{"lifecycle": {"preStop": {"tcpSocket": {"port": 1}}}}]}),
                "refused containers[0].lifecycle.preStop.tcpSocket: it never did anything, and upstream's hook fails too",
            ),
            (
                json!({"containers": [{"resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}, "requests": {"memory": "1Mi"}}}]}),
                "warned containers[0].resources.limits.nvidia.com/gpu: the node has nothing of this name to give",
            ),
            (
                json!({"resources": {"claims": [{"name": "x"}]}}),
                "refused resources.claims: devices are not given to pods",
            ),
            (
                json!({"imagePullSecrets": [{"name": "x"}]}),
                "warned imagePullSecrets: no image is pulled",
            ),
            (
                json!({"containers": [{"ports": [{"containerPort": 80, "hostPort": 8080}]}]}),
                "warned containers[0].ports[0].hostPort: no port of the host leads to a pod",
            ),
            (
                json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 8080, "hostPort": 8080},
                    {"containerPort": 80, "hostPort": 80, "hostIP": "127.0.0.1"}]}]}),
                "warned containers[0].ports[1].containerPort: a port of the host below 1024, where no pod may listen",
            ),
            (
                json!({"overhead": {"cpu": "10m"}}),
                "warned overhead: nothing is added to what containers ask for",
            ),
            (
                json!({"containers": [{"volumeMounts": [{"mountPropagation": "HostToContainer"}]}]}),
                "warned containers[0].volumeMounts[0].mountPropagation: mounts do not propagate",
            ),
        ] {
            assert_eq!(judged(spec), [found]);
        }
    }

    #[test]
    fn what_asks_for_nothing_or_works_is_not_named() {
        let spec = json!({"containers": [{"name": "a", "image": "nginx", "stdin": false, "resources": {}, "volumeMounts":
            [{"name": "v", "mountPath": "/x", "subPath": "y", "mountPropagation": "None"}]}],
            "volumes": [{"name": "v", "configMap": {"name": "c"}}, {"emptyDir": {}}],
            "initContainers": [{"name": "s", "image": "nginx", "restartPolicy": "Always"}], "priority": 0,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
                [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}},
            "hostNetwork": false, "hostPID": false, "dnsPolicy": "ClusterFirst", "securityContext": {}, "hostUsers": false});
        assert_eq!(judged(spec), [""; 0]);
    }

    #[test]
    fn every_field_of_a_pod_has_a_row_and_every_row_a_field() {
        let mut wrong = Vec::new();
        let mut seen = Vec::new();
        walk(pod_spec(), &mut seen, &mut wrong);
        for table in TABLES {
            let spare = !seen.contains(&table.message);
            if spare {
                wrong.push(format!(
                    "{}: no field that works leads to this table",
                    table.message
                ));
            }
        }
        assert_eq!(wrong, [""; 0]);
    }

    /// Follows what works: a field that is warned of or refused is so with everything in it.
    fn walk(message: &'static Message, seen: &mut Vec<&'static str>, wrong: &mut Vec<String>) {
        let name = message.short_name();
        if seen.contains(&name) {
            return;
        }
        seen.push(name);
        let Some(table) = table(message) else {
            return wrong.push(format!("{name}: no table"));
        };
        for field in message.json_fields() {
            let rows = table.rows.iter().filter(|row| row.field == field.json);
            match rows.collect::<Vec<_>>().as_slice() {
                [] => wrong.push(format!("{name}.{}: no row", field.json)),
                [row] => {
                    if row.state == State::Works && row.tests.is_empty() {
                        wrong.push(format!("{name}.{}: works, and no test shows it", field.json));
                    }
                    if let (State::Works, Type::Message(nested)) = (row.state, field.kind) {
                        walk(nested, seen, wrong);
                    }
                }
                _ => wrong.push(format!("{name}.{}: two rows", field.json)),
            }
        }
        for row in table.rows {
            if message.field(row.field).is_none() {
                wrong.push(format!("{name}.{}: the API has no such field", row.field));
            }
        }
    }
}
