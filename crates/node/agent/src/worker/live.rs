//! Keeps the subPath mounts of the pod's running containers true to their volumes, where the pod asks for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use tokio::task::JoinSet;

use super::Worker;
use crate::{
    events::Subject,
    live_subpath::{self, ANNOTATION, LiveMount, PodMounts, Standing, Wish},
    pod::Pod,
    status::LiveSubPaths,
};

/// What the worker knows of live mounts.
#[derive(Default)]
pub(super) struct Live {
    /// There once the pod has asked.
    mounts: Option<Arc<PodMounts>>,
    /// The task that swaps them; it ends with the worker.
    swapping: JoinSet<()>,
    /// How each stands, as events have told.
    told: BTreeMap<LiveMount, Standing>,
    /// A value of the annotation that an event has told to be none.
    told_unclear: Option<String>,
}

impl Worker {
    /// Says which mounts shall follow, and tells what has become of them.
    pub(super) fn follow_sub_paths(&mut self, pod: &Arc<Pod>) {
        let wish = Wish::of(pod);
        self.tell_unclear(pod, &wish);
        if wish != Wish::Live && self.live.mounts.is_none() {
            return;
        }
        let (mut wanted, mut standings) = (BTreeSet::new(), BTreeMap::new());
        let running = pod
            .all_containers()
            .filter(|_| wish == Wish::Live)
            .filter_map(|container| {
                let record = self.records.get(&container.name)?;
                Some((container, record.attempt.filter(|_| record.is_running())?))
            });
        for (container, attempt) in running {
            for (mount, obstacle) in live_subpath::of_container(pod, container, attempt) {
                match obstacle {
                    None => drop(wanted.insert(mount)),
                    Some(why) => drop(standings.insert(mount, Standing::Unavailable(why))),
                }
            }
        }
        let shared = &self.shared;
        let (uid, nudge) = (self.uid.as_str(), &self.nudge);
        let swapping = &mut self.live.swapping;
        let mounts = self.live.mounts.get_or_insert_with(|| {
            let (mounts, swaps) = shared.volumes.live_mounts(shared.runtime.clone(), uid, nudge);
            swapping.spawn(swaps);
            mounts
        });
        let unseen = mounts.set(&wanted);
        if !unseen.is_empty() {
            shared.volumes.look_at_live(uid, &unseen);
        }
        standings.extend(mounts.standings());
        self.tell_standings(pod, standings);
    }

    fn tell_unclear(&mut self, pod: &Arc<Pod>, wish: &Wish) {
        let Wish::Unclear(value) = wish else {
            self.live.told_unclear = None;
            return;
        };
        if self.live.told_unclear.as_ref() != Some(value) {
            self.live.told_unclear = Some(value.clone());
            let message =
                format!("annotation {ANNOTATION} is neither \"true\" nor \"false\" but {value:?}: it is off");
            self.shared
                .recorder
                .warning(Subject::pod(pod), "InvalidAnnotation", message);
        }
    }

    fn tell_standings(&mut self, pod: &Arc<Pod>, standings: BTreeMap<LiveMount, Standing>) {
        for (mount, standing) in &standings {
            if self.live.told.get(mount) == Some(standing) {
                continue;
            }
            let (target, volume) = (mount.target.display(), &mount.volume);
            let (reason, message) = match standing {
                Standing::New | Standing::Follows => continue,
                Standing::Behind(why) => (
                    "LiveSubPathBehind",
                    format!("{target} still shows the last content of volume {volume:?}: {why}"),
                ),
                Standing::Unavailable(why) => (
                    "LiveSubPathUnavailable",
                    format!("{target} does not follow volume {volume:?}: {why}"),
                ),
            };
            self.shared
                .recorder
                .warning(Subject::container(pod, &mount.container), reason, message);
        }
        if self.live.told != standings {
            self.note_standings(&standings);
            self.live.told = standings;
        }
    }

    /// For the node's report: one row for each container and volume.
    fn note_standings(&self, standings: &BTreeMap<LiveMount, Standing>) {
        let mut behind: BTreeMap<(&str, &str), Option<&str>> = BTreeMap::new();
        for (mount, standing) in standings {
            let why = match standing {
                Standing::New | Standing::Follows => None,
                Standing::Behind(why) | Standing::Unavailable(why) => Some(why.as_str()),
            };
            let row = behind.entry((&mount.container, &mount.volume)).or_default();
            *row = row.or(why);
        }
        for ((container, volume), why) in behind {
            self.shared.reports.note(|ledger, now| match why {
                Some(why) => ledger.sub_path_behind(&self.uid, container, volume, why, now),
                None => ledger.sub_path_follows(&self.uid, container, volume),
            });
        }
    }

    /// What the pod's status says of them.
    pub(super) fn live_sub_paths(&self, pod: &Pod) -> Option<LiveSubPaths> {
        if Wish::of(pod) != Wish::Live {
            return self.live.mounts.is_some().then_some(LiveSubPaths::NotAsked);
        }
        if self.live.told.is_empty() {
            return None;
        }
        let reasons = self.live.told.iter().filter_map(|(mount, standing)| {
            let why = match standing {
                Standing::New | Standing::Follows => return None,
                Standing::Behind(why) | Standing::Unavailable(why) => why,
            };
            Some(format!(
                "{} of container {}: {why}",
                mount.target.display(),
                mount.container
            ))
        });
        let reasons: Vec<String> = reasons.collect();
        let is_unavailable = |standing: &Standing| matches!(standing, Standing::Unavailable(_));
        Some(match reasons.is_empty() {
            true => LiveSubPaths::Follow,
            false if self.live.told.values().any(is_unavailable) => {
                LiveSubPaths::Unavailable(reasons.join("; "))
            }
            false => LiveSubPaths::Behind(reasons.join("; ")),
        })
    }
}
