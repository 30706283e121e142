//! `io.k8s.api.discovery.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, ListType as L, Message, Type as T};

#[rustfmt::skip]
pub(crate) static ENDPOINT: Message = Message { name: "io.k8s.api.discovery.v1.Endpoint", type_meta: false, atomic: false, fields: &[
    Field::new("addresses", 1, T::String).list().required().list_type(L::Set),
    Field::new("conditions", 2, T::Message(&ENDPOINT_CONDITIONS)).omitempty(),
    Field::new("hostname", 3, T::String).pointer().omitempty(),
    Field::new("targetRef", 4, T::Message(&super::core_v1::OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("deprecatedTopology", 5, T::String).map().omitempty(),
    Field::new("nodeName", 6, T::String).pointer().omitempty(),
    Field::new("zone", 7, T::String).pointer().omitempty(),
    Field::new("hints", 8, T::Message(&ENDPOINT_HINTS)).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_CONDITIONS: Message = Message { name: "io.k8s.api.discovery.v1.EndpointConditions", type_meta: false, atomic: false, fields: &[
    Field::new("ready", 1, T::Bool).pointer().omitempty(),
    Field::new("serving", 2, T::Bool).pointer().omitempty(),
    Field::new("terminating", 3, T::Bool).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_HINTS: Message = Message { name: "io.k8s.api.discovery.v1.EndpointHints", type_meta: false, atomic: false, fields: &[
    Field::new("forZones", 1, T::Message(&FOR_ZONE)).list().omitempty().list_type(L::Atomic),
    Field::new("forNodes", 2, T::Message(&FOR_NODE)).list().omitempty().list_type(L::Atomic),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_PORT: Message = Message { name: "io.k8s.api.discovery.v1.EndpointPort", type_meta: false, atomic: true, fields: &[
    Field::new("name", 1, T::String).pointer().omitempty(),
    Field::new("protocol", 2, T::String).pointer().omitempty().go("v1.Protocol").one_of(&["SCTP", "TCP", "UDP"]),
    Field::new("port", 3, T::Int32).pointer().omitempty(),
    Field::new("appProtocol", 4, T::String).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_SLICE: Message = Message { name: "io.k8s.api.discovery.v1.EndpointSlice", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("endpoints", 2, T::Message(&ENDPOINT)).list().list_type(L::Atomic),
    Field::new("ports", 3, T::Message(&ENDPOINT_PORT)).list().list_type(L::Atomic),
    Field::new("addressType", 4, T::String).required().go("v1.AddressType"),
] };

#[rustfmt::skip]
pub(crate) static ENDPOINT_SLICE_LIST: Message = Message { name: "io.k8s.api.discovery.v1.EndpointSliceList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&ENDPOINT_SLICE)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static FOR_NODE: Message = Message { name: "io.k8s.api.discovery.v1.ForNode", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static FOR_ZONE: Message = Message { name: "io.k8s.api.discovery.v1.ForZone", type_meta: false, atomic: false, fields: &[
    Field::new("name", 1, T::String).required(),
] };
