//! `io.k8s.api.autoscaling.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, Message, Type as T};

#[rustfmt::skip]
pub(crate) static CROSS_VERSION_OBJECT_REFERENCE: Message = Message { name: "io.k8s.api.autoscaling.v1.CrossVersionObjectReference", type_meta: false, atomic: true, fields: &[
    Field::new("kind", 1, T::String).required(),
    Field::new("name", 2, T::String).required(),
    Field::new("apiVersion", 3, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static HORIZONTAL_POD_AUTOSCALER: Message = Message { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&HORIZONTAL_POD_AUTOSCALER_SPEC)).omitempty().required(),
    Field::new("status", 3, T::Message(&HORIZONTAL_POD_AUTOSCALER_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static HORIZONTAL_POD_AUTOSCALER_LIST: Message = Message { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&HORIZONTAL_POD_AUTOSCALER)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static HORIZONTAL_POD_AUTOSCALER_SPEC: Message = Message { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec", type_meta: false, atomic: false, fields: &[
    Field::new("scaleTargetRef", 1, T::Message(&CROSS_VERSION_OBJECT_REFERENCE)).required(),
    Field::new("minReplicas", 2, T::Int32).pointer().omitempty(),
    Field::new("maxReplicas", 3, T::Int32).required(),
    Field::new("targetCPUUtilizationPercentage", 4, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static HORIZONTAL_POD_AUTOSCALER_STATUS: Message = Message { name: "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerStatus", type_meta: false, atomic: false, fields: &[
    Field::new("observedGeneration", 1, T::Int64).pointer().omitempty(),
    Field::new("lastScaleTime", 2, T::Time).pointer().omitempty(),
    Field::new("currentReplicas", 3, T::Int32).required(),
    Field::new("desiredReplicas", 4, T::Int32).required(),
    Field::new("currentCPUUtilizationPercentage", 5, T::Int32).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SCALE: Message = Message { name: "io.k8s.api.autoscaling.v1.Scale", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&SCALE_SPEC)).omitempty(),
    Field::new("status", 3, T::Message(&SCALE_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SCALE_SPEC: Message = Message { name: "io.k8s.api.autoscaling.v1.ScaleSpec", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SCALE_STATUS: Message = Message { name: "io.k8s.api.autoscaling.v1.ScaleStatus", type_meta: false, atomic: false, fields: &[
    Field::new("replicas", 1, T::Int32).required(),
    Field::new("selector", 2, T::String).omitempty(),
] };
