//! The changes that can still be read back and watched, oldest first.
//!
//! Revisions are consecutive, so a revision is found by subtraction.

use std::collections::{VecDeque, vec_deque};

use super::memory::Record;
use crate::{Event, EventKind, Key, Memo, Revision, limits};

/// Memory that a change takes beside key and values.
const CHANGE_OVERHEAD_BYTES: usize = 256;

/// Changes dropped in one commit beyond twice those it adds: a store that was idle for long pays for its old history
/// over many commits instead of delaying one.
const TRIM_EXTRA_EVENTS: usize = 64;

/// One change of one key.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) key: Key,
    pub(super) revision: Revision,
    /// Milliseconds since the epoch.
    pub(super) at: u64,
    pub(super) before: Option<Record>,
    /// `None`: deleted.
    pub(super) after: Option<Record>,
    pub(super) memo: Option<Memo>,
}

impl Change {
    /// What the history alone keeps alive of it. A value belongs to the current objects or to the change that
    /// replaced it, and counts there.
    pub(super) fn bytes(&self) -> usize {
        CHANGE_OVERHEAD_BYTES + self.key.len() + self.before.as_ref().map_or(0, |before| before.value.len())
    }

    pub(super) fn event(&self) -> Event {
        Event {
            key: self.key.clone(),
            revision: self.revision,
            kind: if self.after.is_some() {
                EventKind::Put
            } else {
                EventKind::Delete
            },
            value: self.after.as_ref().map(|after| after.value.clone()),
            previous: self
                .before
                .as_ref()
                .map(|before| (before.revision, before.value.clone())),
            memo: self.memo.clone(),
        }
    }
}

/// The newest changes, without a gap, up to the current revision.
pub(super) struct History {
    changes: VecDeque<Change>,
    /// Changes up to and including this revision are gone.
    compacted: Revision,
    bytes: usize,
}

impl History {
    /// `changes` are consecutive and begin right after `compacted`.
    pub(super) fn new(compacted: Revision, changes: VecDeque<Change>) -> Self {
        let bytes = changes.iter().map(Change::bytes).sum();
        Self {
            changes,
            compacted,
            bytes,
        }
    }

    pub(super) fn compacted(&self) -> Revision {
        self.compacted
    }

    pub(super) fn newest(&self) -> Revision {
        Revision(self.compacted.0 + self.changes.len() as u64)
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The changes after `revision`, which lies between [`Self::compacted`] and [`Self::newest`].
    pub(super) fn after(&self, revision: Revision) -> vec_deque::Iter<'_, Change> {
        let skip = usize::try_from(revision.0.saturating_sub(self.compacted.0)).unwrap_or(usize::MAX);
        self.changes.range(skip.min(self.changes.len())..)
    }

    pub(super) fn push(&mut self, change: Change) {
        debug_assert_eq!(change.revision, self.newest().next(), "revisions are consecutive");
        self.bytes += change.bytes();
        self.changes.push_back(change);
        if let Some(aged) = self.changes.len().checked_sub(limits::MEMO_EVENTS_MAX + 1) {
            self.changes[aged].memo = None;
        }
    }

    /// How many of the oldest changes go when `added` join at time `now`.
    pub(super) fn surplus(&self, added: &[Change], now: u64) -> usize {
        let age_max = u64::try_from(limits::HISTORY_AGE_MAX.as_millis()).unwrap_or(u64::MAX);
        let mut events = self.changes.len() + added.len();
        let mut bytes = self.bytes + added.iter().map(Change::bytes).sum::<usize>();
        let mut surplus = 0;
        for change in self.changes.iter().take(2 * added.len() + TRIM_EXTRA_EVENTS) {
            let unwanted = bytes > limits::HISTORY_BYTES_MAX || change.at.saturating_add(age_max) < now;
            let spared = events <= limits::HISTORY_EVENTS_MIN && bytes <= limits::HISTORY_BYTES_HARD_MAX;
            if !unwanted || spared {
                break;
            }
            surplus += 1;
            events -= 1;
            bytes -= change.bytes();
        }
        surplus
    }

    /// Removes the oldest changes and hands them out, so that they can be freed without the lock.
    pub(super) fn trim(&mut self, surplus: usize) -> Vec<Change> {
        let trimmed: Vec<_> = self.changes.drain(..surplus.min(self.changes.len())).collect();
        self.compacted.0 += trimmed.len() as u64;
        self.bytes -= trimmed.iter().map(Change::bytes).sum::<usize>();
        trimmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;
    const MIB: usize = 1024 * 1024;

    fn change(revision: u64, at: u64, before_bytes: usize) -> Change {
        let before = Record {
            revision: Revision(1),
            created: Revision(1),
            version: 1,
            expires: None,
            // Zeroed pages are not touched, so this costs address space only.
            value: vec![0; before_bytes].into(),
        };
        Change {
            key: "k".into(),
            revision: Revision(revision),
            at,
            before: Some(before),
            after: None,
            memo: None,
        }
    }

    #[test]
    fn history_ends_by_age_or_size_but_spares_the_newest_thousand() {
        for (name, events, bytes_each, age, surplus) in [
            ("young and small stays", 2_000, 0, 0, 0),
            ("old goes, in steps", 2_000, 0, 6 * MINUTE_MS, 66),
            (
                "old but among the newest thousand stays",
                999,
                0,
                6 * MINUTE_MS,
                0,
            ),
            ("one step over the thousand", 1_000, 0, 6 * MINUTE_MS, 1),
            ("over 64 MiB but among the newest thousand stays", 80, MIB, 0, 0),
            ("over 256 MiB goes", 258, MIB, 0, 3),
        ] {
            let changes = (0..events).map(|n| change(n + 2, 0, bytes_each)).collect();
            let history = History::new(Revision(1), changes);
            let added = [change(history.newest().0 + 1, age, 0)];
            assert_eq!(history.surplus(&added, age), surplus, "{name}");
        }
    }

    #[test]
    fn memos_leave_before_their_events() {
        let mut history = History::new(Revision(1), VecDeque::new());
        for n in 0..limits::MEMO_EVENTS_MAX as u64 + 10 {
            history.push(Change {
                memo: Some(std::sync::Arc::new(n)),
                ..change(n + 2, 0, 0)
            });
        }
        let with_memo = history
            .after(Revision(1))
            .filter(|change| change.memo.is_some())
            .count();
        assert_eq!(with_memo, limits::MEMO_EVENTS_MAX);
        assert!(
            history
                .after(Revision(1))
                .take(10)
                .all(|change| change.memo.is_none())
        );
    }

    #[test]
    fn a_revision_is_found_by_subtraction_also_after_a_trim() {
        let mut history = History::new(Revision(1), (2..12).map(|n| change(n, 0, 0)).collect());
        assert_eq!(history.trim(4).len(), 4);
        assert_eq!(
            (history.compacted(), history.newest()),
            (Revision(5), Revision(11))
        );
        let after: Vec<_> = history
            .after(Revision(8))
            .map(|change| change.revision.0)
            .collect();
        assert_eq!(after, [9, 10, 11]);
        assert_eq!(
            history.bytes(),
            history.after(Revision(5)).map(Change::bytes).sum::<usize>()
        );
    }
}
