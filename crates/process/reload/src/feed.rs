//! Watchers on threads of their own, and the loop that brings what they tell to a [`Reloader`].

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use hotmap_projection::{Change, Health, Revision, Stopper, WatchConfig, WatchError, Watcher};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::pending::Pending;
use crate::reloader::{Outcome, Reloader};

/// A watcher that is this far ahead waits: what it tells later is newer anyway.
const EVENTS_MAX: usize = 16;
/// A watcher's thread reads directories and digests files; it calls nothing deep.
const STACK_BYTES: usize = 256 * 1_024;

/// Watches paths, each on a thread of its own that sleeps in the kernel while nothing happens.
pub(crate) struct Feed {
    events: mpsc::Receiver<Event>,
    threads: Vec<(Stopper, JoinHandle<()>)>,
    health: Vec<(PathBuf, Option<Health>)>,
}

enum Event {
    Changed { index: usize, change: Change },
    Renamed { index: usize, revision: Revision },
    Health { index: usize, health: Health },
}

/// Watching could not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    #[error("cannot watch {}: {source}", .path.display())]
    Watch { path: PathBuf, source: WatchError },
    #[error("cannot start a thread to watch {}: {source}", .path.display())]
    Thread { path: PathBuf, source: std::io::Error },
}

impl Feed {
    pub(crate) fn start(paths: &[PathBuf], config: WatchConfig) -> Result<Self, FeedError> {
        let (tell, events) = mpsc::channel(EVENTS_MAX);
        // Threads that have been started are stopped when one of the next cannot be.
        let mut feed = Self {
            events,
            threads: Vec::new(),
            health: Vec::new(),
        };
        for (index, path) in paths.iter().enumerate() {
            let failed = |source| FeedError::Watch {
                path: path.clone(),
                source,
            };
            let mut watcher = Watcher::new(path.clone(), config).map_err(failed)?;
            let tell_health = tell.clone();
            watcher.on_health(move |health| {
                let health = health.clone();
                // Nobody listens any more when the process ends.
                let _ = tell_health.blocking_send(Event::Health { index, health });
            });
            let tell_renamed = tell.clone();
            watcher.on_renamed(move |revision| {
                let revision = revision.clone();
                let _ = tell_renamed.blocking_send(Event::Renamed { index, revision });
            });
            let stopper = watcher.stopper();
            let tell = tell.clone();
            let thread = std::thread::Builder::new()
                .name("watch".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || {
                    while let Ok(change) = watcher.next() {
                        if tell.blocking_send(Event::Changed { index, change }).is_err() {
                            return;
                        }
                    }
                });
            let thread = thread.map_err(|source| FeedError::Thread {
                path: path.clone(),
                source,
            })?;
            feed.threads.push((stopper, thread));
            feed.health.push((path.clone(), None));
        }
        Ok(feed)
    }

    /// The next change. What is told of hearing goes to `reloader`'s progress on the way.
    async fn next(&mut self, hearing: &Hearing) -> Change {
        loop {
            if let (_, Some(change)) = self.event(hearing).await {
                return change;
            }
        }
    }

    /// The next thing that is told of a path, by its index.
    async fn event(&mut self, hearing: &Hearing) -> (usize, Option<Change>) {
        match self
            .events
            .recv()
            .await
            .expect("a watcher's thread ends only when the feed does")
        {
            Event::Changed { index, change } => (index, Some(change)),
            Event::Renamed { index, revision } => {
                hearing.renamed(&self.health[index].0, &revision);
                (index, None)
            }
            Event::Health { index, health } => {
                self.health[index].1 = Some(health);
                hearing.tell(&self.health);
                (index, None)
            }
        }
    }

    /// What every path holds at the start, without those that are not there. It waits until each path was looked at.
    async fn first_look(&mut self, hearing: &Hearing) -> Vec<Change> {
        let mut found: Vec<Option<Change>> = vec![None; self.threads.len()];
        let mut is_looked_at = vec![false; self.threads.len()];
        while is_looked_at.contains(&false) {
            let (index, change) = self.event(hearing).await;
            let is_missing = self.health[index].1.as_ref().is_some_and(Health::is_deaf);
            if change.is_some() {
                found[index] = change;
            }
            is_looked_at[index] |= found[index].is_some() || is_missing;
        }
        found.into_iter().flatten().collect()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // A thread that waits for room in the channel has to be let go as well.
        self.events.close();
        for (stopper, _) in &self.threads {
            stopper.stop();
        }
        for (_, thread) in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Where it is told whether changes are heard.
struct Hearing {
    progress: tokio::sync::watch::Sender<crate::progress::Progress>,
    metrics: crate::metrics::Metrics,
}

impl Hearing {
    fn renamed(&self, path: &Path, revision: &Revision) {
        self.progress.send_modify(|progress| {
            for volume in progress.volumes.iter_mut().filter(|volume| volume.path == path) {
                volume.renamed(revision);
            }
        });
    }

    fn of(reloader: &Reloader) -> Self {
        Self {
            progress: reloader.progress_sender(),
            metrics: reloader.metrics().clone(),
        }
    }

    fn tell(&self, health: &[(PathBuf, Option<Health>)]) {
        let reasons: Vec<String> = health
            .iter()
            .filter_map(|(_, health)| health.as_ref().filter(|health| health.is_deaf()))
            .map(Health::to_string)
            .collect();
        let deaf = (!reasons.is_empty()).then(|| reasons.join("; "));
        let is_other = self.progress.send_if_modified(|progress| {
            let is_other = progress.deaf != deaf;
            progress.deaf.clone_from(&deaf);
            is_other
        });
        if is_other {
            match &deaf {
                Some(reason) => warn!(error = %reason, "changes may be missed or come late"),
                None => info!("every change is heard"),
            }
            self.metrics.deaf(deaf.is_some());
        }
    }
}

/// What is done with the state that is found at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstLook {
    /// Whoever uses it has read it at its own start. Files are rendered.
    Adopt,
    /// It is brought to the targets like every change.
    Apply,
}

/// Brings each change to the targets, for ever. It may be dropped at any time.
pub(crate) async fn follow(
    reloader: &mut Reloader,
    feed: &mut Feed,
    first: FirstLook,
) -> std::convert::Infallible {
    follow_from(reloader, feed, first, |_| {}).await
}

/// As [`follow`]; `began` is told, once, how it went with what was found at the start, and [`Outcome::Loaded`] if nothing
/// was there.
pub(crate) async fn follow_from(
    reloader: &mut Reloader,
    feed: &mut Feed,
    first: FirstLook,
    began: impl FnOnce(&Outcome),
) -> std::convert::Infallible {
    let mut began = Some(began);
    let mut begin = |outcome: &Outcome| {
        if let Some(began) = began.take() {
            began(outcome);
        }
    };
    let hearing = Hearing::of(reloader);
    let mut pending = Pending::default();
    for change in feed.first_look(&hearing).await {
        pending.absorb(change);
    }
    loop {
        if pending.is_empty() {
            begin(&Outcome::Loaded);
            pending.absorb(feed.next(&hearing).await);
        }
        let changes = pending.changes().to_vec();
        let is_adopted = first == FirstLook::Adopt && changes.iter().all(|change| change.is_initial);
        let mut newer = None;
        let superseded = async { newer = Some(feed.next(&hearing).await) };
        let outcome = match is_adopted {
            true => reloader.adopt(&changes, superseded).await,
            false => reloader.apply(&changes, superseded).await,
        };
        if outcome == Outcome::Loaded {
            pending.clear();
        }
        if outcome != Outcome::Superseded {
            begin(&outcome);
        }
        match newer {
            Some(newer) => pending.absorb(newer),
            // What was held back or has failed is told together with the next change.
            None if !pending.is_empty() => pending.absorb(feed.next(&hearing).await),
            None => {}
        }
    }
}

/// Waits until every path is there, and brings what they hold to the targets, once.
pub(crate) async fn once(reloader: &mut Reloader, feed: &mut Feed) -> Outcome {
    let hearing = Hearing::of(reloader);
    let mut pending = Pending::default();
    while pending.changes().len() < feed.threads.len() {
        pending.absorb(feed.next(&hearing).await);
    }
    let changes = pending.changes().to_vec();
    reloader.apply(&changes, std::future::pending()).await
}

/// Whether one path lies in another, both as they were given.
pub(crate) fn is_within(path: &Path, directory: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute(path).starts_with(absolute(directory))
}
