//! What is told of a change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::revision::Revision;

/// The content beneath a watched path is another than before. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Change {
    /// The watched path, as it was given.
    pub path: Arc<PathBuf>,
    /// What is there now.
    pub revision: Revision,
    /// What differs from the state that was told before; at the first look everything is [`KeyChange::Added`].
    pub keys: Arc<[KeyChange]>,
    /// True for the state that was found at the start, which changed nothing.
    pub is_initial: bool,
    /// When the first sign of it was seen: the event of the kernel, not the end of the quiet time.
    pub seen: Instant,
}

/// One key (a file's path relative to the watched path) of a [`Change`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyChange {
    /// It was not there before.
    Added(Arc<str>),
    /// Its content is another.
    Modified(Arc<str>),
    /// It is gone.
    Removed(Arc<str>),
}

impl KeyChange {
    /// The key, whatever became of it.
    pub fn key(&self) -> &str {
        match self {
            Self::Added(key) | Self::Modified(key) | Self::Removed(key) => key,
        }
    }
}
