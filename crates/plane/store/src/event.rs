//! Changes, and the stream of them.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;

use crate::{Key, Memo, Revision, StoreError};

/// One change of one key.
#[derive(Clone)]
pub struct Event {
    /// The key that changed.
    pub key: Key,
    /// The revision of the change.
    pub revision: Revision,
    /// What happened.
    pub kind: EventKind,
    /// The new value; `None` for a delete.
    pub value: Option<Bytes>,
    /// What the key held before: the revision of that write and its value. `None` where the change created the key.
    pub previous: Option<(Revision, Bytes)>,
    /// What the writer handed along, if it did, in this process, and not long ago.
    pub memo: Option<Memo>,
}

/// What happened to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Created or updated.
    Put,
    /// Deleted, by a write or because its time was over.
    Delete,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("key", &self.key)
            .field("revision", &self.revision)
            .field("kind", &self.kind)
            .field("bytes", &self.value.as_ref().map(Bytes::len))
            .field("previous", &self.previous.as_ref().map(|(revision, _)| revision))
            .finish_non_exhaustive()
    }
}

/// What an engine gives to be wrapped as a [`Watch`].
pub trait WatchSource: Stream<Item = Result<Event, StoreError>> + Send {
    /// Every event of the watched keys up to and including this revision has been yielded.
    fn progress(&self) -> Revision;
}

/// The changes of the keys under a prefix: each once, in order. The stream ends after its first error.
///
/// It holds a cursor, not a queue: a watcher that stands still costs nothing and, once the history has moved past
/// its cursor, gets [`StoreError::Compacted`].
pub struct Watch(Pin<Box<dyn WatchSource>>);

impl Watch {
    /// Wraps an engine's stream.
    pub fn new(source: impl WatchSource + 'static) -> Self {
        Self(Box::pin(source))
    }

    /// The next change, as soon as there is one. Cancel-safe: a dropped future loses no event.
    pub async fn next(&mut self) -> Option<Result<Event, StoreError>> {
        StreamExt::next(self).await
    }

    /// Every change of the watched keys up to and including this revision has been yielded; what a bookmark may say.
    /// It advances while the stream is polled, also when only other keys change.
    pub fn progress(&self) -> Revision {
        self.0.progress()
    }
}

impl Stream for Watch {
    type Item = Result<Event, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}
