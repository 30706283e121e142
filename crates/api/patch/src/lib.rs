//! The three ways Kubernetes clients change part of an object, as pure functions over JSON values.
//!
//! ```text
//!   json_patch             a list of operations         RFC 6902
//!   merge_patch            a partial object             RFC 7386
//!   strategic_merge_patch  a partial object + schema    lists merge by key, `$patch` and its relatives steer
//! ```
//!
//! Each takes the object by value and gives the changed one back, so a failure can leave nothing half done. None of
//! them decodes the result against the schema: that is the caller's next step.

mod error;
mod json_patch;
mod merge_patch;
mod nesting;
mod strategic;

pub use error::{OperationFailure, PatchError};
pub use json_patch::{COPY_BYTES_MAX, OPERATIONS_MAX, json_patch, json_patch_unknown_fields};
pub use merge_patch::merge_patch;
pub use nesting::NESTING_DEPTH_MAX;
pub use strategic::strategic_merge_patch;
