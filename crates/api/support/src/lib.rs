//! Which fields of a pod a node honours, which it leaves aside with a word, and which it refuses; each with a sentence, and
//! what works with the tests that show it.
//!
//! ```text
//!   fields/*.rs ──▶ TABLES ──┬─▶ judge(spec) ──┬─▶ the agent: refuses the pod, or tells of what it leaves aside
//!   (one file per API type)  │                 └─▶ the API: a Warning for what has no effect
//!                            └─▶ docs/compatibility.md, "Every field of a pod"
//! ```
//!
//! A table has a row for each field of its type, which a walk through the schema checks; what is in no row is refused by
//! its name. Nothing a manifest says is passed over in silence.

mod fields;
mod judge;
mod row;

pub use fields::TABLES;
pub use judge::{Finding, judge};
pub use row::{Row, State, Table, Values};
