//! The live value, and the threads that keep it so.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use event_listener::Event;
use hotmap_projection::{Deafness, Handle, Health, Revision, WatchConfig, Watcher};
use serde::de::DeserializeOwned;

use crate::builder::{Builder, Missing, StartError};
use crate::changes::{Changes, Closed, Subscription};
#[cfg(feature = "endpoint")]
use crate::endpoint::Endpoint;
use crate::error::LoadError;
use crate::loader::{Loader, Source};
use crate::report::Reporter;

/// A configuration that follows its files. Cloning is cheap, and all clones are one; when the last is dropped nothing is
/// followed any more.
pub struct Live<T> {
    shared: Arc<Shared<T>>,
    /// Ends the threads when the last clone goes.
    watching: Arc<Watching>,
}

/// The configuration of one moment. It holds the value, not a lock: keep it as long as a request takes, not for ever.
pub struct Guard<T>(arc_swap::Guard<Arc<T>>);

/// What became of a change in the files.
#[derive(Debug)]
pub enum Reload<'a, T> {
    /// It is live.
    Loaded(&'a Arc<T>),
    /// It is not; what was live before still is.
    Refused(&'a LoadError),
}

pub(crate) type OnReload<T> = Box<dyn FnMut(Reload<'_, T>) + Send>;

pub(crate) struct Shared<T> {
    pub(crate) value: ArcSwap<T>,
    /// How often the value was replaced.
    pub(crate) version: AtomicU64,
    pub(crate) is_closed: AtomicU64,
    pub(crate) event: Event,
    error: Mutex<Option<Arc<LoadError>>>,
}

struct Watching {
    stops: Vec<Box<dyn Fn() + Send + Sync>>,
    handles: Vec<Handle>,
    reporter: Option<Arc<Reporter>>,
    close: Box<dyn Fn() + Send + Sync>,
}

impl<T: DeserializeOwned + Send + Sync + 'static> Live<T> {
    /// Begins to say what the configuration is made of.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    pub(crate) fn start(
        loader: Loader<T>,
        watch: WatchConfig,
        deadline: Instant,
        on_reload: Option<OnReload<T>>,
        agent_socket: Option<PathBuf>,
    ) -> Result<Self, StartError> {
        let mut followed = Vec::new();
        for (source, missing) in loader.sources() {
            followed.push((Followed::new(source, watch)?, missing));
        }
        let (value, revisions) = first(&loader, &followed, watch, deadline)?;
        let shared = Arc::new(Shared {
            value: ArcSwap::from_pointee(value),
            version: AtomicU64::new(0),
            is_closed: AtomicU64::new(0),
            event: Event::new(),
            error: Mutex::new(None),
        });
        let reporter = agent_socket.and_then(Reporter::start);
        let closing = shared.clone();
        let watching = Watching {
            stops: followed.iter().map(|(followed, _)| followed.stop()).collect(),
            handles: followed
                .iter()
                .filter_map(|(followed, _)| followed.handle())
                .collect(),
            reporter: reporter.clone(),
            close: Box::new(move || closing.close()),
        };
        let live = Self {
            shared: shared.clone(),
            watching: Arc::new(watching),
        };
        let reloader = Arc::new(Mutex::new(Reloader {
            loader,
            shared,
            told: vec![None; revisions.len()],
            revisions,
            on_reload,
            reporter,
        }));
        lock(&reloader).report(None);
        for (place, (followed, missing)) in followed.into_iter().enumerate() {
            let path = followed.path();
            let reloader = reloader.clone();
            thread::Builder::new()
                .name("hotmap-live".to_owned())
                .spawn(move || match followed {
                    Followed::Path(watcher) => follow(*watcher, place, missing, &reloader),
                    #[cfg(feature = "endpoint")]
                    Followed::Endpoint(endpoint) => follow_endpoint(&endpoint, place, &reloader),
                })
                .map_err(|source| StartError::Thread { path, source })?;
        }
        Ok(live)
    }
}

/// What a thread follows.
enum Followed {
    Path(Box<Watcher>),
    #[cfg(feature = "endpoint")]
    Endpoint(Arc<Endpoint>),
}

impl Followed {
    fn new(source: Source<'_>, watch: WatchConfig) -> Result<Self, StartError> {
        Ok(match source {
            Source::Path(path) => Self::Path(Box::new(Watcher::new(path, watch)?)),
            #[cfg(feature = "endpoint")]
            Source::Endpoint(endpoint) => Self::Endpoint(endpoint.clone()),
        })
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Path(watcher) => watcher.path().to_owned(),
            #[cfg(feature = "endpoint")]
            Self::Endpoint(endpoint) => endpoint.name.clone().into(),
        }
    }

    fn stop(&self) -> Box<dyn Fn() + Send + Sync> {
        match self {
            Self::Path(watcher) => {
                let stopper = watcher.stopper();
                Box::new(move || stopper.stop())
            }
            #[cfg(feature = "endpoint")]
            Self::Endpoint(endpoint) => {
                let endpoint = endpoint.clone();
                Box::new(move || endpoint.stop())
            }
        }
    }

    fn handle(&self) -> Option<Handle> {
        match self {
            Self::Path(watcher) => Some(watcher.handle()),
            #[cfg(feature = "endpoint")]
            Self::Endpoint(_) => None,
        }
    }
}

/// The first value; waits for what may be waited for.
fn first<T: DeserializeOwned>(
    loader: &Loader<T>,
    followed: &[(Followed, Missing)],
    watch: WatchConfig,
    deadline: Instant,
) -> Result<(T, Vec<Option<Revision>>), StartError> {
    let is_waited_for = |path: &Path| {
        followed
            .iter()
            .any(|(followed, missing)| followed.path() == path && matches!(missing, Missing::Wait(_)))
    };
    loop {
        let loaded = loader.load();
        let error = match loaded.value {
            Ok(value) => return Ok((value, loaded.revisions)),
            Err(error) => error,
        };
        let goes_on = match &error {
            LoadError::Missing { path } => is_waited_for(path) && wait_for(path, watch, deadline)?,
            LoadError::Unreachable { address, .. } if is_waited_for(Path::new(address)) => {
                let left = deadline.saturating_duration_since(Instant::now());
                thread::sleep(RETRY_MIN.min(left));
                !left.is_zero()
            }
            _ => false,
        };
        if !goes_on {
            return Err(StartError::Load(error));
        }
    }
}

/// Between two attempts to read what could not be read: doubled each time, up to the second one.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// False if it did not appear in time.
fn wait_for(path: &Path, watch: WatchConfig, deadline: Instant) -> Result<bool, StartError> {
    let mut watcher = Watcher::new(path, watch)?;
    let stopper = watcher.stopper();
    let (appeared, appears) = std::sync::mpsc::channel();
    let failed = |source| StartError::Thread {
        path: path.to_owned(),
        source,
    };
    thread::Builder::new()
        .name("hotmap-live".to_owned())
        .spawn(move || appeared.send(watcher.next().is_ok()))
        .map_err(failed)?;
    let patience = deadline.saturating_duration_since(Instant::now());
    let has_appeared = appears.recv_timeout(patience).unwrap_or(false);
    stopper.stop();
    Ok(has_appeared)
}

impl<T> Live<T> {
    /// The configuration of now. Wait-free: it takes some nanoseconds, whoever writes.
    pub fn load(&self) -> Guard<T> {
        Guard(self.shared.value.load())
    }

    /// The configuration of now, to be kept.
    pub fn load_full(&self) -> Arc<T> {
        self.shared.value.load_full()
    }

    /// How often it was replaced since the start.
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// Why the last change is not live; `None` if it is.
    pub fn error(&self) -> Option<Arc<LoadError>> {
        lock(&self.shared.error).clone()
    }

    /// How well each file and directory is heard, in the order of the layers.
    pub fn health(&self) -> Vec<Health> {
        self.watching.handles.iter().map(Handle::health).collect()
    }

    /// Changes from now on.
    pub fn changes(&self) -> Changes<T> {
        Changes::new(self.shared.clone())
    }

    /// Changes of one field from now on: of whatever `field` gives of the configuration.
    pub fn subscribe<U: PartialEq + ?Sized>(&self, field: fn(&T) -> &U) -> Subscription<T, U> {
        Subscription::new(self.changes(), field)
    }

    /// Waits for the next change after this call. In a loop use [`changes`](Self::changes), which misses none in between.
    pub async fn changed(&self) -> Arc<T> {
        match self.changes().changed().await {
            Ok(value) => value,
            Err(_) => unreachable!("`self` keeps it open"),
        }
    }
}

/// Follows one path until its watcher is stopped.
fn follow<T: DeserializeOwned + Send + Sync + 'static>(
    mut watcher: Watcher,
    place: usize,
    missing: Missing,
    reloader: &Arc<Mutex<Reloader<T>>>,
) {
    let renaming = reloader.clone();
    // The node's agent knows what is loaded by this name.
    watcher.on_renamed(move |revision| lock(&renaming).rename(place, revision));
    // What goes away, and what comes back as it was, is no change of content to be told of.
    let (looking, handle) = (reloader.clone(), watcher.handle());
    watcher.on_health(move |health| {
        let is_missing = |deafness: &Deafness| matches!(deafness, Deafness::Missing { .. });
        let mut reloader = lock(&looking);
        if !health.deafness.iter().any(is_missing) {
            reloader.is_back(place, handle.current());
        } else if missing == Missing::Ignore && reloader.revisions[place].is_some() {
            reloader.reload();
        }
    });
    while let Ok(change) = watcher.next() {
        // The state at the start was loaded before it was watched, and may be loaded already.
        let has_read = {
            let mut reloader = lock(reloader);
            reloader.told[place] = Some(change.revision.clone());
            reloader.has_read(place, &change.revision)
        };
        if !has_read && !reload(reloader) {
            return;
        }
    }
}

/// Loads, again and again while something cannot be read: nobody will tell of a change then. False when it is over.
fn reload<T: DeserializeOwned>(reloader: &Mutex<Reloader<T>>) -> bool {
    let mut pause = RETRY_MIN;
    loop {
        let mut reloader = lock(reloader);
        // What panics is the callback. It has said so on standard error, and the next change comes all the same.
        let _ = catch_unwind(AssertUnwindSafe(|| reloader.reload()));
        let is_temporary = |error: &Arc<LoadError>| error.is_temporary();
        if !lock(&reloader.shared.error).as_ref().is_some_and(is_temporary) {
            return true;
        }
        let mut changes = Changes::new(reloader.shared.clone());
        drop(reloader);
        match changes.wait_until(Instant::now() + pause) {
            Ok(None) => pause = (pause * 2).min(RETRY_MAX),
            // Another thread has read it.
            Ok(Some(_)) => return true,
            Err(Closed) => return false,
        }
    }
}

/// Follows a local endpoint until it is stopped.
#[cfg(feature = "endpoint")]
fn follow_endpoint<T: DeserializeOwned>(endpoint: &Endpoint, place: usize, reloader: &Mutex<Reloader<T>>) {
    let mut pause = RETRY_MIN;
    loop {
        let why = endpoint.events(|revision| {
            pause = RETRY_MIN;
            let revision = Revision::new(revision);
            let known = lock(reloader);
            if known.has_read(place, &revision) {
                known.shared.is_reachable();
                // Again: it may have begun after what was said before, or not have seen this revision then.
                let error = lock(&known.shared.error).clone();
                known.acknowledge(error.as_deref());
            } else {
                drop(known);
                reload(reloader);
            }
        });
        if endpoint.pause(pause) {
            return;
        }
        lock(reloader).is_unreachable(&endpoint.name, why);
        pause = (pause * 2).min(RETRY_MAX);
    }
}

struct Reloader<T> {
    loader: Loader<T>,
    shared: Arc<Shared<T>>,
    /// What was read last, of each source.
    revisions: Vec<Option<Revision>>,
    /// What its watcher has told last.
    told: Vec<Option<Revision>>,
    on_reload: Option<OnReload<T>>,
    reporter: Option<Arc<Reporter>>,
}

impl<T: DeserializeOwned> Reloader<T> {
    /// Another revision with the same content has taken the place of what was told.
    fn rename(&mut self, place: usize, revision: &Revision) {
        self.told[place] = Some(revision.clone());
        if self.revisions[place].is_some() {
            self.revisions[place] = Some(revision.clone());
            let error = lock(&self.shared.error).clone();
            self.report(error.as_deref());
        }
        self.is_back(place, Some(revision.clone()));
    }

    /// Something is there, `current`. If it is what was told last nobody will tell of it again.
    fn is_back(&mut self, place: usize, current: Option<Revision>) {
        let was_missed = matches!(
            lock(&self.shared.error).as_deref(),
            Some(LoadError::Missing { .. })
        );
        let is_wanted = was_missed || self.revisions[place].is_none();
        if is_wanted && current.is_some() && current == self.told[place] {
            self.reload();
        }
    }

    fn has_read(&self, place: usize, revision: &Revision) -> bool {
        self.revisions[place].as_ref() == Some(revision)
    }

    /// Changes may be missed from now on. It is told once, and forgotten when the endpoint is there again.
    #[cfg(feature = "endpoint")]
    fn is_unreachable(&mut self, address: &str, message: String) {
        let mut known = lock(&self.shared.error);
        if known.is_some() {
            return;
        }
        let address = address.to_owned();
        let error = Arc::new(LoadError::Unreachable { address, message });
        *known = Some(error.clone());
        drop(known);
        if let Some(tell) = &mut self.on_reload {
            let _ = catch_unwind(AssertUnwindSafe(|| tell(Reload::Refused(&error))));
        }
    }

    fn reload(&mut self) {
        let loaded = self.loader.load();
        for (known, read) in self.revisions.iter_mut().zip(loaded.revisions) {
            *known = read;
        }
        let error = match loaded.value {
            Ok(value) => {
                let value = Arc::new(value);
                self.shared.publish(value.clone());
                if let Some(tell) = &mut self.on_reload {
                    tell(Reload::Loaded(&value));
                }
                None
            }
            Err(error) => {
                let error = Arc::new(error);
                let known = lock(&self.shared.error).replace(error.clone());
                // What cannot be read is tried again and again, and told once.
                let is_known =
                    |known: &LoadError| known.is_temporary() && known.to_string() == error.to_string();
                if known.as_deref().is_some_and(is_known) {
                    return;
                }
                if let Some(tell) = &mut self.on_reload {
                    tell(Reload::Refused(&error));
                }
                Some(error)
            }
        };
        self.report(error.as_deref());
    }

    fn report(&self, error: Option<&LoadError>) {
        if let Some(reporter) = &self.reporter {
            let revisions = self.revisions.iter().flatten();
            reporter.report(revisions, error.map(LoadError::without_values).as_deref());
        }
        #[cfg(feature = "endpoint")]
        self.acknowledge(error);
    }

    /// Says at each endpoint what holds of what it has served.
    #[cfg(feature = "endpoint")]
    fn acknowledge(&self, error: Option<&LoadError>) {
        for ((source, _), revision) in self.loader.sources().zip(&self.revisions) {
            if let (Source::Endpoint(endpoint), Some(revision)) = (source, revision) {
                let refused = error.map(LoadError::without_values);
                endpoint.acknowledge(revision.as_str(), refused.as_deref());
            }
        }
    }
}

impl<T> Shared<T> {
    fn publish(&self, value: Arc<T>) {
        self.value.store(value);
        *lock(&self.error) = None;
        self.version.fetch_add(1, Ordering::Release);
        self.event.notify(usize::MAX);
    }

    #[cfg(feature = "endpoint")]
    fn is_reachable(&self) {
        let mut error = lock(&self.error);
        if matches!(error.as_deref(), Some(LoadError::Unreachable { .. })) {
            *error = None;
        }
    }

    fn close(&self) {
        self.is_closed.store(1, Ordering::Release);
        self.event.notify(usize::MAX);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stops.iter().for_each(|stop| stop());
        if let Some(reporter) = &self.reporter {
            reporter.stop();
        }
        (self.close)();
    }
}

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            watching: self.watching.clone(),
        }
    }
}

impl<T> fmt::Debug for Live<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the value: it may be secret.
        f.debug_struct("Live")
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Nothing that panics runs while it is held, but a callback of the user's; what it guards is whole then, too.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
