//! What each served kind means: its names and verbs, its defaults, its rules and its table columns.
//!
//! Pure functions over JSON objects; HTTP and storage are the server's. An object that the schema has not checked may
//! give nonsense answers here, but never a panic: what has the wrong type reads as absent.

mod certificate_signing_request;
mod config_map;
mod controller_revision;
mod cron_job;
mod daemon_set;
mod delivery_report;
mod deployment;
mod endpoints;
mod event;
mod fields;
mod int_or_percent;
mod job;
mod label_selector;
mod lease;
mod metadata;
mod namespace;
mod node;
mod pod;
mod pod_disruption_budget;
#[cfg(test)]
mod properties;
mod quantity;
mod registry;
mod replica_set;
mod resource;
mod review;
mod role;
mod role_binding;
mod rules;
mod scale;
mod secret;
mod service;
mod service_account;
mod stateful_set;
mod strategy;
mod table;
#[cfg(test)]
mod testing;
mod workload;
mod write;

pub use certificate_signing_request::{
    CertificateRequest, CertificateRequestError, NodeRequestError, RequestState, fill_condition_times,
};
pub use delivery_report::{OBJECTS_MAX, ROWS_MAX, ROWS_PER_OBJECT_MAX, TEXT_BYTES_MAX};
pub use metadata::{drop_duplicate_owners, validate_metadata, validate_metadata_update};
pub use pod::{BindError, bind, validate_binding};
pub use pod_disruption_budget::{
    Disruption, EvictionError, count_disruption, disruption, guards, is_beyond_budgets, mark_evicted,
};
pub use registry::{find, find_kind, resources};
pub use resource::{NameRule, Resource, Subresource};
pub use scale::{scale_of, set_scale, validate_scale};
pub use strategy::{Column, Strategy};
pub use write::{validate_create, validate_update};
