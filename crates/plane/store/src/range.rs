//! What a read asks for and what it gets.

use std::fmt;

use bytes::Bytes;

use crate::{Key, Revision};

/// The keys of a read: a half-open interval in byte order, at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first key.
    pub start: String,
    /// The first key after the range; `None`: no end.
    pub end: Option<String>,
    /// The revision to read at. `None` and [`Revision::ZERO`]: now.
    pub revision: Option<Revision>,
    /// At most this many entries. `None`: all.
    pub limit: Option<usize>,
}

impl Range {
    /// All keys that start with `prefix`; an empty prefix is every key.
    pub fn prefix(prefix: impl Into<String>) -> Self {
        let start = prefix.into();
        Self {
            end: successor(&start),
            start,
            revision: None,
            limit: None,
        }
    }

    /// One key.
    pub fn key(key: impl Into<String>) -> Self {
        let start = key.into();
        Self {
            end: Some(format!("{start}\0")),
            start,
            revision: None,
            limit: None,
        }
    }

    /// Only keys from `start` on, for the next page of a list. To begin after a key, append `\0` to it.
    /// A start before the range leaves it as it is.
    pub fn starting_at(mut self, start: impl Into<String>) -> Self {
        self.start = self.start.max(start.into());
        self
    }

    /// As it was at `revision`.
    pub fn at(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// At most `entries`; zero, as in etcd, is no limit.
    pub fn limit(mut self, entries: usize) -> Self {
        self.limit = (entries > 0).then_some(entries);
        self
    }

    /// Whether `key` lies in the range.
    pub fn contains(&self, key: &str) -> bool {
        key >= self.start.as_str() && self.end.as_deref().is_none_or(|end| key < end)
    }
}

/// The least text that is greater than every text with this prefix; `None` where there is none.
///
/// UTF-8 sorts like its code points, so raising the last character that can be raised is exact.
fn successor(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        let raised = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(raised) = raised {
            text.push(raised);
            return Some(text);
        }
    }
    None
}

/// A key with what it holds.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The revision of the write that set the value: etcd's `mod_revision`.
    pub revision: Revision,
    /// The revision of the write that created the key: etcd's `create_revision`.
    pub created: Revision,
    /// Writes since the key was created, that one included: etcd's `version`.
    pub version: u64,
    /// The value.
    pub value: Bytes,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key)
            .field("revision", &self.revision)
            .field("created", &self.created)
            .field("bytes", &self.value.len())
            .finish()
    }
}

/// The answer to a [`Range`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// In key order.
    pub items: Vec<Entry>,
    /// The revision at which this is the truth: the one asked for, else the newest when the read began. A watch
    /// after it misses nothing.
    pub revision: Revision,
    /// Entries of the range beyond the limit.
    pub remaining: u64,
}

impl Listed {
    /// Whether the limit cut the answer.
    pub fn more(&self) -> bool {
        self.remaining > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_the_least_text_beyond_it() {
        for (prefix, end) in [
            ("/a/", Some("/a0")),
            ("", None),
            ("\u{10ffff}", None),
            ("a\u{10ffff}", Some("b")),
            ("a\u{d7ff}", Some("a\u{e000}")),
        ] {
            assert_eq!(successor(prefix).as_deref(), end, "{prefix:?}");
        }
    }

    #[test]
    fn a_range_holds_what_it_names_and_nothing_else() {
        for (range, key, inside) in [
            (Range::prefix("/a/"), "/a/b", true),
            (Range::prefix("/a/"), "/a", false),
            (Range::prefix("/a/"), "/a/\u{10ffff}x", true),
            (Range::prefix("/a/"), "/a0", false),
            (Range::prefix(""), "anything", true),
            (Range::key("/a"), "/a", true),
            (Range::key("/a"), "/ab", false),
            (Range::prefix("/a/").starting_at("/a/b\0"), "/a/b", false),
            (Range::prefix("/a/").starting_at("/a/b\0"), "/a/ba", true),
            (Range::prefix("/b/").starting_at("/a/"), "/a/x", false),
        ] {
            assert_eq!(range.contains(key), inside, "{range:?} {key}");
        }
    }
}
