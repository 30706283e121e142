//! Controllers: what makes the state of a cluster follow what its objects say.
//!
//! ```text
//!   binding              a pod without a node ──▶ pods/binding, or a condition and an event that say why not
//!   namespace lifecycle  a deleted namespace  ──▶ its content deleted, awaited, then namespaces/finalize
//! ```
//!
//! Both work from what is, never from which event came: started anew, they carry on where they were. They speak to the
//! API like any client and know neither disks nor agents.

mod binding;
mod controllers;
mod namespace_lifecycle;

pub use controllers::{ControllerError, run};
