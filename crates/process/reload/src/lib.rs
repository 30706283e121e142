//! From changed files to the process that has loaded them.
//!
//! ```text
//!   a watched directory ─▶ Change ─▶ check ─▶ targets: signal · webhook · exec · unit · container · render
//!   (or `sync` wrote it)                 │              │
//!                                        └──▶ Progress ◀┘──▶ metrics · endpoint · the agent's socket
//! ```

pub mod cli;
#[allow(dead_code, reason = "its first user is the webhook")]
mod http;
mod progress;
mod sync;
#[allow(dead_code, reason = "the command line names its targets")]
mod target;

pub use progress::{Phase, Progress, VolumeProgress};
pub use target::{Fired, Target, TargetError, TargetKind};
