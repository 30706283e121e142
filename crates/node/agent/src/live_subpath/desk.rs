//! What each live mount shall show and how it stands, between the threads that write volumes and the tasks that ask shims.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use hotmap_trace::TraceContext;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    LiveMount,
    open::{self, OpenError},
};
use crate::nudge::Nudge;

/// First pause after a failed swap; doubles to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// How a live mount stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody has looked yet.
    #[default]
    New,
    /// It shows what its volume shows, or will in a moment.
    Follows,
    /// The last good content stays.
    Behind(String),
    /// It will not follow for as long as this start of the container runs, or its content is of this kind.
    Unavailable(String),
}

/// Every live mount of the node, by pod.
#[derive(Default)]
pub(crate) struct LiveSubPaths {
    pods: Mutex<BTreeMap<String, Arc<PodMounts>>>,
}

/// The live mounts of one pod.
pub(crate) struct PodMounts {
    slots: Mutex<BTreeMap<LiveMount, Slot>>,
    /// A slot has something to do.
    work: Notify,
    nudge: Arc<Nudge>,
}

#[derive(Default)]
struct Slot {
    /// Nobody has looked yet what the volume shows, or the last look failed for a reason that may pass.
    is_unseen: bool,
    job: Option<Job>,
    standing: Standing,
    /// Counts what was handed over, so that news can be told from what was tried.
    handed: u64,
}

/// What a mount shall show.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) source: Arc<OwnedFd>,
    /// When its volume was seen to show it.
    pub(super) since: Instant,
    /// The write of its volume, if somebody traces it.
    pub(super) trace: Option<TraceContext>,
    not_before: Option<Instant>,
    failures: u32,
    number: u64,
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tried {
    Shown,
    /// There is no mount any more.
    Ended,
    Unavailable(String),
    Failed(String),
}

/// What a task that asks for work gets.
pub(super) enum Turn {
    Now(LiveMount, Job),
    At(Instant),
    Never,
}

impl LiveSubPaths {
    /// The mounts of a pod, for the task that swaps them.
    pub(crate) fn of_pod(&self, pod_uid: &str, nudge: &Arc<Nudge>) -> Arc<PodMounts> {
        let mut pods = self.pods.lock();
        let mounts = pods.entry(pod_uid.to_owned()).or_insert_with(|| {
            Arc::new(PodMounts {
                slots: Mutex::default(),
                work: Notify::new(),
                nudge: Arc::clone(nudge),
            })
        });
        Arc::clone(mounts)
    }

    pub(crate) fn forget(&self, pod_uid: &str) {
        self.pods.lock().remove(pod_uid);
    }

    /// Hands over what the pod's sub-paths of this volume name, if it changed or nobody has looked yet. Runs on the thread that
    /// has just written it. False if it has to be looked at again.
    pub(crate) fn volume_seen(&self, pod_uid: &str, volume: &str, path: &Path, has_changed: bool) -> bool {
        let mounts = self.pods.lock().get(pod_uid).cloned();
        mounts.is_none_or(|mounts| mounts.volume_seen(volume, path, has_changed))
    }

    /// Why sub-paths of the pod's volumes are behind, by volume: one reason of each.
    pub(crate) fn behind(&self, pod_uid: &str) -> BTreeMap<String, String> {
        let mounts = self.pods.lock().get(pod_uid).cloned();
        let standings = mounts.map(|mounts| mounts.standings()).unwrap_or_default();
        let behind = standings
            .into_iter()
            .filter_map(|(mount, standing)| match standing {
                Standing::Behind(why) | Standing::Unavailable(why) => Some((mount.volume, why)),
                Standing::New | Standing::Follows => None,
            });
        behind.collect()
    }
}

impl PodMounts {
    /// Keeps these and no others; returns the volumes that have to be looked at for those that are new.
    pub(crate) fn set(&self, wanted: &BTreeSet<LiveMount>) -> BTreeSet<String> {
        let mut slots = self.slots.lock();
        slots.retain(|mount, _| wanted.contains(mount));
        let new = wanted.iter().filter(|mount| {
            let slot = Slot {
                is_unseen: true,
                ..Slot::default()
            };
            let is_new = !slots.contains_key(mount);
            slots.entry((*mount).clone()).or_insert(slot);
            is_new
        });
        new.map(|mount| mount.volume.clone()).collect()
    }

    pub(crate) fn standings(&self) -> BTreeMap<LiveMount, Standing> {
        let slots = self.slots.lock();
        let standings = slots
            .iter()
            .map(|(mount, slot)| (mount.clone(), slot.standing.clone()));
        standings.collect()
    }

    fn volume_seen(&self, volume: &str, path: &Path, has_changed: bool) -> bool {
        let concerned: Vec<LiveMount> = {
            let slots = self.slots.lock();
            let concerned = slots
                .iter()
                .filter(|(mount, slot)| mount.volume == volume && (has_changed || slot.is_unseen));
            concerned.map(|(mount, _)| mount.clone()).collect()
        };
        // Outside of the lock: one thread at a time has this volume, so what it opens is never older than what it opened before.
        let mut is_complete = true;
        for mount in concerned {
            let opened = open::open(path, &mount.sub_path);
            is_complete &= !opened.as_ref().is_err_and(OpenError::may_pass);
            self.hand_over(&mount, opened);
        }
        is_complete
    }

    fn hand_over(&self, mount: &LiveMount, opened: Result<OwnedFd, OpenError>) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(mount) else { return };
        slot.is_unseen = opened.as_ref().is_err_and(OpenError::may_pass);
        slot.handed += 1;
        match opened {
            Ok(source) => {
                slot.job = Some(Job {
                    source: Arc::new(source),
                    since: Instant::now(),
                    trace: hotmap_trace::current(),
                    not_before: None,
                    failures: 0,
                    number: slot.handed,
                });
                drop(slots);
                self.work.notify_one();
            }
            Err(error) => {
                slot.job = None;
                let is_news = slot.stand(Standing::Behind(error.to_string()));
                drop(slots);
                if is_news {
                    self.nudge.wake();
                }
            }
        }
    }

    /// The next mount to swap.
    pub(super) fn next(&self, now: Instant) -> Turn {
        let slots = self.slots.lock();
        let mut due = None;
        for (mount, slot) in slots.iter() {
            let Some(job) = &slot.job else { continue };
            match job.not_before.filter(|at| *at > now) {
                None => return Turn::Now(mount.clone(), job.clone()),
                Some(at) => due = Some(due.map_or(at, |earlier: Instant| earlier.min(at))),
            }
        }
        due.map_or(Turn::Never, Turn::At)
    }

    /// Takes note of a try; what was handed over meanwhile stays to be done.
    pub(super) fn tried(&self, mount: &LiveMount, job: &Job, tried: Tried, now: Instant) {
        let mut slots = self.slots.lock();
        let Some(slot) = slots.get_mut(mount) else { return };
        if slot.handed != job.number {
            return;
        }
        slot.job = None;
        let standing = match tried {
            Tried::Shown => Standing::Follows,
            Tried::Ended => return,
            Tried::Unavailable(why) => Standing::Unavailable(why),
            Tried::Failed(why) => {
                let pause = RETRY_MIN.saturating_mul(1 << job.failures.min(7)).min(RETRY_MAX);
                slot.job = Some(Job {
                    not_before: Some(now + pause),
                    failures: job.failures.saturating_add(1),
                    ..job.clone()
                });
                Standing::Behind(why)
            }
        };
        let is_news = slot.stand(standing);
        drop(slots);
        if is_news {
            self.nudge.wake();
        }
    }

    /// Returns when there may be work. Cancel safe.
    pub(super) async fn changed(&self) {
        self.work.notified().await;
    }
}

impl Slot {
    /// True if it stands differently now.
    fn stand(&mut self, standing: Standing) -> bool {
        let is_news = self.standing != standing;
        self.standing = standing;
        is_news
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use futures_util::FutureExt;

    use super::*;

    fn mount(volume: &str) -> LiveMount {
        LiveMount {
            container: "web".to_owned(),
            attempt: 0,
            target: format!("/etc/{volume}").into(),
            volume: volume.to_owned(),
            sub_path: "key".to_owned(),
        }
    }

    struct World {
        directory: tempfile::TempDir,
        live: LiveSubPaths,
        mounts: Arc<PodMounts>,
        nudge: Arc<Nudge>,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().expect("a directory");
            fs::write(directory.path().join("..1"), "x").expect("written");
            symlink("..1", directory.path().join("key")).expect("linked");
            let (live, nudge) = (LiveSubPaths::default(), Arc::<Nudge>::default());
            let mounts = live.of_pod("u", &nudge);
            Self {
                directory,
                live,
                mounts,
                nudge,
            }
        }

        fn seen(&self, has_changed: bool) -> bool {
            self.live
                .volume_seen("u", "a", self.directory.path(), has_changed)
        }

        fn job(&self) -> Option<(LiveMount, Job)> {
            match self.mounts.next(Instant::now()) {
                Turn::Now(mount, job) => Some((mount, job)),
                Turn::At(_) | Turn::Never => None,
            }
        }

        fn is_told(&self) -> bool {
            self.nudge.woken().now_or_never().is_some()
        }
    }

    #[test]
    fn a_new_mount_is_brought_up_to_date_once_and_then_follows_changes() {
        let world = World::new();
        assert!(world.seen(true), "nobody is interested");
        let wanted = BTreeSet::from([mount("a"), mount("b")]);
        let looked_at = world.mounts.set(&wanted);
        assert_eq!(looked_at, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        assert!(world.mounts.set(&wanted).is_empty());
        assert!(world.seen(false));
        let (swapped, job) = world.job().expect("work");
        assert_eq!(swapped, mount("a"));
        world.mounts.tried(&swapped, &job, Tried::Shown, Instant::now());
        assert!(world.is_told());
        assert_eq!(world.mounts.standings()[&mount("a")], Standing::Follows);
        assert!(world.seen(false) && world.job().is_none(), "nothing is new");
        assert!(world.seen(true) && world.job().is_some());
        world.mounts.set(&BTreeSet::new());
        assert!(world.job().is_none());
    }

    #[test]
    fn what_comes_during_a_swap_is_not_lost() {
        let world = World::new();
        world.mounts.set(&BTreeSet::from([mount("a")]));
        world.seen(true);
        let (swapped, first) = world.job().expect("work");
        world.seen(true);
        for tried in [Tried::Shown, Tried::Failed("busy".to_owned()), Tried::Ended] {
            world.mounts.tried(&swapped, &first, tried, Instant::now());
            assert!(world.job().is_some());
        }
        assert!(!world.is_told());
    }

    #[test]
    fn failures_are_told_tried_again_ever_later_and_healed() {
        let world = World::new();
        world.mounts.set(&BTreeSet::from([mount("a")]));
        world.seen(true);
        let mut now = Instant::now();
        for pause in [500, 1_000, 2_000] {
            let Turn::Now(swapped, job) = world.mounts.next(now) else {
                panic!("it is due");
            };
            world
                .mounts
                .tried(&swapped, &job, Tried::Failed("busy".to_owned()), now);
            let Turn::At(due) = world.mounts.next(now) else {
                panic!("it waits");
            };
            assert_eq!(due - now, Duration::from_millis(pause));
            now = due;
        }
        assert!(world.is_told());
        assert_eq!(world.live.behind("u")["a"], "busy");
        let Turn::Now(swapped, job) = world.mounts.next(now) else {
            panic!("it is due");
        };
        world.mounts.tried(&swapped, &job, Tried::Shown, now);
        assert!(world.live.behind("u").is_empty());
        fs::remove_file(world.directory.path().join("key")).expect("removed");
        assert!(world.seen(true), "its return is a change");
        assert!(world.live.behind("u")["a"].contains("any more"));
        assert!(world.job().is_none(), "what is shown stays");
    }

    #[test]
    fn what_cannot_be_is_tried_again_with_the_next_change_only() {
        let world = World::new();
        world.mounts.set(&BTreeSet::from([mount("a")]));
        world.seen(true);
        let (swapped, job) = world.job().expect("work");
        let refused = Tried::Unavailable("it needs Linux 6.5".to_owned());
        world.mounts.tried(&swapped, &job, refused, Instant::now());
        assert!(matches!(world.mounts.next(Instant::now()), Turn::Never));
        world.seen(true);
        assert!(world.job().is_some());
    }
}
