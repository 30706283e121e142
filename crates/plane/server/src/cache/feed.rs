//! The one task that moves the cache: it follows the store, applies what happened, and lets the oldest history go.

use std::{collections::VecDeque, future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::SystemTime};

use futures_core::Stream;
use hotmap_object::{Object, Revision};
use hotmap_store::{Event, EventKind, StoreError, Watch};
use hotmap_trace::TraceContext;
use tokio::time::Instant;
use tracing::{error, warn};

use super::{Cache, HistoryLimits, decode, load};

/// All keys of all resources.
pub(super) const ROOT: &str = "/registry/";

/// Events applied together: enough that a burst costs one wake-up of everybody, few enough that no reader waits long.
const BATCH_EVENTS_MAX: usize = 256;

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
}

struct Retained {
    resource: usize,
    revision: Revision,
    bytes: usize,
    since: Instant,
}

type Change = (Revision, Arc<str>, Option<Arc<Object>>, Option<TraceContext>);

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
            for (_, key, object, _) in &changes {
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
        Some((resource, (event.revision, key.into(), object, trace)))
    }

    fn prune(&mut self, now: Instant) {
        while let Some(oldest) = self.history.events.front() {
            let is_old = now.duration_since(oldest.since) > self.limits.age_max;
            let may_go = self.history.events.len() > self.limits.events_min;
            let must_go = self.history.bytes > self.limits.bytes_hard_max;
            if !(must_go || may_go && (is_old || self.history.bytes > self.limits.bytes_max)) {
                return;
            }
            self.cache.resources()[oldest.resource].forget(oldest.revision);
            self.history.bytes -= oldest.bytes;
            self.history.events.pop_front();
        }
    }
}

impl History {
    pub(super) fn push(&mut self, resource: usize, revision: Revision, bytes: usize, since: Instant) {
        self.bytes += bytes;
        self.events.push_back(Retained {
            resource,
            revision,
            bytes,
            since,
        });
    }
}
