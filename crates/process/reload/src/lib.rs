//! From changed files to the process that has loaded them.
//!
//! ```text
//!   a watched directory ─▶ Change ─▶ render ─▶ check ─▶ targets: signal · webhook · exec · unit · container
//!   (or `sync` wrote it)                         │              │
//!                                                └──▶ Progress ◀┘──▶ metrics · endpoint · the agent's socket
//! ```

mod announcer;
mod check;
pub mod cli;
mod command;
mod disposition;
mod endpoint;
mod feed;
mod http;
mod metric_names;
mod metrics;
mod pace;
mod pending;
mod probe;
mod progress;
mod reloader;
mod render;
mod report;
mod resolver;
mod run;
mod shown;
mod state_file;
mod sync;
mod target;

pub use check::{Check, CheckError};
pub use command::{CommandLine, WordsError};
pub use metric_names::MetricNames;
pub use metrics::Metrics;
pub use pace::Pace;
pub use pending::Pending;
pub use progress::{Phase, Progress, VolumeProgress};
pub use reloader::{Order, Outcome, Reloader, ReloaderConfig};
pub use render::{Render, RenderPaths, Syntax, Undefined, Variables};
pub use resolver::resolve_names_by_files_and_dns;
pub use target::exec::Exec;
pub use target::signal::{Address, SignalName, Signaller};
pub use target::{Fired, Target, TargetError, TargetKind};
