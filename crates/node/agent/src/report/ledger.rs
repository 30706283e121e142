//! Who has what: facts in, and from them at any time who is behind and why. No I/O, no clock.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;

use super::Revision;
use crate::references::ObjectRef;

/// Projections of one volume that are still known by name: a program reports the newest one or the one before it.
const PROJECTIONS_MAX: usize = 8;

/// How something uses an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// A volume of the pod.
    Volume(String),
    /// The variables of a container, as they were when it started.
    Environment { container: String },
    /// A part of a volume that a container has had since it started.
    SubPath { container: String, volume: String },
}

/// Revisions something was built from; `None` is an object that was not there.
pub(crate) type Built = BTreeMap<ObjectRef, Option<Arc<Revision>>>;
/// What the volumes of a pod refer to.
pub(crate) type Wants = BTreeMap<String, BTreeSet<ObjectRef>>;

/// What a program says it did with a projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Load {
    Done,
    Failed(String),
}

/// Everything that is known of the deliveries of a node.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(super) objects: BTreeMap<ObjectRef, Heard>,
    /// By uid.
    pub(super) pods: BTreeMap<String, PodEntry>,
}

/// What the API says of an object.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) current: Option<Arc<Revision>>,
    /// When this content was heard of first.
    pub(super) at: Timestamp,
    /// When it was committed, if it is a change of something known and the API told.
    pub(super) committed: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct PodEntry {
    pub(super) name: String,
    /// When this agent knew of it first.
    pub(super) came: Timestamp,
    pub(super) consumers: BTreeMap<Way, Consumer>,
    pub(super) loads: BTreeMap<String, Loaded>,
    projections: BTreeMap<String, VecDeque<(String, Built)>>,
}

#[derive(Debug, Default)]
pub(super) struct Consumer {
    pub(super) refs: BTreeSet<ObjectRef>,
    pub(super) holds: BTreeMap<ObjectRef, Holding>,
    /// Why the newest attempt failed.
    pub(super) failure: Option<String>,
    /// Names at the top of the volume that show something else.
    pub(super) shadowed: Vec<String>,
    lacks_since: BTreeMap<ObjectRef, Timestamp>,
}

#[derive(Debug)]
pub(super) struct Holding {
    pub(super) revision: Option<Arc<Revision>>,
    /// Since when it has this content.
    pub(super) since: Timestamp,
}

/// The newest report of a program about a volume.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// The projection that was taken up last.
    good: Option<String>,
    /// A projection that was refused since, why, and when.
    refused: Option<(String, Timestamp)>,
    /// What `good` was built from, once it is too old to be known by name.
    built: Built,
    known: bool,
}

/// How a consumer stands to one object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Current,
    /// Nobody has said yet what is current.
    Unheard,
    Behind {
        since: Timestamp,
    },
}

impl Ledger {
    /// A pod is here, with these volumes. What is known of volumes it had before stays.
    pub(crate) fn pod(&mut self, uid: &str, name: &str, volumes: Wants, now: Timestamp) {
        let entry = self.pods.entry(uid.to_owned()).or_insert_with(|| PodEntry {
            name: name.to_owned(),
            came: now,
            consumers: BTreeMap::new(),
            loads: BTreeMap::new(),
            projections: BTreeMap::new(),
        });
        entry
            .consumers
            .retain(|way, _| !matches!(way, Way::Volume(volume) if !volumes.contains_key(volume)));
        entry.loads.retain(|volume, _| volumes.contains_key(volume));
        entry.projections.retain(|volume, _| volumes.contains_key(volume));
        for (volume, refs) in volumes {
            let consumer = entry.consumers.entry(Way::Volume(volume)).or_default();
            consumer.refs = refs;
            consumer
                .holds
                .retain(|reference, _| consumer.refs.contains(reference));
            consumer.look_again(&self.objects, now);
        }
    }

    /// Nothing of the pod is served here any more.
    pub(crate) fn gone(&mut self, uid: &str) {
        self.pods.remove(uid);
        self.forget_unused();
    }

    /// The API says what an object is, `None` if it is not there, and perhaps when that was committed.
    pub(crate) fn heard(
        &mut self,
        reference: &ObjectRef,
        current: Option<Arc<Revision>>,
        committed: Option<Timestamp>,
        now: Timestamp,
    ) {
        let (at, committed) = match self.objects.get(reference) {
            Some(held) if is_like(held.current.as_ref(), current.as_ref()) => (held.at, held.committed),
            // Clocks of two machines may differ: a commit in the future is one just now.
            Some(_) => (now, committed.map(|committed| committed.min(now))),
            // The first word about an object is no change: it may have been there for long.
            None => (now, None),
        };
        let heard = Heard {
            current,
            at,
            committed,
        };
        self.objects.insert(reference.clone(), heard);
        for consumer in self.pods.values_mut().flat_map(|pod| pod.consumers.values_mut()) {
            if consumer.refs.contains(reference) {
                consumer.look_again(&self.objects, now);
            }
        }
    }

    /// A volume shows what it was built from, under this name of its projection.
    pub(crate) fn projected(
        &mut self,
        uid: &str,
        volume: &str,
        built: Built,
        (projection, shadowed): (&str, Vec<String>),
        now: Timestamp,
    ) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let Some(consumer) = pod.consumers.get_mut(&Way::Volume(volume.to_owned())) else {
            return;
        };
        consumer.failure = None;
        consumer.shadowed = shadowed;
        consumer.take(&built, &self.objects, now);
        let known = pod.projections.entry(volume.to_owned()).or_default();
        known.retain(|(name, _)| name != projection);
        known.push_back((projection.to_owned(), built));
        while known.len() > PROJECTIONS_MAX {
            known.pop_front();
        }
        pod.look_up_load(volume);
    }

    /// A volume could not be brought up to date; what it held stays.
    pub(crate) fn failed(&mut self, uid: &str, volume: &str, failure: &str) {
        let pod = self.pods.get_mut(uid);
        let consumer = pod.and_then(|pod| pod.consumers.get_mut(&Way::Volume(volume.to_owned())));
        if let Some(consumer) = consumer {
            consumer.failure = Some(failure.to_owned());
        }
    }

    /// A container has started: its variables are these, and its sub-paths show what their volumes hold.
    pub(crate) fn started(
        &mut self,
        uid: &str,
        container: &str,
        built: BTreeMap<Way, Built>,
        now: Timestamp,
    ) {
        self.stopped(uid, container);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        for (way, built) in built {
            let consumer = pod.consumers.entry(way).or_default();
            consumer.refs = built.keys().cloned().collect();
            consumer.take(&built, &self.objects, now);
        }
    }

    /// A container runs, and nobody knows with what: it was started before this agent was.
    pub(crate) fn found(&mut self, uid: &str, container: &str, refs: BTreeSet<ObjectRef>, now: Timestamp) {
        let Some(pod) = self.pods.get_mut(uid).filter(|_| !refs.is_empty()) else {
            return;
        };
        let way = Way::Environment {
            container: container.to_owned(),
        };
        let consumer = pod.consumers.entry(way).or_default();
        consumer.refs = refs;
        consumer.failure = Some("it was started before the agent, which does not know with what".to_owned());
        consumer.look_again(&self.objects, now);
    }

    /// A container cannot start for want of its variables.
    pub(crate) fn not_started(
        &mut self,
        uid: &str,
        container: &str,
        refs: BTreeSet<ObjectRef>,
        failure: &str,
        now: Timestamp,
    ) {
        self.stopped(uid, container);
        let Some(pod) = self.pods.get_mut(uid).filter(|_| !refs.is_empty()) else {
            return;
        };
        let way = Way::Environment {
            container: container.to_owned(),
        };
        let consumer = pod.consumers.entry(way).or_default();
        consumer.refs = refs;
        consumer.failure = Some(failure.to_owned());
        consumer.look_again(&self.objects, now);
    }

    /// A sub-path that shall follow its volume shows older content.
    pub(crate) fn sub_path_behind(
        &mut self,
        uid: &str,
        container: &str,
        volume: &str,
        why: &str,
        now: Timestamp,
    ) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let of_volume = pod.consumers.get(&Way::Volume(volume.to_owned()));
        let refs = of_volume.map_or_else(BTreeSet::new, |consumer| consumer.refs.clone());
        let consumer = pod.consumers.entry(Way::sub_path(container, volume)).or_default();
        consumer.refs = refs;
        consumer.failure = Some(why.to_owned());
        consumer.look_again(&self.objects, now);
    }

    /// A sub-path that shall follow its volume does: it is where the volume is.
    pub(crate) fn sub_path_follows(&mut self, uid: &str, container: &str, volume: &str) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.consumers.remove(&Way::sub_path(container, volume));
        }
    }

    /// A container has ended: it uses nothing.
    pub(crate) fn stopped(&mut self, uid: &str, container: &str) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.consumers.retain(|way, _| way.container() != Some(container));
        }
    }

    /// What a volume holds; nothing if it was never projected.
    pub(crate) fn held_by(&self, uid: &str, volume: &str) -> Built {
        let pod = self.pods.get(uid);
        let consumer = pod.and_then(|pod| pod.consumers.get(&Way::Volume(volume.to_owned())));
        let holds = consumer.into_iter().flat_map(|consumer| &consumer.holds);
        holds
            .map(|(reference, holding)| (reference.clone(), holding.revision.clone()))
            .collect()
    }

    /// A program of the pod says what it did with a projection: of this volume, or of the one that has shown it.
    ///
    /// # Errors
    /// [`LoadError`]: nothing was noted.
    pub(crate) fn loaded(
        &mut self,
        uid: &str,
        volume: Option<&str>,
        projection: &str,
        load: Load,
        now: Timestamp,
    ) -> Result<(), LoadError> {
        let pod = self.pods.get_mut(uid).ok_or(LoadError::NoVolume)?;
        let volume = match volume {
            Some(volume) => volume.to_owned(),
            None => pod.shown_by(projection).ok_or(LoadError::NeverShown)?,
        };
        if !pod.consumers.contains_key(&Way::Volume(volume.clone())) {
            return Err(LoadError::NoVolume);
        }
        let loaded = pod.loads.entry(volume.clone()).or_default();
        match load {
            Load::Done => {
                *loaded = Loaded {
                    good: Some(projection.to_owned()),
                    ..Loaded::default()
                };
                pod.look_up_load(&volume);
            }
            Load::Failed(why) => loaded.refused = Some((why, now)),
        }
        Ok(())
    }

    fn forget_unused(&mut self) {
        let consumers = self.pods.values().flat_map(|pod| pod.consumers.values());
        let used: BTreeSet<&ObjectRef> = consumers.flat_map(|consumer| &consumer.refs).collect();
        self.objects.retain(|reference, _| used.contains(reference));
    }
}

/// Why what a program says is not noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("the pod has no such volume of ConfigMaps or Secrets")]
    NoVolume,
    #[error("no volume of the pod has shown this revision; name the volume")]
    NeverShown,
}

impl Way {
    fn sub_path(container: &str, volume: &str) -> Self {
        let (container, volume) = (container.to_owned(), volume.to_owned());
        Self::SubPath { container, volume }
    }

    fn container(&self) -> Option<&str> {
        match self {
            Self::Volume(_) => None,
            Self::Environment { container } | Self::SubPath { container, .. } => Some(container),
        }
    }
}

impl PodEntry {
    /// The volume that has shown a projection.
    fn shown_by(&self, projection: &str) -> Option<String> {
        let mut shown = self.projections.iter();
        let found = shown.find(|(_, known)| known.iter().any(|(name, _)| name == projection));
        found.map(|(volume, _)| volume.clone())
    }

    fn look_up_load(&mut self, volume: &str) {
        let Some(loaded) = self.loads.get_mut(volume) else {
            return;
        };
        let known = self.projections.get(volume);
        let found = known.and_then(|known| known.iter().find(|(name, _)| Some(name) == loaded.good.as_ref()));
        if let Some((_, built)) = found {
            loaded.built = built.clone();
            loaded.known = true;
        }
    }
}

impl Consumer {
    /// It was built anew.
    fn take(&mut self, built: &Built, objects: &BTreeMap<ObjectRef, Heard>, now: Timestamp) {
        let before = std::mem::take(&mut self.holds);
        for (reference, revision) in built {
            let held = before.get(reference);
            let is_same = held.is_some_and(|held| is_like(held.revision.as_ref(), revision.as_ref()));
            let since = held.filter(|_| is_same).map_or(now, |held| held.since);
            let revision = revision.clone();
            self.holds.insert(reference.clone(), Holding { revision, since });
        }
        self.look_again(objects, now);
    }

    fn look_again(&mut self, objects: &BTreeMap<ObjectRef, Heard>, now: Timestamp) {
        for reference in &self.refs {
            let heard = objects.get(reference);
            let has_it = heard.is_none_or(|heard| {
                let held = self.holds.get(reference);
                held.is_some_and(|held| is_like(held.revision.as_ref(), heard.current.as_ref()))
            });
            if has_it {
                self.lacks_since.remove(reference);
            } else {
                self.lacks_since.entry(reference.clone()).or_insert(now);
            }
        }
        self.lacks_since
            .retain(|reference, _| self.refs.contains(reference));
    }

    pub(super) fn stands(&self, reference: &ObjectRef, heard: Option<&Heard>) -> Standing {
        match (self.lacks_since.get(reference), heard) {
            (Some(since), _) => Standing::Behind { since: *since },
            (None, None) => Standing::Unheard,
            (None, Some(_)) => Standing::Current,
        }
    }
}

impl Loaded {
    /// The revision of an object that was taken up last; `None` if nobody knows.
    pub(super) fn revision(&self, reference: &ObjectRef) -> Option<&Arc<Revision>> {
        self.built.get(reference)?.as_ref()
    }

    pub(super) fn has(&self, reference: &ObjectRef, current: Option<&Arc<Revision>>) -> bool {
        let built = self.built.get(reference);
        self.known && self.refused.is_none() && built.is_some_and(|built| is_like(built.as_ref(), current))
    }

    /// Why it has not the current content.
    pub(super) fn reason(&self) -> (String, Option<Timestamp>) {
        match &self.refused {
            Some((why, at)) => (format!("the program refused it: {why}"), Some(*at)),
            None if self.good.is_some() && !self.known => (
                "the program has loaded a projection that the agent does not know".to_owned(),
                None,
            ),
            None => ("the program has not said that it loaded it".to_owned(), None),
        }
    }
}

fn is_like(one: Option<&Arc<Revision>>, other: Option<&Arc<Revision>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_like(other),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
