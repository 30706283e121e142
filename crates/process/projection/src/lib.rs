#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!("hotmap-projection needs inotify, which only Linux has");

mod annotations;
mod change;
mod content;
mod digest;
mod file_system;
mod ground;
mod health;
mod layout;
mod limits;
mod look;
mod machine;
mod notifier;
mod revision;
mod snapshot;
mod watcher;
mod way;

pub use change::{Change, KeyChange};
pub use health::{Deafness, Health};
pub use limits::Limits;
pub use revision::Revision;
pub use snapshot::{Snapshot, SnapshotError};
pub use watcher::{Counts, Due, Handle, Stopped, Stopper, WatchConfig, WatchError, Watcher};
