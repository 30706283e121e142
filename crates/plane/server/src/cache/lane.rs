//! A queue of changes that any number of watchers read by cursor.
//!
//! A resource has one lane with every change; an object that somebody watches by name has one of its own, so that the
//! watchers of one object sleep while others change.

use std::{collections::VecDeque, sync::Arc};

use hotmap_object::Revision;
use tokio::sync::Notify;

use super::{CachedEvent, ResourceCache};

/// The number of the first event of a fresh lane: room to put older events in front.
const FIRST_NUMBER: u64 = 1 << 40;

/// The watcher's place is no longer in the lane; changes up to this revision are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lagged {
    pub(crate) oldest: Revision,
}

pub(super) struct Lane {
    events: VecDeque<Arc<CachedEvent>>,
    /// The number of the first event held; numbers have no holes.
    first: u64,
    /// Every change after this revision is held.
    floor: Revision,
    pub(super) changed: Arc<Notify>,
}

impl Lane {
    pub(super) fn new(floor: Revision) -> Self {
        Self {
            events: VecDeque::new(),
            first: FIRST_NUMBER,
            floor,
            changed: Arc::new(Notify::new()),
        }
    }

    pub(super) fn floor(&self) -> Revision {
        self.floor
    }

    pub(super) fn push(&mut self, event: Arc<CachedEvent>) {
        self.events.push_back(event);
    }

    /// Puts the events in front that reach back to `floor`; they end where the lane has begun.
    pub(super) fn reach_back(&mut self, floor: Revision, older: Vec<Arc<CachedEvent>>) {
        for event in older.into_iter().rev() {
            self.events.push_front(event);
            self.first -= 1;
        }
        self.floor = self.floor.min(floor);
    }

    /// Drops what happened up to and including `revision`; answers with the last event dropped.
    pub(super) fn forget(&mut self, revision: Revision) {
        while self
            .events
            .front()
            .is_some_and(|event| event.revision <= revision)
        {
            self.events.pop_front();
            self.first += 1;
        }
        self.floor = self.floor.max(revision);
    }

    /// Drops everything and leaves no cursor behind: what came before `floor` is unknown.
    pub(super) fn reset(&mut self, floor: Revision) {
        self.first += self.events.len() as u64 + 1;
        self.events.clear();
        self.floor = floor;
    }

    pub(super) fn last_revision(&self) -> Option<Revision> {
        self.events.back().map(|event| event.revision)
    }

    /// The event of this revision.
    pub(super) fn at(&self, revision: Revision) -> Option<&Arc<CachedEvent>> {
        let at = self
            .events
            .binary_search_by_key(&revision, |event| event.revision);
        at.ok().map(|at| &self.events[at])
    }

    /// The events after a revision, oldest first.
    pub(super) fn after(&self, revision: Revision) -> impl DoubleEndedIterator<Item = &Arc<CachedEvent>> {
        self.events
            .range(self.events.partition_point(|event| event.revision <= revision)..)
    }

    /// The cursor that stands before the first event after `revision`.
    pub(super) fn cursor_after(&self, revision: Revision) -> u64 {
        self.first + self.events.partition_point(|event| event.revision <= revision) as u64
    }

    fn read(&self, cursor: u64, most: usize, into: &mut Vec<Arc<CachedEvent>>) -> Result<u64, Lagged> {
        let Some(at) = cursor.checked_sub(self.first) else {
            return Err(Lagged { oldest: self.floor });
        };
        let events = self.events.iter().skip(at as usize).take(most);
        let before = into.len();
        into.extend(events.cloned());
        Ok(cursor + (into.len() - before) as u64)
    }
}

/// A watcher's place in a lane. It costs the lane nothing: no queue, no copy.
pub(crate) struct Subscription {
    cache: Arc<ResourceCache>,
    /// The object watched by name; `None`: the resource's own lane.
    key: Option<Arc<str>>,
    cursor: u64,
    changed: Arc<Notify>,
}

impl Subscription {
    pub(super) fn new(
        cache: Arc<ResourceCache>,
        key: Option<Arc<str>>,
        cursor: u64,
        changed: Arc<Notify>,
    ) -> Self {
        Self {
            cache,
            key,
            cursor,
            changed,
        }
    }

    /// What is notified when there may be more to read.
    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    /// Appends the next events, `most` at a time.
    ///
    /// # Errors
    ///
    /// [`Lagged`] once the next event has left the lane.
    pub(crate) fn read(&mut self, most: usize, into: &mut Vec<Arc<CachedEvent>>) -> Result<(), Lagged> {
        let cursor = self.cursor;
        let read = self
            .cache
            .with_lane(self.key.as_deref(), |lane| lane.read(cursor, most, into));
        self.cursor = read?;
        Ok(())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.cache.unsubscribe(key);
        }
    }
}
