//! Pod: the largest kind. Its parts live below: what is filled in, what is checked, what a row shows, how it is bound.
//!
//! Rules follow `pkg/registry/core/pod/strategy.go`, Kubernetes 1.36.

mod affinity;
mod binding;
mod container;
mod defaults;
mod environment;
mod ephemeral;
mod probe;
mod quality_of_service;
mod resources;
mod security;
mod spec;
mod status;
mod status_update;
mod stop_signal;
pub(crate) mod template;
mod unenforced;
mod update;
mod volume;
mod volume_mount;
mod warnings;

pub use binding::{BindError, bind, validate_binding};

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, list_mut, map_mut},
    table, workload,
};

/// The rules of Pods.
pub(crate) struct Pod;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Ready", "string", "Ready containers of all containers."),
    table::column("Status", "string", "What the containers do, or why they do not."),
    table::column(
        "Restarts",
        "string",
        "Restarts of all containers, and the time since the last one.",
    ),
    table::AGE,
    table::wide("IP", "string", "Address of the pod."),
    table::wide("Node", "string", "Node that the pod is bound to."),
    table::wide("Nominated Node", "string", "Node that makes room for the pod."),
    table::wide(
        "Readiness Gates",
        "string",
        "Conditions that are true of those the pod waits for.",
    ),
];

impl Strategy for Pod {
    fn default(&self, object: &mut Map<String, Value>) {
        defaults::fill_in(object);
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        let mut status =
            json!({"phase": "Pending", "qosClass": quality_of_service::class(object.map("spec"))});
        if !object.map("spec").list("schedulingGates").is_empty() {
            status["conditions"] = json!([{"type": "PodScheduled", "status": "False", "lastProbeTime": null,
                "lastTransitionTime": null, "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates"}]);
        }
        object.insert("status".to_owned(), status);
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        match subresource {
            "status" => {}
            ephemeral::SUBRESOURCE => return ephemeral::keep_the_rest(new, old),
            _ => return keep(new, old, "status"),
        }
        keep(new, old, "spec");
        if let Some(metadata) = map_mut(new, "metadata") {
            keep(metadata, old.map("metadata"), "ownerReferences");
        }
        if let Some(status) = map_mut(new, "status") {
            keep_observations(status, old.map("status"));
            join_addresses(status);
        }
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        spec::metadata_and_spec(&mut errors, object);
        spec::only_on_create(&mut errors, object.map("spec"));
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        subresource: &str,
    ) -> Vec<FieldError> {
        match subresource {
            "status" => status_update::validate(new, old),
            ephemeral::SUBRESOURCE => ephemeral::validate_update(new, old),
            _ => update::validate(new, old),
        }
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        if let Some(old) = old {
            return ephemeral::warnings(object, old);
        }
        // Agents write pods far more often than people do, and controllers make most of them.
        if workload::is_controlled(object) {
            return Vec::new();
        }
        warnings::of_pod(object)
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        let (spec, status) = (object.map("spec"), object.map("status"));
        let ip = status::first_ip(status).to_owned();
        vec![
            ("spec.nodeName", spec.text("nodeName").to_owned()),
            ("spec.restartPolicy", spec.text("restartPolicy").to_owned()),
            ("spec.schedulerName", spec.text("schedulerName").to_owned()),
            (
                "spec.serviceAccountName",
                spec.text("serviceAccountName").to_owned(),
            ),
            ("spec.hostNetwork", spec.is_set("hostNetwork").to_string()),
            ("status.phase", status.text("phase").to_owned()),
            ("status.podIP", ip),
            // Upstream accepts this field and never fills it in.
            ("status.podIPs", String::new()),
            (
                "status.nominatedNodeName",
                status.text("nominatedNodeName").to_owned(),
            ),
        ]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        status::cells(object, now)
    }

    fn row_conditions(&self, object: &Map<String, Value>) -> Vec<Value> {
        status::row_conditions(object)
    }
}

/// One address is written in two places; a writer may know only one of them.
fn join_addresses(status: &mut Map<String, Value>) {
    let (single, first) = (status.text("podIP"), status.list("podIPs").first());
    match (single, first.map(|ip| ip.text("ip"))) {
        ("", Some(first)) if !first.is_empty() => {
            let first = first.to_owned();
            status.insert("podIP".to_owned(), first.into());
        }
        (single, first) if !single.is_empty() && first != Some(single) => {
            let all = json!([{ "ip": single }]);
            status.insert("podIPs".to_owned(), all);
        }
        _ => {}
    }
}

/// What a node agent that does not know a field would clear: the QoS class and observed generations.
fn keep_observations(status: &mut Map<String, Value>, old: &Map<String, Value>) {
    for field in ["qosClass", "observedGeneration"] {
        if !status.has(field) || status.int(field) == Some(0) {
            keep(status, old, field);
        }
    }
    let mut before: Vec<(&str, i64)> = old
        .list("conditions")
        .iter()
        .map(|condition| {
            (
                condition.text("type"),
                condition.int("observedGeneration").unwrap_or_default(),
            )
        })
        .collect();
    for condition in list_mut(status, "conditions")
        .iter_mut()
        .filter_map(Value::as_object_mut)
    {
        let Some(at) = before.iter().position(|(of, _)| *of == condition.text("type")) else {
            continue;
        };
        let (_, generation) = before.remove(at);
        if condition.int("observedGeneration").unwrap_or_default() == 0 && generation != 0 {
            condition.insert("observedGeneration".to_owned(), generation.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::map;

    #[test]
    fn a_new_pod_is_pending_with_a_class() {
        let mut pod =
            map(json!({"spec": {"schedulingGates": [{"name": "a/b"}]}, "status": {"phase": "Running"}}));
        Pod.prepare_for_create(&mut pod);
        assert_eq!(pod["status"]["phase"], "Pending");
        assert_eq!(pod["status"]["qosClass"], "BestEffort");
        assert_eq!(pod["status"]["conditions"][0]["reason"], "SchedulingGated");
    }

    #[test]
    fn status_writers_touch_nothing_else_and_lose_nothing() {
        let old = map(
            json!({"metadata": {"ownerReferences": [{"uid": "o"}]}, "spec": {"nodeName": "n"},
            "status": {"qosClass": "Burstable", "observedGeneration": 3,
                       "conditions": [{"type": "Ready", "observedGeneration": 2}]}}),
        );
        let mut new = map(json!({"metadata": {}, "spec": {"nodeName": "m"},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}}));
        Pod.prepare_for_update(&mut new, &old, "status");
        assert_eq!(
            Value::Object(new),
            json!({"metadata": {"ownerReferences": [{"uid": "o"}]}, "spec": {"nodeName": "n"},
                "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
                    "qosClass": "Burstable", "observedGeneration": 3,
                    "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]}})
        );
    }

    #[test]
    fn the_main_path_leaves_status_alone() {
        let old = map(json!({"spec": {}, "status": {"phase": "Running"}}));
        let mut new = map(json!({"spec": {"nodeName": "m"}, "status": {"phase": "Failed"}}));
        Pod.prepare_for_update(&mut new, &old, "");
        assert_eq!(
            Value::Object(new),
            json!({"spec": {"nodeName": "m"}, "status": {"phase": "Running"}})
        );
    }
}
