//! A cursor into the history, as a stream.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use tokio::sync::futures::OwnedNotified;

use super::memory::{CLOSED, Shared};
use crate::{Event, Revision, StoreError, WatchSource, limits};

/// History steps of one poll. A watcher far behind, or of few keys among many changes, lets others run in between.
const POLL_CHUNKS_MAX: usize = 16;

/// A fresh store is at this revision; nothing has happened before it.
const FIRST: Revision = Revision(1);

pub(super) struct Watcher {
    shared: Arc<Shared>,
    prefix: Box<str>,
    /// Changes up to here have been looked at.
    seen: Revision,
    /// Copied and not yet yielded: at most one chunk.
    ready: VecDeque<Event>,
    changed: Pin<Box<OwnedNotified>>,
    ended: bool,
}

impl Watcher {
    pub(super) fn start(shared: Arc<Shared>, prefix: &str, after: Revision) -> Result<Self, StoreError> {
        let seen = after.max(FIRST);
        shared.memory.read().reaches(seen)?;
        let changed = Box::pin(Arc::clone(&shared.changed).notified_owned());
        Ok(Self {
            shared,
            prefix: prefix.into(),
            seen,
            ready: VecDeque::new(),
            changed,
            ended: false,
        })
    }

    /// Copies what is new, at most one chunk. `false`: nothing is.
    fn refill(&mut self) -> Result<bool, StoreError> {
        // Most wake-ups of an idle watch end here, without the lock.
        if self.seen == self.shared.revision() {
            return Ok(false);
        }
        let memory = self.shared.memory.read();
        memory.reaches(self.seen)?;
        for change in memory.history.after(self.seen).take(limits::WATCH_CHUNK_EVENTS) {
            self.seen = change.revision;
            if change.key.starts_with(&*self.prefix) {
                self.ready.push_back(change.event());
            }
        }
        Ok(true)
    }
}

impl Stream for Watcher {
    type Item = Result<Event, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        for _ in 0..POLL_CHUNKS_MAX {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            match this.refill() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
            if this.shared.is_closed() {
                this.ended = true;
                return Poll::Ready(Some(Err(StoreError::Unavailable {
                    reason: CLOSED.into(),
                })));
            }
            // This notification was ordered before the look at the history, so no change falls in between.
            if this.changed.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.changed
                .set(Arc::clone(&this.shared.changed).notified_owned());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl WatchSource for Watcher {
    fn progress(&self) -> Revision {
        match self.ready.front() {
            Some(event) => Revision(event.revision.0 - 1),
            None => self.seen,
        }
    }
}
