//! `io.k8s.api.policy.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, PatchStrategy as P, Type as T};

#[rustfmt::skip]
pub(crate) static EVICTION: Message = Message { name: "io.k8s.api.policy.v1.Eviction", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("deleteOptions", 2, T::Message(&super::meta_v1::DELETE_OPTIONS)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_DISRUPTION_BUDGET: Message = Message { name: "io.k8s.api.policy.v1.PodDisruptionBudget", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&POD_DISRUPTION_BUDGET_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&POD_DISRUPTION_BUDGET_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static POD_DISRUPTION_BUDGET_LIST: Message = Message { name: "io.k8s.api.policy.v1.PodDisruptionBudgetList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&POD_DISRUPTION_BUDGET)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static POD_DISRUPTION_BUDGET_SPEC: Message = Message { name: "io.k8s.api.policy.v1.PodDisruptionBudgetSpec", type_meta: false, atomic: false, fields: &[
    Field::new("minAvailable", 1, T::IntOrString).pointer().omitempty(),
    Field::new("selector", 2, T::Message(&super::meta_v1::LABEL_SELECTOR)).pointer().omitempty().patch(P::Replace),
    Field::new("maxUnavailable", 3, T::IntOrString).pointer().omitempty(),
    Field::new("unhealthyPodEvictionPolicy", 4, T::String).pointer().omitempty().go("v1.UnhealthyPodEvictionPolicyType").one_of(&["AlwaysAllow", "IfHealthyBudget"]),
] };

#[rustfmt::skip]
pub(crate) static POD_DISRUPTION_BUDGET_STATUS: Message = Message { name: "io.k8s.api.policy.v1.PodDisruptionBudgetStatus", type_meta: false, atomic: false, fields: &[
    Field::new("observedGeneration", 1, T::Int64).omitempty(),
    Field::new("disruptedPods", 2, T::Time).map().omitempty(),
    Field::new("disruptionsAllowed", 3, T::Int32),
    Field::new("currentHealthy", 4, T::Int32),
    Field::new("desiredHealthy", 5, T::Int32),
    Field::new("expectedPods", 6, T::Int32),
    Field::new("conditions", 7, T::Message(&super::meta_v1::CONDITION)).list().omitempty().list_type(L::Map(&["type"])).merge_key("type").patch(P::Merge),
] };
