//! `io.k8s.api.authorization.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, Type as T};

#[rustfmt::skip]
pub(crate) static FIELD_SELECTOR_ATTRIBUTES: Message = Message { name: "io.k8s.api.authorization.v1.FieldSelectorAttributes", type_meta: false, atomic: false, fields: &[
    Field::new("rawSelector", 1, T::String).omitempty(),
    Field::new("requirements", 2, T::Message(&super::meta_v1::FIELD_SELECTOR_REQUIREMENT)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LABEL_SELECTOR_ATTRIBUTES: Message = Message { name: "io.k8s.api.authorization.v1.LabelSelectorAttributes", type_meta: false, atomic: false, fields: &[
    Field::new("rawSelector", 1, T::String).omitempty(),
    Field::new("requirements", 2, T::Message(&super::meta_v1::LABEL_SELECTOR_REQUIREMENT)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static LOCAL_SUBJECT_ACCESS_REVIEW: Message = Message { name: "io.k8s.api.authorization.v1.LocalSubjectAccessReview", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&SUBJECT_ACCESS_REVIEW_SPEC)).required(),
    Field::new("status", 3, T::Message(&SUBJECT_ACCESS_REVIEW_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NON_RESOURCE_ATTRIBUTES: Message = Message { name: "io.k8s.api.authorization.v1.NonResourceAttributes", type_meta: false, atomic: false, fields: &[
    Field::new("path", 1, T::String).omitempty(),
    Field::new("verb", 2, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static NON_RESOURCE_RULE: Message = Message { name: "io.k8s.api.authorization.v1.NonResourceRule", type_meta: false, atomic: false, fields: &[
    Field::new("verbs", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("nonResourceURLs", 2, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_ATTRIBUTES: Message = Message { name: "io.k8s.api.authorization.v1.ResourceAttributes", type_meta: false, atomic: false, fields: &[
    Field::new("namespace", 1, T::String).omitempty(),
    Field::new("verb", 2, T::String).omitempty(),
    Field::new("group", 3, T::String).omitempty(),
    Field::new("version", 4, T::String).omitempty(),
    Field::new("resource", 5, T::String).omitempty(),
    Field::new("subresource", 6, T::String).omitempty(),
    Field::new("name", 7, T::String).omitempty(),
    Field::new("fieldSelector", 8, T::Message(&FIELD_SELECTOR_ATTRIBUTES)).pointer().omitempty(),
    Field::new("labelSelector", 9, T::Message(&LABEL_SELECTOR_ATTRIBUTES)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static RESOURCE_RULE: Message = Message { name: "io.k8s.api.authorization.v1.ResourceRule", type_meta: false, atomic: false, fields: &[
    Field::new("verbs", 1, T::String).list().required().list_type(L::Atomic),
    Field::new("apiGroups", 2, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("resources", 3, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("resourceNames", 4, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static SELF_SUBJECT_ACCESS_REVIEW: Message = Message { name: "io.k8s.api.authorization.v1.SelfSubjectAccessReview", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&SELF_SUBJECT_ACCESS_REVIEW_SPEC)).required(),
    Field::new("status", 3, T::Message(&SUBJECT_ACCESS_REVIEW_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Message = Message { name: "io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec", type_meta: false, atomic: false, fields: &[
    Field::new("resourceAttributes", 1, T::Message(&RESOURCE_ATTRIBUTES)).pointer().omitempty(),
    Field::new("nonResourceAttributes", 2, T::Message(&NON_RESOURCE_ATTRIBUTES)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SELF_SUBJECT_RULES_REVIEW: Message = Message { name: "io.k8s.api.authorization.v1.SelfSubjectRulesReview", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&SELF_SUBJECT_RULES_REVIEW_SPEC)).required(),
    Field::new("status", 3, T::Message(&SUBJECT_RULES_REVIEW_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SELF_SUBJECT_RULES_REVIEW_SPEC: Message = Message { name: "io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec", type_meta: false, atomic: false, fields: &[
    Field::new("namespace", 1, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SUBJECT_ACCESS_REVIEW: Message = Message { name: "io.k8s.api.authorization.v1.SubjectAccessReview", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&SUBJECT_ACCESS_REVIEW_SPEC)).required(),
    Field::new("status", 3, T::Message(&SUBJECT_ACCESS_REVIEW_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SUBJECT_ACCESS_REVIEW_SPEC: Message = Message { name: "io.k8s.api.authorization.v1.SubjectAccessReviewSpec", type_meta: false, atomic: false, fields: &[
    Field::new("resourceAttributes", 1, T::Message(&RESOURCE_ATTRIBUTES)).pointer().omitempty(),
    Field::new("nonResourceAttributes", 2, T::Message(&NON_RESOURCE_ATTRIBUTES)).pointer().omitempty(),
    Field::new("user", 3, T::String).omitempty(),
    Field::new("groups", 4, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("extra", 5, T::Strings).map().omitempty(),
    Field::new("uid", 6, T::String).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SUBJECT_ACCESS_REVIEW_STATUS: Message = Message { name: "io.k8s.api.authorization.v1.SubjectAccessReviewStatus", type_meta: false, atomic: false, fields: &[
    Field::new("allowed", 1, T::Bool).required(),
    Field::new("reason", 2, T::String).omitempty(),
    Field::new("evaluationError", 3, T::String).omitempty(),
    Field::new("denied", 4, T::Bool).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SUBJECT_RULES_REVIEW_STATUS: Message = Message { name: "io.k8s.api.authorization.v1.SubjectRulesReviewStatus", type_meta: false, atomic: false, fields: &[
    Field::new("resourceRules", 1, T::Message(&RESOURCE_RULE)).list().required().list_type(L::Atomic),
    Field::new("nonResourceRules", 2, T::Message(&NON_RESOURCE_RULE)).list().required().list_type(L::Atomic),
    Field::new("incomplete", 3, T::Bool).required(),
    Field::new("evaluationError", 4, T::String).omitempty(),
] };
