//! Who has which revision of a ConfigMap or Secret, and who is behind, and why.
//!
//! ```text
//!   the object ─────────────┐
//!   pods of its namespace ──┼──join──▶ Status ──▶ table, JSON
//!   DeliveryReports ────────┘  (pure)
//! ```
//!
//! A report lists who is behind; a pod that refers to the object and is in no row has the revision that its node calls
//! current. That is believed only if the node has heard of the newest one. Nothing here needs a right on Secrets.

mod join;
mod pod;
mod query;
mod render;
mod report;
mod target;

pub use join::{Current, PodRow, Since, State, Status, join};
pub use pod::{PodView, Via};
pub use query::{Following, QueryError, RBAC, ask};
pub use render::{progress, summary, table};
pub use report::ReportView;
pub use target::{ObjectKind, Target, TargetError};
