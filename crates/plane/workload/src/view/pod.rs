//! What controllers see of a Pod.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};

use super::{Metadata, View, or_default};
use crate::{context::CLOCKS_APART_MAX, informer::Informer, informers::Informers};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: PodSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodSpec {
    #[serde(deserialize_with = "or_default")]
    pub(crate) node_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) scheduler_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) scheduling_gates: Vec<IgnoredAny>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) affinity: Affinity,
    #[serde(deserialize_with = "or_default")]
    pub(crate) init_containers: Vec<InitContainer>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct InitContainer {
    pub(crate) name: String,
    /// `Always` makes it a sidecar.
    #[serde(deserialize_with = "or_default")]
    pub(crate) restart_policy: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Affinity {
    #[serde(deserialize_with = "or_default")]
    pub(crate) node_affinity: NodeAffinity,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) required: Option<NodeSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeSelector {
    #[serde(deserialize_with = "or_default")]
    pub(crate) node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeSelectorTerm {
    #[serde(deserialize_with = "or_default")]
    pub(crate) match_expressions: Vec<NodeRequirement>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) match_fields: Vec<NodeRequirement>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeRequirement {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) values: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Toleration {
    #[serde(deserialize_with = "or_default")]
    pub(crate) key: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) operator: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) value: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) effect: String,
    /// Seconds; absent for ever.
    pub(crate) toleration_seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PodStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) phase: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reason: String,
    pub(crate) start_time: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) reason: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) message: String,
    pub(crate) last_transition_time: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) restart_count: i32,
    #[serde(deserialize_with = "or_default")]
    pub(crate) state: ContainerState,
}

/// At most one is set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    pub(crate) terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Terminated {
    pub(crate) exit_code: i32,
    pub(crate) finished_at: Option<Timestamp>,
}

impl Pod {
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.kind == kind)
    }

    /// Whether this scheduler shall find a node for it.
    pub(crate) fn wants_a_node(&self, scheduler: &str) -> bool {
        self.spec.node_name.is_empty() && self.spec.scheduler_name == scheduler && self.is_active()
    }

    /// Whether it is done for good, well or not.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether it counts as a replica: neither done nor on its way out.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_finished() && !self.metadata.is_deleting()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.condition("Ready")
            .is_some_and(|ready| ready.status == "True")
    }

    /// Since when it is ready; nothing while it is not, or does not say since when.
    pub(crate) fn ready_since(&self) -> Option<Timestamp> {
        self.condition("Ready")
            .filter(|ready| ready.status == "True")
            .and_then(|ready| ready.last_transition_time)
    }

    /// Whether it has been ready for `min_ready_seconds`. One that became ready before the clock was set back counts: nobody
    /// knows how long it has been, and a rollout must not wait until the clock is there again.
    ///
    /// Source: `IsPodAvailable` in `pkg/api/v1/pod/util.go`, Kubernetes 1.36.
    pub(crate) fn is_available(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        let is_of_the_future = || {
            let ready = self.ready_since();
            ready.is_some_and(|ready| ready.duration_since(now) > CLOCKS_APART_MAX)
        };
        let has_lasted = || {
            let available_at = self.available_at(min_ready_seconds);
            available_at.is_some_and(|available_at| available_at <= now)
        };
        self.is_ready() && (min_ready_seconds <= 0 || has_lasted() || is_of_the_future())
    }

    /// When it has been, or will have been, ready for `min_ready_seconds` if nothing happens.
    pub(crate) fn available_at(&self, min_ready_seconds: i32) -> Option<Timestamp> {
        let ready = self.ready_since()?;
        ready
            .checked_add(jiff::SignedDuration::from_secs(min_ready_seconds.max(0).into()))
            .ok()
    }
}

impl View for Pod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn informer(informers: &Informers) -> &Informer<Self> {
        &informers.pods
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_waiting_pods_of_this_scheduler_want_a_node() {
        for (value, wants) in [
            (json!({"spec": {"schedulerName": "s"}}), true),
            (
                json!({"spec": {"schedulerName": "s", "nodeName": null}, "status": {"phase": "Pending"}}),
                true,
            ),
            (json!({"spec": {"schedulerName": "s", "nodeName": "n"}}), false),
            (json!({"spec": {"schedulerName": "other"}}), false),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-02T15:04:05Z"}, "spec": {"schedulerName": "s"}}),
                false,
            ),
            (
                json!({"spec": {"schedulerName": "s"}, "status": {"phase": "Failed"}}),
                false,
            ),
        ] {
            let pod: Pod = serde_json::from_value(value.clone()).expect("a pod");
            assert_eq!(pod.wants_a_node("s"), wants, "{value}");
        }
    }

    #[test]
    fn a_pod_is_available_once_it_has_been_ready_for_long_enough() {
        let now: Timestamp = "2026-01-02T15:04:05Z".parse().expect("a time");
        for (status, since, min_ready_seconds, available) in [
            ("True", json!("2026-01-02T15:04:05Z"), 0, true),
            ("True", json!(null), 0, true),
            ("False", json!("2026-01-02T15:00:00Z"), 0, false),
            ("True", json!("2026-01-02T15:03:56Z"), 10, false),
            ("True", json!("2026-01-02T15:03:55Z"), 10, true),
            ("True", json!(null), 10, false),
            // The node's clock is a little ahead; ours was set back.
            ("True", json!("2026-01-02T15:05:05Z"), 10, false),
            ("True", json!("2026-01-02T15:05:06Z"), 10, true),
            ("False", json!("2026-01-03T15:04:05Z"), 10, false),
        ] {
            let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": since});
            let pod: Pod =
                serde_json::from_value(json!({"status": {"conditions": [condition]}})).expect("a pod");
            assert_eq!(pod.is_available(min_ready_seconds, now), available, "{condition}");
        }
    }
}
