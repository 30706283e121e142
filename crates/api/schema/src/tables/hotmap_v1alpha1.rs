//! `hotmap.dev/v1alpha1`: kinds of our own, written by hand in the shape of the generated tables.
//!
//! Numbers on the wire are never given twice; a field that goes leaves a gap. `deploy/crds` says the same to clusters that
//! are not ours, and a test of `openapi` holds the two together.

use crate::message::{Field, Kind, ListType as L, Message, Type as T};

/// Sorted by kind; searched after the generated ones.
#[rustfmt::skip]
pub(super) static KINDS: &[Kind] = &[
    Kind { group: "hotmap.dev", version: "v1alpha1", kind: "DeliveryReport", message: &DELIVERY_REPORT },
    Kind { group: "hotmap.dev", version: "v1alpha1", kind: "DeliveryReportList", message: &DELIVERY_REPORT_LIST },
];

#[rustfmt::skip]
pub(crate) static DELIVERY_REPORT: Message = Message { name: "dev.hotmap.v1alpha1.DeliveryReport", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)).omitempty(),
    Field::new("objects", 2, T::Message(&OBJECT_DELIVERY)).list().omitempty().list_type(L::Atomic),
    Field::new("objectsOmitted", 3, T::Int32).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static DELIVERY_REPORT_LIST: Message = Message { name: "dev.hotmap.v1alpha1.DeliveryReportList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&DELIVERY_REPORT)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static OBJECT_DELIVERY: Message = Message { name: "dev.hotmap.v1alpha1.ObjectDelivery", type_meta: false, atomic: false, fields: &[
    Field::new("ref", 1, T::Message(&OBJECT_REFERENCE)).required(),
    Field::new("uid", 2, T::String).omitempty(),
    Field::new("current", 3, T::Message(&OBJECT_REVISION)).pointer().omitempty(),
    Field::new("consumers", 4, T::Int32).required(),
    Field::new("visibleAt", 5, T::Message(&VISIBLE_SPAN)).pointer().omitempty(),
    Field::new("loaded", 6, T::Message(&LOADED_COUNTS)).pointer().omitempty(),
    Field::new("behind", 7, T::Message(&CONSUMER_BEHIND)).list().omitempty().list_type(L::Atomic),
    Field::new("behindCount", 8, T::Int32).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static OBJECT_REFERENCE: Message = Message { name: "dev.hotmap.v1alpha1.ObjectReference", type_meta: false, atomic: false, fields: &[
    Field::new("kind", 1, T::String).required().one_of(&["ConfigMap", "Secret"]),
    Field::new("namespace", 2, T::String).required(),
    Field::new("name", 3, T::String).required(),
] };

#[rustfmt::skip]
pub(crate) static OBJECT_REVISION: Message = Message { name: "dev.hotmap.v1alpha1.ObjectRevision", type_meta: false, atomic: false, fields: &[
    Field::new("resourceVersion", 1, T::String).omitempty(),
    Field::new("digest", 2, T::String).omitempty(),
    Field::new("heardAt", 3, T::MicroTime).pointer().omitempty(),
    Field::new("committedAt", 4, T::MicroTime).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static VISIBLE_SPAN: Message = Message { name: "dev.hotmap.v1alpha1.VisibleSpan", type_meta: false, atomic: false, fields: &[
    Field::new("first", 1, T::MicroTime).pointer().omitempty(),
    Field::new("last", 2, T::MicroTime).pointer().omitempty(),
] };

#[rustfmt::skip]
pub(crate) static LOADED_COUNTS: Message = Message { name: "dev.hotmap.v1alpha1.LoadedCounts", type_meta: false, atomic: false, fields: &[
    Field::new("reporting", 1, T::Int32).required(),
    Field::new("current", 2, T::Int32).required(),
] };

#[rustfmt::skip]
pub(crate) static CONSUMER_BEHIND: Message = Message { name: "dev.hotmap.v1alpha1.ConsumerBehind", type_meta: false, atomic: false, fields: &[
    Field::new("pod", 1, T::String).required(),
    Field::new("podUID", 2, T::String).omitempty(),
    Field::new("volume", 3, T::String).omitempty(),
    Field::new("container", 4, T::String).omitempty(),
    Field::new("stage", 5, T::String).required().one_of(&["loaded", "projected"]),
    Field::new("resourceVersion", 6, T::String).omitempty(),
    Field::new("since", 7, T::MicroTime).pointer().omitempty(),
    Field::new("reason", 8, T::String).required(),
] };
