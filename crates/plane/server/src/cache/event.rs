//! One change of one object, and its encodings: made once, shared by every watcher that wants the same one.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use bytes::Bytes;
use hotmap_object::{Object, Revision};
use hotmap_trace::TraceContext;
use parking_lot::Mutex;

use crate::http::negotiation::Negotiated;

/// What a watcher is told has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl EventType {
    /// The spelling on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
            EventType::Bookmark => "BOOKMARK",
            EventType::Error => "ERROR",
        }
    }
}

/// How much of an object goes into a row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    #[default]
    Metadata,
    Object,
    None,
}

/// What makes two frames of one event the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameKey {
    /// What this watcher is told: selectors turn a change into an entrance or an exit.
    pub(crate) kind: EventType,
    /// API group the watcher reads through: two groups may show one stored object in different shapes.
    pub(crate) group: &'static str,
    pub(crate) negotiated: Negotiated,
    pub(crate) include: IncludeObject,
    /// Whether the frame tells when the change was committed, and in which trace.
    pub(crate) commit_time: bool,
}

/// One change of one object.
pub(crate) struct CachedEvent {
    /// The revision of the change.
    pub(crate) revision: Revision,
    /// The key without the resource's prefix.
    pub(crate) key: Arc<str>,
    /// The new state; `None` if the object is gone.
    pub(crate) object: Option<Arc<Object>>,
    /// When it was committed; `None` if that was before this process began.
    pub(crate) committed: Option<SystemTime>,
    /// The trace of the request that made it, where somebody keeps it.
    pub(crate) trace: Option<TraceContext>,
    /// What it replaced; `None` if the object is new.
    pub(crate) previous: Option<Arc<Object>>,
    /// The previous state under this revision: what those are told who lose sight of the object.
    farewell: OnceLock<Arc<Object>>,
    /// `None` once the event is old: those who read it then encode for themselves.
    frames: Mutex<Option<Vec<(FrameKey, Bytes)>>>,
}

impl CachedEvent {
    pub(crate) fn new(
        revision: Revision,
        key: Arc<str>,
        object: Option<Arc<Object>>,
        previous: Option<Arc<Object>>,
    ) -> Self {
        Self {
            revision,
            key,
            object,
            committed: None,
            trace: None,
            previous,
            farewell: OnceLock::new(),
            frames: Mutex::new(Some(Vec::new())),
        }
    }

    /// The same, committed at this time.
    pub(crate) fn at(mut self, committed: SystemTime) -> Self {
        self.committed = Some(committed);
        self
    }

    /// The same, in this trace.
    pub(crate) fn of(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace;
        self
    }

    /// The last state, under the revision of this change.
    pub(crate) fn farewell(&self) -> Option<&Arc<Object>> {
        let previous = self.previous.as_ref()?;
        Some(
            self.farewell
                .get_or_init(|| Arc::new(previous.at_deletion(self.revision))),
        )
    }

    /// The bytes of one frame; `encode` runs once for all watchers that ask for the same frame.
    pub(crate) fn frame(&self, key: FrameKey, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut frames = self.frames.lock();
        let Some(frames) = frames.as_mut() else {
            return encode();
        };
        if let Some((_, frame)) = frames.iter().find(|(held, _)| *held == key) {
            return frame.clone();
        }
        let frame = encode();
        frames.push((key, frame.clone()));
        frame
    }

    /// Gives the shared encodings up: watchers that keep up are past this event.
    pub(crate) fn forget_frames(&self) {
        *self.frames.lock() = None;
    }

    /// What only the history keeps alive, in bytes, with a fixed part for the event itself.
    pub(crate) fn history_bytes(&self) -> usize {
        const OVERHEAD: usize = 512;
        OVERHEAD + self.key.len() + self.previous.as_ref().map_or(0, |object| object.json().len())
    }
}

impl fmt::Debug for CachedEvent {
    // An object may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedEvent")
            .field("revision", &self.revision)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
