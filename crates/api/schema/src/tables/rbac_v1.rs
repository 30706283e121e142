//! `io.k8s.api.rbac.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, Type as T};

#[rustfmt::skip]
pub(crate) static AGGREGATION_RULE: Message = Message { name: "io.k8s.api.rbac.v1.AggregationRule", type_meta: false, atomic: false, fields: &[
    Field::new("clusterRoleSelectors", 1, T::Message(&super::meta_v1::LABEL_SELECTOR)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static CLUSTER_ROLE: Message = Message { name: "io.k8s.api.rbac.v1.ClusterRole", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("rules", 2, T::Message(&POLICY_RULE)).list().list_type(L::Atomic),
    Field::new("aggregationRule", 3, T::Message(&AGGREGATION_RULE)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static CLUSTER_ROLE_BINDING: Message = Message { name: "io.k8s.api.rbac.v1.ClusterRoleBinding", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("subjects", 2, T::Message(&SUBJECT)).list().omitempty().list_type(L::Atomic),
    Field::new("roleRef", 3, T::Message(&ROLE_REF)).required(),
] };

#[rustfmt::skip]
pub(crate) static CLUSTER_ROLE_BINDING_LIST: Message = Message { name: "io.k8s.api.rbac.v1.ClusterRoleBindingList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&CLUSTER_ROLE_BINDING)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static CLUSTER_ROLE_LIST: Message = Message { name: "io.k8s.api.rbac.v1.ClusterRoleList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&CLUSTER_ROLE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static POLICY_RULE: Message = Message { name: "io.k8s.api.rbac.v1.PolicyRule", type_meta: false, atomic: false, fields: &[
    Field::new("verbs", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("apiGroups", 2, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("resources", 3, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("resourceNames", 4, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("nonResourceURLs", 5, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static ROLE: Message = Message { name: "io.k8s.api.rbac.v1.Role", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("rules", 2, T::Message(&POLICY_RULE)).list().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static ROLE_BINDING: Message = Message { name: "io.k8s.api.rbac.v1.RoleBinding", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("subjects", 2, T::Message(&SUBJECT)).list().omitempty().list_type(L::Atomic),
    Field::new("roleRef", 3, T::Message(&ROLE_REF)).required(),
] };

#[rustfmt::skip]
pub(crate) static ROLE_BINDING_LIST: Message = Message { name: "io.k8s.api.rbac.v1.RoleBindingList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&ROLE_BINDING)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static ROLE_LIST: Message = Message { name: "io.k8s.api.rbac.v1.RoleList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&ROLE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static ROLE_REF: Message = Message { name: "io.k8s.api.rbac.v1.RoleRef", type_meta: false, atomic: true, fields: &[
    Field::new("apiGroup", 1, T::String),
    Field::new("kind", 2, T::String).required(),
    Field::new("name", 3, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static SUBJECT: Message = Message { name: "io.k8s.api.rbac.v1.Subject", type_meta: false, atomic: true, fields: &[
    Field::new("kind", 1, T::String).required(),
    Field::new("apiGroup", 2, T::String).omitempty(),
    Field::new("name", 3, T::String).required(),
    Field::new("namespace", 4, T::String).omitempty(),
] };
