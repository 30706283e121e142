//! `io.k8s.api.apps.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, PatchStrategy as P, Type as T};

#[rustfmt::skip]
pub(crate) static CONTROLLER_REVISION: Message = Message { name: "io.k8s.api.apps.v1.ControllerRevision", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("data", 2, T::RawExtension).omitempty(),
    Field::new("revision", 3, T::Int64).required(),
] };

#[rustfmt::skip]
pub(crate) static CONTROLLER_REVISION_LIST: Message = Message { name: "io.k8s.api.apps.v1.ControllerRevisionList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&CONTROLLER_REVISION)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static DAEMON_SET: Message = Message { name: "io.k8s.api.apps.v1.DaemonSet", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&DAEMON_SET_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&DAEMON_SET_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DAEMON_SET_CONDITION: Message = Message { name: "io.k8s.api.apps.v1.DaemonSetCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.DaemonSetConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastTransitionTime", 3, T::Time).omitempty(),
    Field::new("reason", 4, T::String).omitempty(),
    Field::new("message", 5, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DAEMON_SET_LIST: Message = Message { name: "io.k8s.api.apps.v1.DaemonSetList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&DAEMON_SET)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static DAEMON_SET_SPEC: Message = Message { name: "io.k8s.api.apps.v1.DaemonSetSpec", type_meta: false, atomic: false, fields: &[
    Field::new("selector", 1, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().required(),
    Field::new("template", 2, T::Message(&super::core_v1::POD_TEMPLATE_SPEC)).required(),
    Field::new("updateStrategy", 3, T::Message(&DAEMON_SET_UPDATE_STRATEGY)).omitempty(),
    Field::new("minReadySeconds", 4, T::Int32).omitempty(),
    Field::new("revisionHistoryLimit", 6, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DAEMON_SET_STATUS: Message = Message { name: "io.k8s.api.apps.v1.DaemonSetStatus", type_meta: false, atomic: false, fields: &[
    Field::new("currentNumberScheduled", 1, T::Int32).required(),
    Field::new("numberMisscheduled", 2, T::Int32).required(),
    Field::new("desiredNumberScheduled", 3, T::Int32).required(),
    Field::new("numberReady", 4, T::Int32).required(),
    Field::new("observedGeneration", 5, T::Int64).omitempty(),
    Field::new("updatedNumberScheduled", 6, T::Int32).omitempty(),
    Field::new("numberAvailable", 7, T::Int32).omitempty(),
    Field::new("numberUnavailable", 8, T::Int32).omitempty(),
    Field::new("collisionCount", 9, T::Int32).pointer().omitempty(),
    Field::new("conditions", 10, T::Message(&DAEMON_SET_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
] };

#[rustfmt::skip]
pub(crate) static DAEMON_SET_UPDATE_STRATEGY: Message = Message { name: "io.k8s.api.apps.v1.DaemonSetUpdateStrategy", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).omitempty().go("v1.DaemonSetUpdateStrategyType").one_of(&["OnDelete", "RollingUpdate"]),
    Field::new("rollingUpdate", 2, T::Message(&ROLLING_UPDATE_DAEMON_SET)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DEPLOYMENT: Message = Message { name: "io.k8s.api.apps.v1.Deployment", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&DEPLOYMENT_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&DEPLOYMENT_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DEPLOYMENT_CONDITION: Message = Message { name: "io.k8s.api.apps.v1.DeploymentCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.DeploymentConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("reason", 4, T::String).omitempty(),
    Field::new("message", 5, T::String).omitempty(),
    Field::new("lastUpdateTime", 6, T::Time).omitempty(),
    Field::new("lastTransitionTime", 7, T::Time).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DEPLOYMENT_LIST: Message = Message { name: "io.k8s.api.apps.v1.DeploymentList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&DEPLOYMENT)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static DEPLOYMENT_SPEC: Message = Message { name: "io.k8s.api.apps.v1.DeploymentSpec", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).pointer().omitempty(),
    Field::new("selector", 2, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().required(),
    Field::new("template", 3, T::Message(&super::core_v1::POD_TEMPLATE_SPEC)).required(),
    Field::new("strategy", 4, T::Message(&DEPLOYMENT_STRATEGY)).omitempty().patch(P::RetainKeys),
    Field::new("minReadySeconds", 5, T::Int32).omitempty(),
    Field::new("revisionHistoryLimit", 6, T::Int32).pointer().omitempty(),
    Field::new("paused", 7, T::Bool).omitempty(),
    Field::new("progressDeadlineSeconds", 9, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DEPLOYMENT_STATUS: Message = Message { name: "io.k8s.api.apps.v1.DeploymentStatus", type_meta: false, atomic: false, fields: &[
    Field::new("observedGeneration", 1, T::Int64).omitempty(),
    Field::new("replicas", 2, T::Int32).omitempty(),
    Field::new("updatedReplicas", 3, T::Int32).omitempty(),
    Field::new("availableReplicas", 4, T::Int32).omitempty(),
    Field::new("unavailableReplicas", 5, T::Int32).omitempty(),
    Field::new("conditions", 6, T::Message(&DEPLOYMENT_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
    Field::new("readyReplicas", 7, T::Int32).omitempty(),
    Field::new("collisionCount", 8, T::Int32).pointer().omitempty(),
    Field::new("terminatingReplicas", 9, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DEPLOYMENT_STRATEGY: Message = Message { name: "io.k8s.api.apps.v1.DeploymentStrategy", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).omitempty().go("v1.DeploymentStrategyType").one_of(&["Recreate", "RollingUpdate"]),
    Field::new("rollingUpdate", 2, T::Message(&ROLLING_UPDATE_DEPLOYMENT)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static REPLICA_SET: Message = Message { name: "io.k8s.api.apps.v1.ReplicaSet", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&REPLICA_SET_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&REPLICA_SET_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static REPLICA_SET_CONDITION: Message = Message { name: "io.k8s.api.apps.v1.ReplicaSetCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.ReplicaSetConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastTransitionTime", 3, T::Time).omitempty(),
    Field::new("reason", 4, T::String).omitempty(),
    Field::new("message", 5, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static REPLICA_SET_LIST: Message = Message { name: "io.k8s.api.apps.v1.ReplicaSetList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&REPLICA_SET)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static REPLICA_SET_SPEC: Message = Message { name: "io.k8s.api.apps.v1.ReplicaSetSpec", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).pointer().omitempty(),
    Field::new("selector", 2, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().required(),
    Field::new("template", 3, T::Message(&super::core_v1::POD_TEMPLATE_SPEC)).omitempty(),
    Field::new("minReadySeconds", 4, T::Int32).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static REPLICA_SET_STATUS: Message = Message { name: "io.k8s.api.apps.v1.ReplicaSetStatus", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).required(),
    Field::new("fullyLabeledReplicas", 2, T::Int32).omitempty(),
    Field::new("observedGeneration", 3, T::Int64).omitempty(),
    Field::new("readyReplicas", 4, T::Int32).omitempty(),
    Field::new("availableReplicas", 5, T::Int32).omitempty(),
    Field::new("conditions", 6, T::Message(&REPLICA_SET_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
    Field::new("terminatingReplicas", 7, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ROLLING_UPDATE_DAEMON_SET: Message = Message { name: "io.k8s.api.apps.v1.RollingUpdateDaemonSet", type_meta: false, atomic: false, fields: &[
    Field::new("maxUnavailable", 1, T::IntOrString).pointer().omitempty(),
    Field::new("maxSurge", 2, T::IntOrString).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ROLLING_UPDATE_DEPLOYMENT: Message = Message { name: "io.k8s.api.apps.v1.RollingUpdateDeployment", type_meta: false, atomic: false, fields: &[
    Field::new("maxUnavailable", 1, T::IntOrString).pointer().omitempty(),
    Field::new("maxSurge", 2, T::IntOrString).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Message = Message { name: "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy", type_meta: false, atomic: false, fields: &[
    Field::new("partition", 1, T::Int32).pointer().omitempty(),
    Field::new("maxUnavailable", 2, T::IntOrString).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET: Message = Message { name: "io.k8s.api.apps.v1.StatefulSet", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&STATEFUL_SET_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&STATEFUL_SET_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET_CONDITION: Message = Message { name: "io.k8s.api.apps.v1.StatefulSetCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.StatefulSetConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastTransitionTime", 3, T::Time).omitempty(),
    Field::new("reason", 4, T::String).omitempty(),
    Field::new("message", 5, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET_LIST: Message = Message { name: "io.k8s.api.apps.v1.StatefulSetList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&STATEFUL_SET)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET_ORDINALS: Message = Message { name: "io.k8s.api.apps.v1.StatefulSetOrdinals", type_meta: false, atomic: false, fields: &[
    Field::new("start", 1, T::Int32),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Message = Message { name: "io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", type_meta: false, atomic: false, fields: &[
    Field::new("whenDeleted", 1, T::String).omitempty().go("v1.PersistentVolumeClaimRetentionPolicyType"),
    Field::new("whenScaled", 2, T::String).omitempty().go("v1.PersistentVolumeClaimRetentionPolicyType"),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET_SPEC: Message = Message { name: "io.k8s.api.apps.v1.StatefulSetSpec", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).pointer().omitempty(),
    Field::new("selector", 2, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().required(),
    Field::new("template", 3, T::Message(&super::core_v1::POD_TEMPLATE_SPEC)).required(),
    Field::new("volumeClaimTemplates", 4, T::Message(&super::core_v1::PERSISTENT_VOLUME_CLAIM)).list().omitempty().list_type(L::Atomic),
    Field::new("serviceName", 5, T::String),
    Field::new("podManagementPolicy", 6, T::String).omitempty().go("v1.PodManagementPolicyType").one_of(&["OrderedReady", "Parallel"]),
    Field::new("updateStrategy", 7, T::Message(&STATEFUL_SET_UPDATE_STRATEGY)).omitempty(),
    Field::new("revisionHistoryLimit", 8, T::Int32).pointer().omitempty(),
    Field::new("minReadySeconds", 9, T::Int32).omitempty(),
    Field::new("persistentVolumeClaimRetentionPolicy", 10, T::Message(&STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY)).pointer().omitempty(),
    Field::new("ordinals", 11, T::Message(&STATEFUL_SET_ORDINALS)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET_STATUS: Message = Message { name: "io.k8s.api.apps.v1.StatefulSetStatus", type_meta: false, atomic: false, fields: &[
    Field::new("observedGeneration", 1, T::Int64).omitempty(),
    Field::new("replicas", 2, T::Int32).required(),
    Field::new("readyReplicas", 3, T::Int32).omitempty(),
    Field::new("currentReplicas", 4, T::Int32).omitempty(),
    Field::new("updatedReplicas", 5, T::Int32).omitempty(),
    Field::new("currentRevision", 6, T::String).omitempty(),
    Field::new("updateRevision", 7, T::String).omitempty(),
    Field::new("collisionCount", 9, T::Int32).pointer().omitempty(),
    Field::new("conditions", 10, T::Message(&STATEFUL_SET_CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
    Field::new("availableReplicas", 11, T::Int32),
] };

#[rustfmt::skip]
pub(crate) static STATEFUL_SET_UPDATE_STRATEGY: Message = Message { name: "io.k8s.api.apps.v1.StatefulSetUpdateStrategy", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).omitempty().go("v1.StatefulSetUpdateStrategyType").one_of(&["OnDelete", "RollingUpdate"]),
    Field::new("rollingUpdate", 2, T::Message(&ROLLING_UPDATE_STATEFUL_SET_STRATEGY)).pointer().omitempty(),
] };
