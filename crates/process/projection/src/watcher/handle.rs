//! What other threads may ask of a watcher.

use std::sync::{Arc, Mutex, PoisonError};

use crate::health::Health;
use crate::revision::Revision;

/// What other threads may ask of a [`Watcher`](crate::Watcher), also while it waits. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct Handle(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    current: Option<Revision>,
    health: Health,
    counts: Counts,
}

/// What a watcher has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times that [`Watcher::next`](crate::Watcher::next) waited and went on; who waits for the descriptor counts for himself.
    pub wake_ups: u64,
    /// Looks at the path.
    pub looks: u64,
    /// Changes told, the initial one included.
    pub changes: u64,
    /// Changes that no event announced although all events should have been heard: found by the safety look.
    pub found_by_looking: u64,
    /// Times that the kernel has dropped events, for which the path was looked at again at once.
    pub overflows: u64,
}

impl Handle {
    /// The revision that was there at the last look. It is newer than that of the last [`Change`](crate::Change) when
    /// a revision was replaced by another with the same content, which is no change.
    pub fn current(&self) -> Option<Revision> {
        self.read(|known| known.current.clone())
    }

    /// How well the path is heard.
    pub fn health(&self) -> Health {
        self.read(|known| known.health.clone())
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        self.read(|known| known.counts)
    }

    /// True if the health is another than before.
    pub(crate) fn set(&self, current: Option<Revision>, health: Health) -> bool {
        self.read(|known| {
            known.current = current;
            let is_other = known.health != health;
            known.health = health;
            is_other
        })
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.read(|known| change(&mut known.counts));
    }

    fn read<T>(&self, read: impl FnOnce(&mut Known) -> T) -> T {
        // Nothing panics while it is held.
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
