//! What a caller asks for and what it is told.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{Key, Revision};

/// An in-process companion of a write, handed through to the watchers of its event, so that nobody need decode what
/// was just encoded. Never persisted, and dropped once the event is no longer among the newest
/// [`MEMO_EVENTS_MAX`](crate::limits::MEMO_EVENTS_MAX): a reader must be able to do without it.
pub type Memo = Arc<dyn Any + Send + Sync>;

/// One compare-and-write on one key.
#[derive(Clone)]
pub struct Write {
    /// The key to write.
    pub key: Key,
    /// What must be true of the key for the write to happen.
    pub expect: Expect,
    /// What happens to it.
    pub op: Op,
    /// Handed through to watchers.
    pub memo: Option<Memo>,
}

/// The state a write expects of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The key does not exist; else [`StoreError::Exists`](crate::StoreError::Exists).
    Absent,
    /// The key was last written at this revision; else [`StoreError::Conflict`](crate::StoreError::Conflict), or
    /// [`StoreError::NotFound`](crate::StoreError::NotFound) where there is no key. [`Revision::ZERO`] is
    /// [`Expect::Absent`], as in etcd.
    At(Revision),
}

/// What a write does to its key.
#[derive(Clone, PartialEq, Eq)]
pub enum Op {
    /// Sets the value.
    Put {
        /// The new value.
        value: Bytes,
        /// Time until the store deletes the key by itself, as an ordinary change with its own revision. `None`: never,
        /// also if the value before it had one. Kept in milliseconds.
        ttl: Option<Duration>,
    },
    /// Removes the key; [`StoreError::NotFound`](crate::StoreError::NotFound) where there is none.
    Delete,
}

impl Write {
    /// Creates a key that must not exist.
    pub fn create(key: impl Into<Key>, value: impl Into<Bytes>) -> Self {
        Self {
            key: key.into(),
            expect: Expect::Absent,
            op: Op::Put {
                value: value.into(),
                ttl: None,
            },
            memo: None,
        }
    }

    /// Replaces the value that was written at `seen`.
    pub fn update(key: impl Into<Key>, seen: Revision, value: impl Into<Bytes>) -> Self {
        Self {
            expect: Expect::At(seen),
            ..Self::create(key, value)
        }
    }

    /// Deletes the key whose value was written at `seen`.
    pub fn delete(key: impl Into<Key>, seen: Revision) -> Self {
        Self {
            key: key.into(),
            expect: Expect::At(seen),
            op: Op::Delete,
            memo: None,
        }
    }

    /// Lets the key expire after `ttl`; without effect on a delete.
    pub fn with_ttl(mut self, time_to_live: Duration) -> Self {
        if let Op::Put { ttl, .. } = &mut self.op {
            *ttl = Some(time_to_live);
        }
        self
    }

    /// Hands `memo` to the watchers of this write.
    pub fn with_memo(mut self, memo: Memo) -> Self {
        self.memo = Some(memo);
        self
    }

    /// Key and value in bytes: what [`WRITE_BYTES_MAX`](crate::limits::WRITE_BYTES_MAX) bounds.
    pub fn size(&self) -> usize {
        self.key.len()
            + match &self.op {
                Op::Put { value, .. } => value.len(),
                Op::Delete => 0,
            }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A value may be a secret: logs get its size only.
            Op::Put { value, ttl } => write!(f, "Put({} bytes, ttl {ttl:?})", value.len()),
            Op::Delete => f.write_str("Delete"),
        }
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Write")
            .field("key", &self.key)
            .field("expect", &self.expect)
            .field("op", &self.op)
            .finish_non_exhaustive()
    }
}

/// A write that has reached the disk.
#[derive(Clone, PartialEq, Eq)]
pub struct Committed {
    /// The write's own revision. For a delete it is the revision of the deletion.
    pub revision: Revision,
    /// The revision that created the key; for a delete, that had created it.
    pub created: Revision,
    /// What the key held before: the revision of that write and its value.
    pub previous: Option<(Revision, Bytes)>,
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed")
            .field("revision", &self.revision)
            .field("created", &self.created)
            .field("previous", &self.previous.as_ref().map(|(revision, _)| revision))
            .finish()
    }
}
