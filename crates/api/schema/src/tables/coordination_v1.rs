//! `io.k8s.api.coordination.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, Message, Type as T};

#[rustfmt::skip]
pub(crate) static LEASE: Message = Message { name: "io.k8s.api.coordination.v1.Lease", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("spec", 2, T::Message(&LEASE_SPEC)).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static LEASE_LIST: Message = Message { name: "io.k8s.api.coordination.v1.LeaseList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&LEASE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static LEASE_SPEC: Message = Message { name: "io.k8s.api.coordination.v1.LeaseSpec", type_meta: false, atomic: false, fields: &[
    Field::new("holderIdentity", 1, T::String).pointer().omitempty(),
    Field::new("leaseDurationSeconds", 2, T::Int32).pointer().omitempty(),
    Field::new("acquireTime", 3, T::MicroTime).pointer().omitempty(),
    Field::new("renewTime", 4, T::MicroTime).pointer().omitempty(),
    Field::new("leaseTransitions", 5, T::Int32).pointer().omitempty(),
    Field::new("strategy", 6, T::String).pointer().omitempty().go("v1.CoordinatedLeaseStrategy"),
    Field::new("preferredHolder", 7, T::String).pointer().omitempty(),
] };
