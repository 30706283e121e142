//! Follows a collection: lists it, watches it, and goes on watching whatever happens in between.
//!
//! ```text
//!          ┌──────── 410: the diff against what was told becomes Applied and Deleted ──┐
//!          ▼                                                                            │
//!   list ──▶ Initial ──▶ watch after that revision ──▶ Applied · Deleted · (bookmarks) ─┤
//!                            ▲                                                          │
//!                            └── ended, broken, silent: from the last revision ─────────┘
//! ```
//!
//! What a consumer is told adds up, at every moment, to a state the server had; no change is told twice.

mod known;
mod list_watch;
mod observer;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::debug;

pub use list_watch::{ClientListWatch, ListWatch};
pub use observer::{FollowObserver, WatchEnd};

use crate::backoff::Backoff;
use crate::error::ClientError;
use crate::object::RawObject;
use crate::watch::WatchEvent;
use known::Known;

/// A watch that ends without a word within this time counts as failed: to ask again at once would be a loop.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// How patient a follower is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerConfig {
    /// The first pause after a failure; it doubles from there.
    pub backoff_min: Duration,
    /// The longest pause between two attempts.
    pub backoff_max: Duration,
    /// A watch that says nothing, no bookmark either, for so long is taken for dead and opened again.
    pub silence_max: Duration,
    /// Makes the jitter; `None` draws one.
    pub seed: Option<u64>,
}

impl FollowerConfig {
    /// For servers that send a bookmark about once a minute: silence of two such periods is too long.
    pub const STOCK: Self = Self {
        backoff_min: Duration::from_millis(50),
        backoff_max: Duration::from_secs(10),
        silence_max: Duration::from_secs(130),
        seed: None,
    };

    /// For a server in this process: nothing can be lost on the way, so silence means that nothing happens.
    pub const IN_PROCESS: Self = Self {
        silence_max: Duration::from_secs(365 * 24 * 60 * 60),
        ..Self::STOCK
    };

    /// For our own server, which sends node identities a bookmark every 5 s.
    pub const NODE: Self = Self {
        silence_max: Duration::from_secs(10),
        ..Self::STOCK
    };
}

/// What a follower tells.
#[derive(Debug)]
pub enum FollowEvent {
    /// All objects there are; the first event, and told once.
    Initial(Vec<RawObject>),
    /// The object is new or changed.
    Applied(RawObject),
    /// The object is gone. Its last known state.
    Deleted(RawObject),
    /// The server cannot be heard, and what was told may be old. The follower goes on trying; told at every
    /// failed attempt.
    Interrupted(ClientError),
    /// The server is heard again, and nothing was missed.
    Resumed,
}

/// What happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FollowerCounts {
    /// Complete lists.
    pub lists: u64,
    /// Watches opened.
    pub watches: u64,
    /// Watches that broke or fell silent, and attempts that failed; the regular end of a watch is none.
    pub failures: u64,
}

/// Follows one collection, see the module's picture. [`Follower::next`] never ends.
pub struct Follower<S: ListWatch> {
    source: S,
    config: FollowerConfig,
    backoff: Backoff,
    state: State<S::Watch>,
    pause: Option<Pause>,
    known: Known,
    resource_version: String,
    told_initial: bool,
    is_interrupted: bool,
    /// A revision expired, and since then no watch said anything.
    has_expired: bool,
    queue: VecDeque<FollowEvent>,
    counts: FollowerCounts,
    observer: Option<Arc<dyn FollowObserver>>,
}

enum State<W> {
    List,
    Open,
    Watch {
        events: W,
        opened: Instant,
        heard: Instant,
        said_something: bool,
    },
}

/// Waiting before the next attempt.
struct Pause {
    until: Instant,
    /// Nobody could connect: a connection that somebody makes ends the pause.
    for_connection: bool,
}

impl<S: ListWatch> Follower<S> {
    /// A follower; nothing is sent before [`Follower::next`].
    pub fn new(source: S, config: FollowerConfig) -> Self {
        let (min, max) = (config.backoff_min, config.backoff_max);
        let backoff = match config.seed {
            Some(seed) => Backoff::new(min, max, seed),
            None => Backoff::seeded(min, max),
        };
        Self {
            source,
            config,
            backoff,
            state: State::List,
            pause: None,
            known: Known::default(),
            resource_version: String::new(),
            told_initial: false,
            is_interrupted: false,
            has_expired: false,
            queue: VecDeque::new(),
            counts: FollowerCounts::default(),
            observer: None,
        }
    }

    /// Tells this observer of each watch that opens and ends.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn FollowObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// What happened so far.
    pub fn counts(&self) -> FollowerCounts {
        self.counts
    }

    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> FollowEvent {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return event;
            }
            if let Some(pause) = &self.pause {
                let (until, for_connection) = (pause.until, pause.for_connection);
                tokio::select! {
                    () = sleep_until(until) => {}
                    () = self.source.recovered(), if for_connection => {}
                }
                self.pause = None;
            }
            match self.state {
                State::List => self.list().await,
                State::Open => self.open().await,
                State::Watch { .. } => self.hear().await,
            }
        }
    }

    async fn list(&mut self) {
        match self.source.list().await {
            Err(error) => self.failed(error),
            Ok(list) => {
                self.counts.lists += 1;
                self.resource_version = list.resource_version;
                if self.told_initial {
                    self.queue.extend(self.known.replace(list.items));
                } else {
                    self.told_initial = true;
                    self.known.replace(list.items.clone());
                    self.queue.push_back(FollowEvent::Initial(list.items));
                }
                self.state = State::Open;
            }
        }
    }

    async fn open(&mut self) {
        match self.source.watch(&self.resource_version).await {
            Err(error) if error.is_expired() => self.expired(),
            Err(error) => self.failed(error),
            Ok(events) => {
                self.counts.watches += 1;
                if let Some(observer) = &self.observer {
                    observer.opened();
                }
                let now = Instant::now();
                self.state = State::Watch {
                    events,
                    opened: now,
                    heard: now,
                    said_something: false,
                };
                if std::mem::take(&mut self.is_interrupted) {
                    self.queue.push_back(FollowEvent::Resumed);
                }
            }
        }
    }

    async fn hear(&mut self) {
        let State::Watch {
            events,
            opened,
            heard,
            said_something,
        } = &mut self.state
        else {
            return;
        };
        let (opened, deadline) = (*opened, *heard + self.config.silence_max);
        match timeout_at(deadline, poll_fn(|cx| Pin::new(&mut *events).poll_next(cx))).await {
            Ok(Some(Ok(WatchEvent::Error(status)))) => self.broken(status.into()),
            Ok(Some(Ok(event))) => {
                *heard = Instant::now();
                *said_something = true;
                self.has_expired = false;
                self.backoff.reset();
                self.take(event);
            }
            Ok(Some(Err(error))) => self.broken(error),
            Ok(None) if *said_something || opened.elapsed() >= SHORT_WATCH => {
                self.ended(WatchEnd::Closed);
                self.state = State::Open;
            }
            Ok(None) => self.broken(ClientError::transport("the watch ended as soon as it began")),
            Err(_) => self.broken(ClientError::Timeout {
                after: self.config.silence_max,
            }),
        }
    }

    fn take(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.reached(object.resource_version());
                self.queue.extend(self.known.apply(object));
            }
            WatchEvent::Deleted(object) => {
                self.reached(object.resource_version());
                self.queue.extend(self.known.delete(object));
            }
            WatchEvent::Bookmark { resource_version, .. } => self.reached(&resource_version),
            WatchEvent::Error(_) => unreachable!("an error ends the watch before it gets here"),
        }
    }

    /// Goes on from here next time. Never from nowhere: that would be told as if everything were new.
    fn reached(&mut self, resource_version: &str) {
        if !resource_version.is_empty() {
            resource_version.clone_into(&mut self.resource_version);
        }
    }

    /// A running watch is over. The first attempt to go on comes at once if the watch had worked; one that kept
    /// silent until it was given up had not.
    fn broken(&mut self, error: ClientError) {
        self.ended(WatchEnd::of(&error));
        if error.is_expired() {
            return self.expired();
        }
        let State::Watch {
            opened,
            said_something,
            ..
        } = &self.state
        else {
            return self.failed(error);
        };
        let is_silence = matches!(error, ClientError::Timeout { .. });
        let had_worked = *said_something || (opened.elapsed() >= SHORT_WATCH && !is_silence);
        let is_refusal = error.status().is_some();
        self.state = State::Open;
        if had_worked && !is_refusal {
            debug!(%error, resource_version = %self.resource_version, "watch broke, opening it again");
            self.counts.failures += 1;
        } else {
            self.failed(error);
        }
    }

    fn ended(&self, end: WatchEnd) {
        if let Some(observer) = &self.observer {
            observer.ended(end);
        }
    }

    /// The last revision is too old to go on from: list again, after a pause if listing again did not help.
    fn expired(&mut self) {
        let had_worked = match &self.state {
            State::Watch { opened, .. } => opened.elapsed() >= SHORT_WATCH,
            State::List | State::Open => false,
        };
        debug!(resource_version = %self.resource_version, "revision expired, listing again");
        self.state = State::List;
        if std::mem::replace(&mut self.has_expired, true) && !had_worked {
            self.wait(None, false);
        }
    }

    fn failed(&mut self, error: ClientError) {
        self.counts.failures += 1;
        self.is_interrupted = true;
        if matches!(self.state, State::Watch { .. }) {
            self.state = State::Open;
        }
        let for_connection = matches!(error, ClientError::Connect { .. });
        self.wait(error.retry_after(), for_connection);
        self.queue.push_back(FollowEvent::Interrupted(error));
    }

    fn wait(&mut self, at_least: Option<Duration>, for_connection: bool) {
        let delay = self.backoff.next_delay().max(at_least.unwrap_or_default());
        self.pause = Some(Pause {
            until: Instant::now() + delay,
            for_connection,
        });
    }
}

impl<S: ListWatch> Drop for Follower<S> {
    fn drop(&mut self) {
        if matches!(self.state, State::Watch { .. }) {
            self.ended(WatchEnd::LetGo);
        }
    }
}
