//! `io.k8s.api.events.v1`, written by `cargo xtask schema`; do not edit.

use crate::message::{Field, Message, Type as T};

#[rustfmt::skip]
pub(crate) static EVENT: Message = Message { name: "io.k8s.api.events.v1.Event", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::OBJECT_META)),
    Field::new("eventTime", 2, T::MicroTime).required(),
    Field::new("series", 3, T::Message(&EVENT_SERIES)).pointer().omitempty(),
    Field::new("reportingController", 4, T::String).omitempty(),
    Field::new("reportingInstance", 5, T::String).omitempty(),
    Field::new("action", 6, T::String).omitempty(),
    Field::new("reason", 7, T::String).omitempty(),
    Field::new("regarding", 8, T::Message(&super::core_v1::OBJECT_REFERENCE)).omitempty(),
    Field::new("related", 9, T::Message(&super::core_v1::OBJECT_REFERENCE)).pointer().omitempty(),
    Field::new("note", 10, T::String).omitempty(),
    Field::new("type", 11, T::String).omitempty(),
    Field::new("deprecatedSource", 12, T::Message(&super::core_v1::EVENT_SOURCE)).omitempty(),
    Field::new("deprecatedFirstTimestamp", 13, T::Time).omitempty(),
    Field::new("deprecatedLastTimestamp", 14, T::Time).omitempty(),
    Field::new("deprecatedCount", 15, T::Int32).omitempty(),
] };

#[rustfmt::skip]
pub(crate) static EVENT_LIST: Message = Message { name: "io.k8s.api.events.v1.EventList", type_meta: true, atomic: false, fields: &[
    Field::new("metadata", 1, T::Message(&super::meta_v1::LIST_META)).omitempty(),
    Field::new("items", 2, T::Message(&EVENT)).list().required(),
] };

#[rustfmt::skip]
pub(crate) static EVENT_SERIES: Message = Message { name: "io.k8s.api.events.v1.EventSeries", type_meta: false, atomic: false, fields: &[
    Field::new("count", 1, T::Int32).required(),
    Field::new("lastObservedTime", 2, T::MicroTime).required(),
] };
