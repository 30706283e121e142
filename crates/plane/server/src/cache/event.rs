//! One change of one object, and its encodings: made once, shared by every watcher that wants the same one.

use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use hotmap_kinds::Resource;
use hotmap_object::{Object, Revision};
use hotmap_trace::TraceContext;
use parking_lot::Mutex;

use super::decode;
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

/// What an object was before a change and is after it.
#[derive(Clone, Default)]
pub(crate) struct States {
    /// The new state; `None` if the object is gone.
    pub(crate) object: Option<Arc<Object>>,
    /// What it replaced; `None` if the object is new.
    pub(crate) previous: Option<Arc<Object>>,
}

/// The same as the store holds it: bytes that its own history keeps alive, too.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) object: Option<Bytes>,
    /// With the revision that wrote it.
    pub(crate) previous: Option<(Revision, Bytes)>,
}

/// One change of one object.
///
/// While it is warm, it holds the objects and the encodings that its watchers share. Then it is cold and holds what the store does,
/// and who reads it then decodes and encodes for himself: the history is in memory once.
pub(crate) struct CachedEvent {
    /// The revision of the change.
    pub(crate) revision: Revision,
    /// The key without the resource's prefix.
    pub(crate) key: Arc<str>,
    /// When it was committed; `None` if that was before this process began.
    pub(crate) committed: Option<SystemTime>,
    /// The trace of the request that made it, where somebody keeps it.
    pub(crate) trace: Option<TraceContext>,
    resource: &'static Resource,
    stored: Stored,
    /// `None` once the event is cold.
    warm: Mutex<Option<Warm>>,
}

/// What spares the watchers of a warm event work.
#[derive(Default)]
struct Warm {
    states: States,
    /// The previous state under this revision: what those are told who lose sight of the object.
    farewell: Option<Arc<Object>>,
    frames: Vec<(FrameKey, Bytes)>,
}

impl CachedEvent {
    /// A change that has happened just now.
    pub(crate) fn new(
        resource: &'static Resource,
        revision: Revision,
        key: Arc<str>,
        states: States,
        stored: Stored,
    ) -> Self {
        let warm = Warm {
            states,
            ..Warm::default()
        };
        Self {
            warm: Mutex::new(Some(warm)),
            ..Self::cold(resource, revision, key, stored)
        }
    }

    /// A change of which only the stored form is held.
    pub(crate) fn cold(
        resource: &'static Resource,
        revision: Revision,
        key: Arc<str>,
        stored: Stored,
    ) -> Self {
        Self {
            revision,
            key,
            committed: None,
            trace: None,
            resource,
            stored,
            warm: Mutex::new(None),
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

    /// The object before and after.
    pub(crate) fn states(&self) -> States {
        self.while_warm(|warm| warm.states.clone())
            .unwrap_or_else(|| States {
                object: self.decoded_object(),
                previous: self.decoded_previous(),
            })
    }

    /// The new state; `None` if the object is gone.
    pub(crate) fn object(&self) -> Option<Arc<Object>> {
        self.while_warm(|warm| warm.states.object.clone())
            .unwrap_or_else(|| self.decoded_object())
    }

    /// What it replaced; `None` if the object is new.
    pub(crate) fn previous(&self) -> Option<Arc<Object>> {
        self.while_warm(|warm| warm.states.previous.clone())
            .unwrap_or_else(|| self.decoded_previous())
    }

    /// The last state, under the revision of this change.
    pub(crate) fn farewell(&self) -> Option<Arc<Object>> {
        let last = |previous: &Arc<Object>| Arc::new(previous.at_deletion(self.revision));
        self.while_warm(|warm| {
            let previous = warm.states.previous.as_ref()?;
            Some(warm.farewell.get_or_insert_with(|| last(previous)).clone())
        })
        .unwrap_or_else(|| self.decoded_previous().as_ref().map(last))
    }

    fn while_warm<T>(&self, read: impl FnOnce(&mut Warm) -> T) -> Option<T> {
        self.warm.lock().as_mut().map(read)
    }

    fn decoded_object(&self) -> Option<Arc<Object>> {
        let value = self.stored.object.as_ref()?;
        decode::past(self.resource, &self.key, value, self.revision)
    }

    fn decoded_previous(&self) -> Option<Arc<Object>> {
        let (revision, value) = self.stored.previous.as_ref()?;
        decode::past(self.resource, &self.key, value, *revision)
    }

    /// The bytes of one frame; `encode` runs once for all watchers that ask for the same frame of a warm event.
    pub(crate) fn frame(&self, key: FrameKey, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut warm = self.warm.lock();
        let Some(Warm { frames, .. }) = warm.as_mut() else {
            drop(warm);
            return encode();
        };
        if let Some((_, frame)) = frames.iter().find(|(held, _)| *held == key) {
            return frame.clone();
        }
        let frame = encode();
        frames.push((key, frame.clone()));
        frame
    }

    /// Gives up all but the stored form: watchers that keep up are past this event.
    pub(crate) fn cool(&self) {
        let warm = self.warm.lock().take();
        // Freed without the lock.
        drop(warm);
    }

    /// What the history keeps alive, in bytes, with a fixed part for the event itself.
    pub(crate) fn history_bytes(&self) -> usize {
        const OVERHEAD: usize = 512;
        let previous = self.stored.previous.as_ref();
        OVERHEAD + self.key.len() + previous.map_or(0, |(_, value)| value.len())
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
