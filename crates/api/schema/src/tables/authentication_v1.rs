//! `io.k8s.api.authentication.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, Type as T};

#[rustfmt::skip]
pub(crate) static BOUND_OBJECT_REFERENCE: Message = Message { name: "io.k8s.api.authentication.v1.BoundObjectReference", type_meta: false, atomic: false, fields: &[
    Field::new("kind", 1, T::String).omitempty(),
    Field::new("apiVersion", 2, T::String).omitempty(),
    Field::new("name", 3, T::String).omitempty(),
    Field::new("uid", 4, T::String).omitempty().go("types.UID"),
] };

#[rustfmt::skip]
pub(crate) static SELF_SUBJECT_REVIEW: Message = Message { name: "io.k8s.api.authentication.v1.SelfSubjectReview", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("status", 2, T::Message(&SELF_SUBJECT_REVIEW_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static SELF_SUBJECT_REVIEW_STATUS: Message = Message { name: "io.k8s.api.authentication.v1.SelfSubjectReviewStatus", type_meta: false, atomic: false, fields: &[
    Field::new("userInfo", 1, T::Message(&USER_INFO)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static TOKEN_REQUEST: Message = Message { name: "io.k8s.api.authentication.v1.TokenRequest", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&TOKEN_REQUEST_SPEC)),
    Field::new("status", 3, T::Message(&TOKEN_REQUEST_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static TOKEN_REQUEST_SPEC: Message = Message { name: "io.k8s.api.authentication.v1.TokenRequestSpec", type_meta: false, atomic: false, fields: &[
    Field::new("audiences", 1, T::String).list().list_type(L::Atomic),
    Field::new("boundObjectRef", 3, T::Message(&BOUND_OBJECT_REFERENCE)).pointer(),
    Field::new("expirationSeconds", 4, T::Int64).pointer(),
] };

#[rustfmt::skip]
pub(crate) static TOKEN_REQUEST_STATUS: Message = Message { name: "io.k8s.api.authentication.v1.TokenRequestStatus", type_meta: false, atomic: false, fields: &[
    Field::new("token", 1, T::String),
    Field::new("expirationTimestamp", 2, T::Time),
] };

#[rustfmt::skip]
pub(crate) static TOKEN_REVIEW: Message = Message { name: "io.k8s.api.authentication.v1.TokenReview", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&TOKEN_REVIEW_SPEC)).required(),
    Field::new("status", 3, T::Message(&TOKEN_REVIEW_STATUS)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static TOKEN_REVIEW_SPEC: Message = Message { name: "io.k8s.api.authentication.v1.TokenReviewSpec", type_meta: false, atomic: false, fields: &[
    Field::new("token", 1, T::String).omitempty().required(),
    Field::new("audiences", 2, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static TOKEN_REVIEW_STATUS: Message = Message { name: "io.k8s.api.authentication.v1.TokenReviewStatus", type_meta: false, atomic: false, fields: &[
    Field::new("authenticated", 1, T::Bool).omitempty(),
    Field::new("user", 2, T::Message(&USER_INFO)).omitempty(),
    Field::new("error", 3, T::String).omitempty(),
    Field::new("audiences", 4, T::String).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static USER_INFO: Message = Message { name: "io.k8s.api.authentication.v1.UserInfo", type_meta: false, atomic: false, fields: &[
    Field::new("username", 1, T::String).omitempty(),
    Field::new("uid", 2, T::String).omitempty(),
    Field::new("groups", 3, T::String).list().omitempty().list_type(L::Atomic),
    Field::new("extra", 4, T::Strings).map().omitempty(),
] };
