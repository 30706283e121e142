#![doc = include_str!("../README.md")]

mod builder;
mod changes;
mod deserialize;
#[cfg(feature = "endpoint")]
mod endpoint;
mod error;
mod format;
mod live;
mod loader;
mod node;
mod report;

pub use builder::{Builder, Missing, StartError};
pub use changes::{Changes, Closed, Subscription};
pub use error::{LoadError, Place};
pub use format::Format;
pub use live::{Guard, Live, Reload};
