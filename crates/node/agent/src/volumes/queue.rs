//! Which volume is next. A volume is queued once however often it is asked for, and one thread at a time works on it.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use super::VolumeKey;

/// Work that waits, by key.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<VolumeKey>,
    /// What is in `ready`.
    queued: BTreeSet<VolumeKey>,
    /// Being worked on; true if it was asked for again meanwhile.
    busy: BTreeMap<VolumeKey, bool>,
    later: BTreeMap<VolumeKey, Instant>,
}

/// What a thread that asks for work gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Now(VolumeKey),
    /// Nothing before then.
    At(Instant),
    Never,
}

impl Queue {
    /// Asks for a look at a volume, as soon as may be.
    pub(super) fn push(&mut self, key: VolumeKey) {
        self.later.remove(&key);
        if let Some(again) = self.busy.get_mut(&key) {
            *again = true;
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// Asks for a look later, unless an earlier one is asked for.
    pub(super) fn push_at(&mut self, key: VolumeKey, due: Instant) {
        if !self.queued.contains(&key) {
            self.later.entry(key).or_insert(due);
        }
    }

    /// Takes the next volume; [`Queue::done`] gives it back.
    pub(super) fn pop(&mut self, now: Instant) -> Turn {
        let due: Vec<VolumeKey> = self
            .later
            .iter()
            .filter(|(_, due)| **due <= now)
            .map(|(key, _)| key.clone())
            .collect();
        due.into_iter().for_each(|key| self.push(key));
        match self.ready.pop_front() {
            Some(key) => {
                self.queued.remove(&key);
                self.busy.insert(key.clone(), false);
                Turn::Now(key)
            }
            None => self
                .later
                .values()
                .min()
                .map_or(Turn::Never, |due| Turn::At(*due)),
        }
    }

    /// The work on a volume is over; it is queued again if somebody asked meanwhile.
    pub(super) fn done(&mut self, key: &VolumeKey) {
        if self.busy.remove(key) == Some(true) {
            self.push(key.clone());
        }
    }

    /// Drops what waits; what is being worked on is not taken up again.
    pub(super) fn forget(&mut self, concerns: impl Fn(&VolumeKey) -> bool) {
        self.ready.retain(|key| !concerns(key));
        self.queued.retain(|key| !concerns(key));
        self.later.retain(|key, _| !concerns(key));
        self.busy
            .iter_mut()
            .filter(|(key, _)| concerns(key))
            .for_each(|(_, again)| *again = false);
    }

    pub(super) fn is_busy_with(&self, concerns: impl Fn(&VolumeKey) -> bool) -> bool {
        self.busy.keys().any(concerns)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(volume: &str) -> VolumeKey {
        VolumeKey {
            pod_uid: "u".into(),
            volume: volume.into(),
        }
    }

    #[test]
    fn a_volume_is_worked_on_once_at_a_time_and_never_forgotten() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(key("a"));
        queue.push(key("a"));
        queue.push(key("b"));
        assert_eq!(queue.pop(now), Turn::Now(key("a")));
        queue.push(key("a"));
        assert_eq!(queue.pop(now), Turn::Now(key("b")));
        assert_eq!(queue.pop(now), Turn::Never, "a is busy");
        queue.done(&key("a"));
        assert_eq!(queue.pop(now), Turn::Now(key("a")), "it was asked for while busy");
        queue.done(&key("a"));
        assert_eq!(queue.pop(now), Turn::Never);
    }

    #[test]
    fn a_retry_waits_unless_somebody_asks_before() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let due = now + Duration::from_secs(1);
        queue.push_at(key("a"), due);
        assert_eq!(queue.pop(now), Turn::At(due));
        assert_eq!(queue.pop(due), Turn::Now(key("a")));
        queue.push_at(key("b"), due);
        queue.push(key("b"));
        assert_eq!(queue.pop(now), Turn::Now(key("b")));
        queue.done(&key("b"));
        assert_eq!(
            queue.pop(due),
            Turn::Never,
            "the early look replaced the late one"
        );
    }

    #[test]
    fn what_is_forgotten_does_not_come_back() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(key("a"));
        assert_eq!(queue.pop(now), Turn::Now(key("a")));
        queue.push(key("a"));
        queue.push(key("b"));
        queue.forget(|_| true);
        assert!(queue.is_busy_with(|_| true));
        queue.done(&key("a"));
        assert_eq!(queue.pop(now), Turn::Never);
    }
}
