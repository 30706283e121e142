//! The volumes of this node: what each shall hold, and the two threads that make it so.
//!
//! ```text
//!   object changed ─┐                       ┌─ thread ─ look up · project · AtomicWriter ─ one rename
//!   pod changed ────┼─▶ queue, keyed, ──────┤
//!   retry is due ───┘   latest wins         └─ thread ─ …
//! ```
//!
//! All four config kinds live on one tmpfs that belongs to this instance: pods do not outlive a reboot, so their volumes need
//! not either. A failed write leaves what was there, says why, and is tried again.

mod attempt;
mod host_path;
mod placement;
mod queue;
mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use hotmap_runtime::Runtime;
use hotmap_volume::{AtomicWriter, Directory, Outcome, Ownership};
use parking_lot::{Condvar, Mutex};
use tracing::{debug, error, info, warn};

use attempt::Projected;
pub(crate) use placement::{Placement, PlacementError};
use queue::{Queue, Turn};

use crate::{
    configuration_events::{ConfigurationEvents, Shown, difference},
    fields::PodFacts,
    live_subpath::{self, LiveSubPaths, PodMounts},
    metrics::{FailureReason, Metrics, WriteOutcome},
    nudge::Nudge,
    objects::{Heard, ObjectCache},
    pod::{Pod, Volume},
    references::{self, ObjectRef},
    report::Reports,
    tokens::{self, TokenCache},
};

/// More threads do not pay: the journal and the tmpfs lock serialise what they would do.
const WRITER_THREADS: usize = 2;
/// First pause after a failed write; doubles to [`RETRY_MAX`] (`goroutinemap/exponentialbackoff`, Kubernetes 1.36).
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(122);
/// How long the first answer about an object may take before its absence is a failure (kubelet: 1 s).
pub(crate) const SYNC_PATIENCE: Duration = Duration::from_secs(1);
/// A replaced revision stays for readers that walk a path into it right now.
const REPLACED_STAYS: Duration = Duration::from_millis(100);

/// Names one volume of one pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VolumeKey {
    pub(crate) pod_uid: String,
    pub(crate) volume: String,
}

/// Told when a volume of a pod stands differently after an attempt; runs on a writer thread, so it only wakes somebody.
pub(crate) type OnAttempt = Arc<dyn Fn(&str) + Send + Sync>;

/// What one volume shall hold.
#[derive(Debug, Clone)]
pub(crate) struct DesiredVolume {
    pub(crate) pod: Arc<Pod>,
    pub(crate) facts: PodFacts,
    pub(crate) volume: Volume,
    /// Who owns it on the host: the pod's root, and its fsGroup.
    pub(crate) owner: Ownership,
    pub(crate) fs_group: Option<u32>,
    /// Who owns projected tokens instead: the one user of all containers, as an id of the host.
    pub(crate) token_owner: Option<u32>,
}

/// How one volume stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VolumeState {
    /// It was projected at least once: containers may start.
    pub(crate) is_mounted: bool,
    /// Why the newest attempt failed; the content before it stays.
    pub(crate) failure: Option<String>,
    /// Counts failed attempts, so that each is told once.
    pub(crate) failures: u64,
    /// Keys that something foreign hides at the top of the volume; they are under `..data` only.
    pub(crate) shadowed: Vec<String>,
    /// Why a live subPath mount of it shows older content, if one does.
    pub(crate) live: Option<String>,
}

/// Keeps the projected volumes of this node true.
pub(crate) struct VolumeManager {
    shared: Arc<Shared>,
}

struct Shared {
    root: Directory,
    root_path: PathBuf,
    sources: OnceLock<Lookups>,
    on_attempt: OnAttempt,
    state: Mutex<State>,
    metrics: Metrics,
    live: LiveSubPaths,
    /// Something was queued, or we stop.
    work: Condvar,
    /// A volume is no longer being written.
    idle: Condvar,
}

/// Where the content of volumes is looked up.
struct Lookups {
    objects: Arc<ObjectCache>,
    tokens: Arc<TokenCache>,
    reports: Reports,
    /// Where changes are told of, if anybody asked for that.
    events: Option<ConfigurationEvents>,
}

#[derive(Default)]
struct State {
    volumes: BTreeMap<VolumeKey, Entry>,
    queue: Queue,
    /// Volumes whose files are compared at the next look.
    to_verify: BTreeSet<VolumeKey>,
    is_stopping: bool,
}

struct Entry {
    desired: Arc<DesiredVolume>,
    writer: Option<Arc<AtomicWriter>>,
    state: VolumeState,
    /// Failed attempts since the last good one.
    failed_in_a_row: u32,
    since: Instant,
    /// When the newest object in the visible content came to this node.
    newest: Option<Instant>,
    /// What the visible content was made of; `None` until there is any.
    shown: Option<Shown>,
}

impl VolumeManager {
    /// Starts the writer threads over `root`, the instance's tmpfs.
    pub(crate) fn start(root_path: PathBuf, on_attempt: OnAttempt, metrics: Metrics) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            root: Directory::open(&root_path)?,
            root_path,
            sources: OnceLock::new(),
            on_attempt,
            metrics,
            live: LiveSubPaths::default(),
            state: Mutex::default(),
            work: Condvar::new(),
            idle: Condvar::new(),
        });
        for index in 0..WRITER_THREADS {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name(format!("volumes-{index}"))
                .spawn(move || shared.write_for_ever())?;
        }
        Ok(Self { shared })
    }

    /// Where objects and tokens are looked up; given once, before the first volume.
    /// How they stand is noted in `reports`, and what changed in them in `events`.
    pub(crate) fn look_up_in(
        &self,
        objects: Arc<ObjectCache>,
        tokens: Arc<TokenCache>,
        reports: Reports,
        events: Option<ConfigurationEvents>,
    ) {
        let lookups = Lookups {
            objects,
            tokens,
            reports,
            events,
        };
        assert!(
            self.shared.sources.set(lookups).is_ok(),
            "the agent gives the sources once"
        );
    }

    /// Makes `desired` what the pod's volumes shall hold, and looks at every one of them.
    pub(crate) fn publish(&self, pod_uid: &str, desired: Vec<DesiredVolume>) {
        let mut state = self.shared.state.lock();
        for one in desired {
            let key = VolumeKey {
                pod_uid: pod_uid.to_owned(),
                volume: one.volume.name.clone(),
            };
            let desired = Arc::new(one);
            state
                .volumes
                .entry(key.clone())
                .and_modify(|entry| entry.desired = Arc::clone(&desired))
                .or_insert_with(|| Entry {
                    desired,
                    writer: None,
                    state: VolumeState::default(),
                    failed_in_a_row: 0,
                    since: Instant::now(),
                    newest: None,
                    shown: None,
                });
            state.queue.push(key);
        }
        self.shared.metrics.set_volumes(state.volumes.len());
        self.shared.work.notify_all();
    }

    /// Looks at every volume of these pods that projects the object.
    pub(crate) fn object_changed(&self, reference: &ObjectRef, pods: &[String]) {
        let mut state = self.shared.state.lock();
        for pod_uid in pods {
            state.look_at(pod_uid, |desired| desired.refers_to(reference));
        }
        self.shared.work.notify_all();
    }

    /// Looks at every volume of the pod that projects a token.
    pub(crate) fn token_changed(&self, pod_uid: &str) {
        let mut state = self.shared.state.lock();
        state.look_at(pod_uid, |desired| {
            !tokens::of_volume(&desired.pod, &desired.volume).is_empty()
        });
        self.shared.work.notify_all();
    }

    /// Looks at every volume of the pod, at what is on disk too: somebody may have changed it.
    pub(crate) fn verify(&self, pod_uid: &str) {
        let mut state = self.shared.state.lock();
        let keys: Vec<VolumeKey> = state.of_pod(pod_uid).map(|(key, _)| key.clone()).collect();
        state.to_verify.extend(keys);
        state.look_at(pod_uid, |_| true);
        self.shared.work.notify_all();
    }

    /// How the pod's volumes stand, by name.
    pub(crate) fn states(&self, pod_uid: &str) -> BTreeMap<String, VolumeState> {
        let mut behind = self.shared.live.behind(pod_uid);
        let state = self.shared.state.lock();
        let stands = |(key, entry): (&VolumeKey, &Entry)| {
            let live = behind.remove(&key.volume);
            let stands = VolumeState {
                live,
                ..entry.state.clone()
            };
            (key.volume.clone(), stands)
        };
        state.of_pod(pod_uid).map(stands).collect()
    }

    /// The live subPath mounts of a pod, and what swaps them for as long as it is polled; `nudge` is rung when one of them
    /// stands differently.
    pub(crate) fn live_mounts(
        &self,
        runtime: Runtime,
        pod_uid: &str,
        nudge: &Arc<Nudge>,
    ) -> (Arc<PodMounts>, impl Future<Output = ()> + use<>) {
        let mounts = self.shared.live.of_pod(pod_uid, nudge);
        let metrics = self.shared.metrics.clone();
        let swaps = live_subpath::follow(runtime, pod_uid.to_owned(), Arc::clone(&mounts), metrics);
        (mounts, swaps)
    }

    /// Looks at these volumes of the pod for live mounts that are new.
    pub(crate) fn look_at_live(&self, pod_uid: &str, volumes: &BTreeSet<String>) {
        let mut state = self.shared.state.lock();
        state.look_at(pod_uid, |desired| volumes.contains(&desired.volume.name));
        self.shared.work.notify_all();
    }

    /// The directory of a volume on the host.
    pub(crate) fn path(&self, pod_uid: &str, volume: &str) -> PathBuf {
        self.shared.root_path.join(pod_uid).join(volume)
    }

    /// Forgets the pod's volumes; returns once no thread writes one of them any more. Blocks.
    pub(crate) fn forget(&self, pod_uid: &str) {
        self.shared.live.forget(pod_uid);
        let mut state = self.shared.state.lock();
        state.volumes.retain(|key, _| key.pod_uid != pod_uid);
        state.to_verify.retain(|key| key.pod_uid != pod_uid);
        state.queue.forget(|key| key.pod_uid == pod_uid);
        self.shared.metrics.set_volumes(state.volumes.len());
        while state.queue.is_busy_with(|key| key.pod_uid == pod_uid) {
            self.shared.idle.wait(&mut state);
        }
    }
}

impl Drop for VolumeManager {
    fn drop(&mut self) {
        self.shared.state.lock().is_stopping = true;
        self.shared.work.notify_all();
    }
}

impl State {
    fn of_pod<'a>(&'a self, pod_uid: &'a str) -> impl Iterator<Item = (&'a VolumeKey, &'a Entry)> {
        let first = VolumeKey {
            pod_uid: pod_uid.to_owned(),
            volume: String::new(),
        };
        self.volumes
            .range(first..)
            .take_while(move |(key, _)| key.pod_uid == pod_uid)
    }

    fn look_at(&mut self, pod_uid: &str, concerns: impl Fn(&DesiredVolume) -> bool) {
        let concerned: Vec<VolumeKey> = self
            .of_pod(pod_uid)
            .filter(|(_, entry)| concerns(&entry.desired))
            .map(|(key, _)| key.clone())
            .collect();
        concerned.into_iter().for_each(|key| self.queue.push(key));
    }
}

impl DesiredVolume {
    fn refers_to(&self, reference: &ObjectRef) -> bool {
        references::of_volume(&self.pod.metadata.namespace, &self.volume).contains(reference)
    }
}

impl Shared {
    fn write_for_ever(&self) {
        while let Some(key) = self.next() {
            // A volume that breaks us must not take the thread, and with it all volumes, along.
            if std::panic::catch_unwind(AssertUnwindSafe(|| self.write_one(&key))).is_err() {
                error!(pod_uid = %key.pod_uid, volume = %key.volume, "writing a volume broke, it is tried again");
                let due = Instant::now() + RETRY_MAX;
                self.state.lock().queue.push_at(key.clone(), due);
            }
            let mut state = self.state.lock();
            state.queue.done(&key);
            if !state.queue.is_empty() {
                self.work.notify_one();
            }
            self.idle.notify_all();
        }
    }

    /// The next volume to look at; `None` once we stop.
    fn next(&self) -> Option<VolumeKey> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            match state.queue.pop(Instant::now()) {
                Turn::Now(key) => return Some(key),
                Turn::At(due) => drop(self.work.wait_until(&mut state, due)),
                Turn::Never => self.work.wait(&mut state),
            }
        }
    }

    fn write_one(&self, key: &VolumeKey) {
        let Some((desired, writer, verifies, newest)) = ({
            let mut state = self.state.lock();
            let verifies = state.to_verify.remove(key);
            state.volumes.get(key).map(|entry| {
                (
                    Arc::clone(&entry.desired),
                    entry.writer.clone(),
                    verifies,
                    entry.newest,
                )
            })
        }) else {
            return;
        };
        let begun = Instant::now();
        let span = self.span(key, &desired, newest);
        let entered = span.enter();
        let attempt = self.attempt(key, &desired, writer, verifies);
        let has_changed = match &attempt {
            Ok(projected) => projected.outcome == Outcome::Swapped,
            Err(failure) => failure.is_published,
        };
        let is_seen = self.show_live(key, has_changed);
        drop(entered);
        span.record("has_changed", has_changed);
        drop(span);
        let mut state = self.state.lock();
        if !is_seen {
            state.queue.push_at(key.clone(), Instant::now() + RETRY_MIN);
        }
        let Some(entry) = state.volumes.get_mut(key) else {
            return;
        };
        let (pod_uid, volume) = (&key.pod_uid, &key.volume);
        let before = entry.state.clone();
        match attempt {
            Ok(Projected {
                writer,
                outcome,
                shadowed,
                used,
                shown,
            }) => {
                entry.writer = Some(writer);
                entry.failed_in_a_row = 0;
                entry.state = VolumeState {
                    is_mounted: true,
                    failure: None,
                    failures: entry.state.failures,
                    shadowed,
                    live: None,
                };
                if entry.state.shadowed != before.shadowed {
                    let names = &entry.state.shadowed;
                    warn!(%pod_uid, %volume, ?names, "other keys than before are hidden by foreign files");
                }
                self.metrics.written(match outcome {
                    Outcome::Swapped => WriteOutcome::Swapped,
                    Outcome::Unchanged => WriteOutcome::Unchanged,
                });
                let newest = used.iter().map(|held| held.heard()).max_by_key(Heard::at);
                let former = std::mem::replace(&mut entry.newest, newest.map(|heard| heard.at()));
                let changed = entry.shown.as_ref().map(|before| difference(before, &shown));
                entry.shown = Some(shown);
                if outcome == Outcome::Swapped {
                    if let (Some(changed), Some(events)) = (changed, self.events()) {
                        events.changed(key, &desired.pod, changed);
                    }
                    // The first content of a volume is no change.
                    if let (Some(newest), Some(former)) = (newest, former)
                        && newest.at() > former
                    {
                        let (heard, committed) = newest.ages();
                        self.metrics.visible(heard, committed);
                    }
                    info!(%pod_uid, %volume, elapsed = ?begun.elapsed(), "payload published");
                    state.queue.push_at(key.clone(), Instant::now() + REPLACED_STAYS);
                }
            }
            Err(failure) if failure.is_unheard && entry.since.elapsed() < SYNC_PATIENCE => {
                let due = entry.since + SYNC_PATIENCE;
                state.queue.push_at(key.clone(), due);
                return;
            }
            Err(failure) => {
                self.metrics.written(WriteOutcome::Failed(failure.reason));
                entry.state.failures += 1;
                entry.failed_in_a_row = entry.failed_in_a_row.saturating_add(1);
                entry.state.failure = Some(failure.text.clone());
                if failure.reason == FailureReason::Write {
                    // The directory may be another one by now: it is opened anew.
                    entry.writer = None;
                }
                if let Some(Lookups { reports, .. }) = self.sources.get() {
                    reports.note(|ledger, _| ledger.failed(pod_uid, volume, &failure.text));
                }
                debug!(%pod_uid, %volume, error = %failure.text, "volume not updated, the last content stands");
                if failure.is_retried {
                    let pause = pause_after(entry.failed_in_a_row);
                    state.queue.push_at(key.clone(), Instant::now() + pause);
                }
            }
        }
        let is_news = state.volumes.get(key).is_some_and(|entry| entry.state != before);
        drop(state);
        if is_news {
            (self.on_attempt)(pod_uid);
        }
    }

    fn events(&self) -> Option<&ConfigurationEvents> {
        self.sources.get()?.events.as_ref()
    }

    /// Hands what sub-paths of the volume name now to their live mounts; false if it must be done again.
    fn show_live(&self, key: &VolumeKey, has_changed: bool) -> bool {
        let path = self.root_path.join(&key.pod_uid).join(&key.volume);
        self.live
            .volume_seen(&key.pod_uid, &key.volume, &path, has_changed)
    }
}

/// How long to wait after so many failed attempts in a row.
fn pause_after(failed_in_a_row: u32) -> Duration {
    let doubled = 1 << failed_in_a_row.saturating_sub(1).min(8);
    RETRY_MIN.saturating_mul(doubled).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit() {
        for (failed, millis) in [
            (1, 500),
            (2, 1_000),
            (3, 2_000),
            (8, 64_000),
            (9, 122_000),
            (u32::MAX, 122_000),
        ] {
            assert_eq!(pause_after(failed), Duration::from_millis(millis), "{failed}");
        }
    }
}
