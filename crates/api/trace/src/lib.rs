//! The trace a change belongs to, from the request that wrote it to the volumes that show it.
//!
//! Steps of a change are spans of the `tracing` crate with the target [`TARGET`]. What turns them into traces is a
//! [`Tracer`], which the program installs if it was asked to; without one nothing has a trace, a span costs a load and
//! a branch, and no byte more is sent.

mod context;
mod tracer;

pub use context::TraceContext;
pub use tracer::{TARGET, Tracer, continue_from, current, install, is_on, of, step};
