//! Objects of a Kubernetes API as a directory that follows them, without a node and without root.
//!
//! ```text
//!   ConfigMaps, Secrets ─watch─▶ World ─▶ payload ─▶ one revision in DIR ─▶ targets are told ─▶ verified?
//!   (by name or by label)       merge: last wins     one rename, proof       ▲                   │ no
//!                                                    against power loss      └── former one ◀────┘
//! ```
//!
//! What cannot be fetched, merged or written changes nothing: the last good content stays, and a line and a metric say
//! why. Deciding is in `merge`, which does no I/O; `run` is the loop around it.

mod changes;
pub(crate) mod config;
mod contents;
mod destination;
mod fetch;
mod follow;
mod hearing;
mod manifests;
mod merge;
mod metrics;
pub(crate) mod object;
mod plain;
pub(crate) mod print;
mod rbac;
mod run;
mod sidecar;
mod state;
mod unit;
mod verify;
mod writer_thread;

use std::error::Error;

pub(crate) use config::SyncConfig;
pub(crate) use destination::Layout;
pub(crate) use fetch::FetchArgs;
pub(crate) use run::run;

/// An error and what caused it, in one line.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors repeat their cause in their own text.
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
