//! What each served kind means: its names and verbs, its defaults, its rules and its table columns.
//!
//! Pure functions over JSON objects; HTTP and storage are the server's.

mod config_map;
mod endpoints;
mod event;
mod fields;
mod lease;
mod namespace;
mod node;
mod pod;
mod registry;
mod resource;
mod review;
mod secret;
mod service;
mod service_account;
mod strategy;
mod table;

pub use registry::{find, find_kind, resources};
pub use resource::{NameRule, Resource, Subresource};
pub use strategy::{Column, Strategy};
