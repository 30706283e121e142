//! What each served kind means: its names and verbs, its defaults, its rules and its table columns.
//!
//! Pure functions over JSON objects; HTTP and storage are the server's.

mod resource;
mod strategy;

pub use resource::{NameRule, Resource, Subresource};
pub use strategy::{Column, Strategy};
