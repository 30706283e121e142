//! Watchers, and the loop that brings what they tell to a [`Reloader`].

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotmap_projection::{Change, Due, Health, Revision, WatchConfig, WatchError, Watcher};
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::pending::Pending;
use crate::reloader::{Outcome, Reloader};

/// A watcher that is this far ahead waits: what it tells later is newer anyway.
const EVENTS_MAX: usize = 16;
/// A look that took no longer than this is done where its event is heard the next time: to hand it to a thread and to
/// hear of its end costs two wake-ups, each of which takes longer than the look at a usual volume. Everything else in
/// this process waits meanwhile: a disk that stalls just then is waited for once.
const QUICK_LOOK: Duration = Duration::from_millis(1);

/// Watches paths. Each has a task that waits for the events of its watcher.
pub(crate) struct Feed {
    events: mpsc::Receiver<Event>,
    watching: JoinSet<()>,
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
    #[error("cannot wait for events of {}: {source}", .path.display())]
    Wait { path: PathBuf, source: std::io::Error },
}

impl Feed {
    /// Within a runtime.
    pub(crate) fn start(paths: &[PathBuf], config: WatchConfig) -> Result<Self, FeedError> {
        let (tell, events) = mpsc::channel(EVENTS_MAX);
        // Those that have begun end when one of the next cannot.
        let mut feed = Self {
            events,
            watching: JoinSet::new(),
            health: Vec::new(),
        };
        for (index, path) in paths.iter().enumerate() {
            let watched = Watched::new(index, path, config)?;
            feed.watching.spawn(watched.follow(tell.clone()));
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
            .expect("watching ends only when the feed does")
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
        let mut found: Vec<Option<Change>> = vec![None; self.health.len()];
        let mut is_looked_at = vec![false; self.health.len()];
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

/// What a look has to say beside the change, in order.
type Said = Arc<Mutex<Vec<Event>>>;

/// One path that is watched.
struct Watched {
    index: usize,
    watcher: Watcher,
    readiness: AsyncFd<OwnedFd>,
    said: Said,
    /// Whether the next look is expected to be over at once.
    is_quick: bool,
}

impl Watched {
    fn new(index: usize, path: &Path, config: WatchConfig) -> Result<Self, FeedError> {
        let mut watcher = Watcher::new(path, config).map_err(|source| FeedError::Watch {
            path: path.to_owned(),
            source,
        })?;
        let readiness = readiness(&watcher).map_err(|source| FeedError::Wait {
            path: path.to_owned(),
            source,
        })?;
        let said = Said::default();
        let say = said.clone();
        watcher.on_health(move |health| {
            let health = health.clone();
            say.lock().push(Event::Health { index, health });
        });
        let say = said.clone();
        watcher.on_renamed(move |revision| {
            let revision = revision.clone();
            say.lock().push(Event::Renamed { index, revision });
        });
        Ok(Self {
            index,
            watcher,
            readiness,
            said,
            is_quick: false,
        })
    }

    /// Until nobody listens any more.
    async fn follow(mut self, tell: mpsc::Sender<Event>) {
        loop {
            match self.watcher.due() {
                Due::Now => {
                    let (looked, change) = self.look().await;
                    self = looked;
                    let index = self.index;
                    let mut events = std::mem::take(&mut *self.said.lock());
                    events.extend(change.map(|change| Event::Changed { index, change }));
                    for event in events {
                        if tell.send(event).await.is_err() {
                            return;
                        }
                    }
                }
                Due::At(time) => {
                    tokio::select! {
                        ready = self.readiness.readable() => match ready {
                            // What comes from now on makes it ready again, and all else is heard by the next `due`.
                            Ok(mut ready) => ready.clear_ready(),
                            Err(_) => return, // the runtime ends
                        },
                        () = tokio::time::sleep_until(time.into()) => {}
                    }
                }
            }
        }
    }

    /// Looks here, or on a thread where it may take longer: at the first time, at large volumes, on file systems that
    /// others answer for.
    async fn look(mut self) -> (Self, Option<Change>) {
        let is_quick = self.is_quick;
        let look = move || {
            let began = Instant::now();
            let change = self.watcher.look();
            self.is_quick = began.elapsed() <= QUICK_LOOK && !self.watcher.health().is_deaf();
            (self, change)
        };
        if is_quick {
            return look();
        }
        match tokio::task::spawn_blocking(look).await {
            Ok(looked) => looked,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// The descriptor that a watcher waits on, known to the runtime.
fn readiness(watcher: &Watcher) -> std::io::Result<AsyncFd<OwnedFd>> {
    let descriptor = watcher.as_fd().try_clone_to_owned()?;
    // SAFETY: an OwnedFd is the same open descriptor for as long as it lives, and AsyncFd lends it out only by reference.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    Ok(registered?)
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
    while pending.changes().len() < feed.health.len() {
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
