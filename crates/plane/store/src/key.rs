//! The name of a value.

use std::{borrow::Borrow, fmt, ops::Deref, sync::Arc};

/// A key such as `/registry/configmaps/default/a`, ordered by its bytes.
///
/// Cloning shares the text. Any text is a key; its length counts towards
/// [`WRITE_BYTES_MAX`](crate::limits::WRITE_BYTES_MAX).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

// `str`, `Arc<str>` and `Key` order and hash alike, so maps of keys can be asked with a plain `&str`.
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Key(text.into())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Key(text.into())
    }
}

impl From<Arc<str>> for Key {
    fn from(text: Arc<str>) -> Self {
        Key(text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
