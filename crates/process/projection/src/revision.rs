//! The name of what a directory holds.

use std::fmt;
use std::sync::Arc;

/// Names one state of a watched path: two different states never share a name within one process, unless somebody changes
/// a projected volume behind its writer's back.
///
/// Of a projected volume it is the target of `..data` (`..2026_01_31_09_05_07.1234567890`), the name that a node's agent
/// knows it by. Of plain files it is 16 hex digits of a digest under a key that this process has drawn: it may be
/// shown and logged, and says nothing about the content, Secrets included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revision(Arc<str>);

impl Revision {
    /// A revision of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
