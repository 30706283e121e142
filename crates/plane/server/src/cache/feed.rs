//! The one task that moves the cache: it follows the store, applies what happened, and lets the oldest history go.

use std::{
    collections::VecDeque,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::{Duration, SystemTime},
};

use futures_core::Stream;
use hotmap_object::Revision;
use hotmap_store::{Event, EventKind, StoreError, Watch};
use tokio::time::Instant;
use tracing::{error, warn};

use super::{Cache, HistoryLimits, decode, event::Stored, load, resource_cache::Change};

/// All keys of all resources.
pub(super) const ROOT: &str = "/registry/";

/// Events applied together: enough that a burst costs one wake-up of everybody, few enough that no reader waits long.
const BATCH_EVENTS_MAX: usize = 256;

/// Age at which an event is cold, and holds its stored form only: a second and third copy of the history are for those
/// who read it at once. A watcher does within milliseconds, unless its client does not read.
pub(super) const WARM_AGE_MAX: Duration = Duration::from_secs(10);

/// Events that are warm at a time: a watcher that keeps up is never further behind, however much is written.
const WARM_EVENTS_MAX: usize = 1_024;

/// What warm events may hold twice, as [`CachedEvent::history_bytes`](super::CachedEvent::history_bytes) counts: a few
/// of the largest objects that there may be.
const WARM_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Follows the store for a [`Cache`].
pub(crate) struct Feed {
    cache: Arc<Cache>,
    limits: HistoryLimits,
    watch: Watch,
    history: History,
}

/// What the rings hold, over all resources in order.
#[derive(Default)]
pub(super) struct History {
    events: VecDeque<Retained>,
    bytes: usize,
    /// So many of them, the oldest, are cold; the others hold `warm_bytes`.
    cold: usize,
    warm_bytes: usize,
}

struct Retained {
    resource: usize,
    revision: Revision,
    bytes: usize,
    since: Instant,
}

impl Feed {
    pub(super) async fn start(cache: Arc<Cache>, limits: HistoryLimits) -> Result<Self, StoreError> {
        let (watch, history) = load::load(&cache).await?;
        Ok(Self {
            cache,
            limits,
            watch,
            history,
        })
    }

    /// Runs until the store closes; the error says why.
    pub(crate) async fn run(mut self) -> StoreError {
        let mut batch = Vec::with_capacity(BATCH_EVENTS_MAX);
        loop {
            let end = self.next_batch(&mut batch).await;
            self.apply(&mut batch);
            match end {
                None => {}
                Some(StoreError::Compacted { .. }) => {
                    warn!("the cache has fallen behind the store and is loaded anew");
                    match load::load(&self.cache).await {
                        Ok((watch, history)) => (self.watch, self.history) = (watch, history),
                        Err(error) => return error,
                    }
                }
                Some(error) => return error,
            }
        }
    }

    /// Fills `batch` with what is there, waiting for the first event or for the store to move on elsewhere.
    async fn next_batch(&mut self, batch: &mut Vec<Event>) -> Option<StoreError> {
        let (watch, cache) = (&mut self.watch, &self.cache);
        poll_fn(|context| {
            loop {
                match Pin::new(&mut *watch).poll_next(context) {
                    Poll::Ready(Some(Ok(event))) => batch.push(event),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(error)),
                    Poll::Ready(None) => {
                        let reason = "the stream of changes has ended".to_owned();
                        return Poll::Ready(Some(StoreError::Unavailable { reason }));
                    }
                    Poll::Pending if batch.is_empty() && watch.progress() <= cache.revision() => {
                        return Poll::Pending;
                    }
                    Poll::Pending => return Poll::Ready(None),
                }
                if batch.len() >= BATCH_EVENTS_MAX {
                    return Poll::Ready(None);
                }
            }
        })
        .await
    }

    fn apply(&mut self, batch: &mut Vec<Event>) {
        let reached = match batch.last() {
            // The stream may stand in the middle of what it has ready.
            Some(last) if batch.len() >= BATCH_EVENTS_MAX => last.revision,
            Some(last) => last.revision.max(self.watch.progress()),
            None => self.watch.progress(),
        };
        let mut changes: Vec<Vec<Change>> = self.cache.resources().iter().map(|_| Vec::new()).collect();
        for event in batch.drain(..) {
            if let Some((resource, change)) = self.change(event) {
                changes[resource].push(change);
            }
        }
        let since = Instant::now();
        let committed = SystemTime::now();
        let mut wake = Vec::new();
        let mut recorded = Vec::new();
        for (resource, changes) in changes
            .into_iter()
            .enumerate()
            .filter(|(_, changes)| !changes.is_empty())
        {
            let cache = &self.cache.resources()[resource];
            for Change { key, object, .. } in &changes {
                self.cache
                    .observer()
                    .changed(cache.resource(), key, object.as_deref());
            }
            let sizes = cache.apply(changes, committed, &mut wake);
            recorded.extend(
                sizes
                    .into_iter()
                    .map(|(revision, bytes)| (revision, resource, bytes)),
            );
        }
        recorded.sort_unstable();
        for (revision, resource, bytes) in recorded {
            self.history.push(resource, revision, bytes, since);
        }
        self.cache.publish(reached);
        wake.iter().for_each(|lane| lane.notify_waiters());
        self.prune(since);
    }

    fn change(&self, event: Event) -> Option<(usize, Change)> {
        let (resource, key) = self.cache.locate(&event.key)?;
        let trace = decode::trace(event.memo.as_ref());
        let object = match (event.kind, &event.value) {
            (EventKind::Put, Some(value)) => {
                let kind = self.cache.resources()[resource].resource();
                match decode::object(kind, value, event.memo, event.revision) {
                    Ok(object) => Some(object),
                    Err(error) => {
                        error!(key = %event.key, %error, "a stored value is no object and is not shown");
                        None
                    }
                }
            }
            _ => None,
        };
        let change = Change {
            revision: event.revision,
            key: key.into(),
            object,
            stored: Stored {
                object: event.value,
                previous: event.previous,
            },
            trace,
        };
        Some((resource, change))
    }

    /// Lets go what is too old, and of what is not warm any more all but the stored form.
    fn prune(&mut self, now: Instant) {
        while let Some(event) = self.history.next_cold(now) {
            self.cache.resources()[event.resource].cool(event.revision);
        }
        while let Some(oldest) = self.history.events.front() {
            let is_old = now.duration_since(oldest.since) > self.limits.age_max;
            let may_go = self.history.events.len() > self.limits.events_min;
            let must_go = self.history.bytes > self.limits.bytes_hard_max;
            if !(must_go || may_go && (is_old || self.history.bytes > self.limits.bytes_max)) {
                return;
            }
            self.cache.resources()[oldest.resource].forget(oldest.revision);
            self.history.pop();
        }
    }
}

impl History {
    pub(super) fn push(&mut self, resource: usize, revision: Revision, bytes: usize, since: Instant) {
        self.bytes += bytes;
        self.warm_bytes += bytes;
        self.events.push_back(Retained {
            resource,
            revision,
            bytes,
            since,
        });
    }

    /// The oldest of the warm events, if it is to be cold now.
    fn next_cold(&mut self, now: Instant) -> Option<&Retained> {
        let warm = self.events.len() - self.cold;
        let event = self.events.get(self.cold)?;
        let is_cold = now.duration_since(event.since) > WARM_AGE_MAX
            || warm > WARM_EVENTS_MAX
            || self.warm_bytes > WARM_BYTES_MAX;
        if !is_cold {
            return None;
        }
        self.cold += 1;
        self.warm_bytes -= event.bytes;
        Some(event)
    }

    fn pop(&mut self) {
        let Some(oldest) = self.events.pop_front() else {
            return;
        };
        self.bytes -= oldest.bytes;
        match self.cold.checked_sub(1) {
            Some(cold) => self.cold = cold,
            None => self.warm_bytes -= oldest.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_warm_until_time_number_or_size_says_otherwise() {
        let begun = Instant::now();
        let later = begun + WARM_AGE_MAX + Duration::from_millis(1);
        for (name, events, bytes, now, cold) in [
            ("few and small", 10, 600, begun, 0),
            ("of a while ago", 10, 600, later, 10),
            ("many", WARM_EVENTS_MAX + 3, 600, begun, 3),
            ("large", 10, WARM_BYTES_MAX / 4, begun, 6),
            ("one that is too large", 1, WARM_BYTES_MAX + 1, begun, 1),
        ] {
            let mut history = History::default();
            for revision in 1..=events as u64 {
                history.push(0, Revision(revision), bytes, begun);
            }
            // What is gone before it was cold counts no more.
            let mut rest = History::default();
            rest.push(0, Revision(1), bytes, begun);
            rest.pop();
            assert_eq!((rest.bytes, rest.warm_bytes), (0, 0), "{name}");
            let mut found = 0;
            while history.next_cold(now).is_some() {
                found += 1;
            }
            assert_eq!(found, cold, "{name}");
            history.pop();
            history.push(0, Revision(events as u64 + 1), bytes, later);
            let left: usize = history.events.iter().map(|event| event.bytes).sum();
            let warm: usize = history
                .events
                .iter()
                .skip(history.cold)
                .map(|event| event.bytes)
                .sum();
            assert_eq!((history.bytes, history.warm_bytes), (left, warm), "{name}");
        }
    }
}
