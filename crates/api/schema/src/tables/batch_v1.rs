//! `io.k8s.api.batch.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, PatchStrategy as P, Type as T};

#[rustfmt::skip]
pub(crate) static CRON_JOB: Message = Message { name: "io.k8s.api.batch.v1.CronJob", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&CRON_JOB_SPEC)).omitempty().required(),
    Field::new("status", 3, T::Message(&CRON_JOB_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CRON_JOB_LIST: Message = Message { name: "io.k8s.api.batch.v1.CronJobList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&CRON_JOB)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static CRON_JOB_SPEC: Message = Message { name: "io.k8s.api.batch.v1.CronJobSpec", type_meta: false, atomic: false, fields: &[
    Field::new("schedule", 1, T::String).required(),
    Field::new("startingDeadlineSeconds", 2, T::Int64).pointer().omitempty(),
    Field::new("concurrencyPolicy", 3, T::String).omitempty().go("v1.ConcurrencyPolicy").one_of(&["Allow", "Forbid", "Replace"]),
    Field::new("suspend", 4, T::Bool).pointer().omitempty(),
    Field::new("jobTemplate", 5, T::Message(&JOB_TEMPLATE_SPEC)).required(),
    Field::new("successfulJobsHistoryLimit", 6, T::Int32).pointer().omitempty(),
    Field::new("failedJobsHistoryLimit", 7, T::Int32).pointer().omitempty(),
    Field::new("timeZone", 8, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CRON_JOB_STATUS: Message = Message { name: "io.k8s.api.batch.v1.CronJobStatus", type_meta: false, atomic: false, fields: &[
    Field::new("active", 1, T::Message(&super::core_v1::OBJECT_REFERENCE)).list().omitempty().list_type(L::Atomic),
    Field::new("lastScheduleTime", 4, T::Time).pointer().omitempty(),
    Field::new("lastSuccessfulTime", 5, T::Time).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static JOB: Message = Message { name: "io.k8s.api.batch.v1.Job", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&JOB_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&JOB_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static JOB_CONDITION: Message = Message { name: "io.k8s.api.batch.v1.JobCondition", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.JobConditionType"),
    Field::new("status", 2, T::String).required().go("v1.ConditionStatus"),
    Field::new("lastProbeTime", 3, T::Time).omitempty(),
    Field::new("lastTransitionTime", 4, T::Time).omitempty(),
    Field::new("reason", 5, T::String).omitempty(),
    Field::new("message", 6, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static JOB_LIST: Message = Message { name: "io.k8s.api.batch.v1.JobList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&JOB)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static JOB_SPEC: Message = Message { name: "io.k8s.api.batch.v1.JobSpec", type_meta: false, atomic: false, fields: &[
    Field::new("parallelism", 1, T::Int32).pointer().omitempty(),
    Field::new("completions", 2, T::Int32).pointer().omitempty(),
    Field::new("activeDeadlineSeconds", 3, T::Int64).pointer().omitempty(),
    Field::new("selector", 4, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().omitempty(),
    Field::new("manualSelector", 5, T::Bool).pointer().omitempty(),
    Field::new("template", 6, T::Message(&super::core_v1::POD_TEMPLATE_SPEC)).required(),
    Field::new("backoffLimit", 7, T::Int32).pointer().omitempty(),
    Field::new("ttlSecondsAfterFinished", 8, T::Int32).pointer().omitempty(),
    Field::new("completionMode", 9, T::String).pointer().omitempty().go("v1.CompletionMode").one_of(&["Indexed", "NonIndexed"]),
    Field::new("suspend", 10, T::Bool).pointer().omitempty(),
    Field::new("podFailurePolicy", 11, T::Message(&POD_FAILURE_POLICY)).pointer().omitempty(),
    Field::new("backoffLimitPerIndex", 12, T::Int32).pointer().omitempty(),
    Field::new("maxFailedIndexes", 13, T::Int32).pointer().omitempty(),
    Field::new("podReplacementPolicy", 14, T::String).pointer().omitempty().go("v1.PodReplacementPolicy").one_of(&["Failed", "TerminatingOrFailed"]),
    Field::new("managedBy", 15, T::String).pointer().omitempty(),
    Field::new("successPolicy", 16, T::Message(&SUCCESS_POLICY)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static JOB_STATUS: Message = Message { name: "io.k8s.api.batch.v1.JobStatus", type_meta: false, atomic: false, fields: &[
    Field::new("conditions", 1, T::Message(&JOB_CONDITION)).list().omitempty().list_type(L::Atomic).merge_key("type").patch(P::Merge),
    Field::new("startTime", 2, T::Time).pointer().omitempty(),
    Field::new("completionTime", 3, T::Time).pointer().omitempty(),
    Field::new("active", 4, T::Int32).omitempty(),
    Field::new("succeeded", 5, T::Int32).omitempty(),
    Field::new("failed", 6, T::Int32).omitempty(),
    Field::new("completedIndexes", 7, T::String).omitempty(),
    Field::new("uncountedTerminatedPods", 8, T::Message(&UNCOUNTED_TERMINATED_PODS)).pointer().omitempty(),
    Field::new("ready", 9, T::Int32).pointer().omitempty(),
    Field::new("failedIndexes", 10, T::String).pointer().omitempty(),
    Field::new("terminating", 11, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static JOB_TEMPLATE_SPEC: Message = Message { name: "io.k8s.api.batch.v1.JobTemplateSpec", type_meta: false, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&JOB_SPEC)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_FAILURE_POLICY: Message = Message { name: "io.k8s.api.batch.v1.PodFailurePolicy", type_meta: false, atomic: false, fields: &[
    Field::new("rules", 1, T::Message(&POD_FAILURE_POLICY_RULE)).list().required().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT: Message = Message { name: "io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement", type_meta: false, atomic: false, fields: &[
    Field::new("containerName", 1, T::String).pointer().omitempty(),
    Field::new("operator", 2, T::String).required().go("v1.PodFailurePolicyOnExitCodesOperator").one_of(&["In", "NotIn"]),
    Field::new("values", 3, T::Int32).list().required().list_type(L::Set),
] };

#[rustfmt::skip]
pub(crate) static POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN: Message = Message { name: "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern", type_meta: false, atomic: false, fields: &[
    Field::new("type", 1, T::String).required().go("v1.PodConditionType"),
    Field::new("status", 2, T::String).go("v1.ConditionStatus"),
] };

#[rustfmt::skip]
pub(crate) static POD_FAILURE_POLICY_RULE: Message = Message { name: "io.k8s.api.batch.v1.PodFailurePolicyRule", type_meta: false, atomic: false, fields: &[
    Field::new("action", 1, T::String).required().go("v1.PodFailurePolicyAction").one_of(&["Count", "FailIndex", "FailJob", "Ignore"]),
    Field::new("onExitCodes", 2, T::Message(&POD_FAILURE_POLICY_ON_EXIT_CODES_REQUIREMENT)).pointer().omitempty(),
    Field::new("onPodConditions", 3, T::Message(&POD_FAILURE_POLICY_ON_POD_CONDITIONS_PATTERN)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static SUCCESS_POLICY: Message = Message { name: "io.k8s.api.batch.v1.SuccessPolicy", type_meta: false, atomic: false, fields: &[
    Field::new("rules", 1, T::Message(&SUCCESS_POLICY_RULE)).list().required().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static SUCCESS_POLICY_RULE: Message = Message { name: "io.k8s.api.batch.v1.SuccessPolicyRule", type_meta: false, atomic: false, fields: &[
    Field::new("succeededIndexes", 1, T::String).pointer().omitempty(),
    Field::new("succeededCount", 2, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static UNCOUNTED_TERMINATED_PODS: Message = Message { name: "io.k8s.api.batch.v1.UncountedTerminatedPods", type_meta: false, atomic: false, fields: &[
    Field::new("succeeded", 1, T::String).list().omitempty().go("[]types.UID").list_type(L::Set),
    Field::new("failed", 2, T::String).list().omitempty().go("[]types.UID").list_type(L::Set),
] };
