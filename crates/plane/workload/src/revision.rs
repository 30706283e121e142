//! The history of a StatefulSet or DaemonSet: one ControllerRevision per pod template it has had.
//!
//! ```text
//!   spec.template ──▶ snapshot ──┬─ the newest revision holds it   ──▶ nothing to do
//!                                ├─ an older one does (a rollback) ──▶ that one gets the newest number
//!                                └─ none does                      ──▶ a new one: <owner>-<hash of the snapshot>
//! ```
//!
//! Source: `pkg/controller/history/controller_history.go`, Kubernetes 1.36.

mod history;
mod snapshot;
mod upkeep;

pub(crate) use history::{Current, beyond_limit, current, duplicates, sort};
pub(crate) use snapshot::{Snapshot, template_of};
pub(crate) use upkeep::{delete, establish, history};
