//! The last changes that have passed the check: what streams tell, and which revisions may be acknowledged.
//!
//! Streams hold a cursor and no queue: one that is too far behind finds that its place is gone.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use hotmap_projection::{Change, KeyChange, Revision};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Changes that are remembered: enough for a client that was away for a moment, or loads slowly.
const CHANGES_MAX: usize = 64;
/// Keys of all of them: a directory of thousands of files that change together is remembered fewer times.
const KEYS_MAX: usize = 16_384;

/// Changes that have passed the check, told by whoever brings them to targets. Clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Changes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    history: Mutex<History>,
    /// The number of the newest change.
    newest: watch::Sender<u64>,
}

/// One change, as it is told.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    /// Counts up from 1.
    pub(crate) number: u64,
    pub(crate) path: Arc<std::path::PathBuf>,
    pub(crate) revision: Revision,
    pub(crate) keys: Arc<[KeyChange]>,
}

#[derive(Debug, Default)]
struct History {
    changes: VecDeque<Passed>,
    keys: usize,
    last_number: u64,
}

/// A place in the sequence of changes. Fails to go on when it is too far behind.
#[derive(Debug)]
pub(crate) struct Cursor {
    shared: Arc<Shared>,
    newest: watch::Receiver<u64>,
    last_number: u64,
}

/// The changes after a cursor are no longer all known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooFarBehind;

impl Default for Changes {
    fn default() -> Self {
        Self(Arc::new(Shared {
            history: Mutex::default(),
            newest: watch::Sender::new(0),
        }))
    }
}

impl Changes {
    /// These have passed the check, or there is none.
    pub(crate) fn passed(&self, changes: &[Change]) {
        let mut history = self.0.history.lock();
        for change in changes {
            // What has failed after the check is brought to the targets again with the next change.
            let mut newest_first = history.changes.iter().rev();
            let newest = newest_first.find(|newest| newest.path == change.path);
            if newest.is_none_or(|newest| newest.revision != change.revision) {
                history.push(change);
            }
        }
        let newest = history.last_number;
        drop(history);
        self.0.newest.send_replace(newest);
    }

    /// The newest change of each path, oldest first, and the place after all of them.
    pub(crate) fn current(&self) -> (Vec<Passed>, Cursor) {
        let history = self.0.history.lock();
        let mut current: Vec<Passed> = Vec::new();
        for change in history.changes.iter().rev() {
            if current.iter().all(|newer| newer.path != change.path) {
                current.push(change.clone());
            }
        }
        current.reverse();
        (current, self.cursor(history.last_number))
    }

    /// The place after the change that brought this revision, if that is still known.
    pub(crate) fn after(&self, revision: &str) -> Option<Cursor> {
        let history = self.0.history.lock();
        let change = history
            .changes
            .iter()
            .rev()
            .find(|change| change.revision.as_str() == revision)?;
        Some(self.cursor(change.number))
    }

    /// The revision of this path that has passed last.
    pub(crate) fn newest_of(&self, path: &Path) -> Option<Revision> {
        let history = self.0.history.lock();
        let mut newest_first = history.changes.iter().rev();
        newest_first
            .find(|change| change.path.as_path() == path)
            .map(|change| change.revision.clone())
    }

    /// Whether this path has shown this revision.
    pub(crate) fn has(&self, path: &Path, revision: &str) -> bool {
        let history = self.0.history.lock();
        let mut changes = history.changes.iter();
        changes.any(|change| change.path.as_path() == path && change.revision.as_str() == revision)
    }

    /// Wakes with each change from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    fn cursor(&self, last_number: u64) -> Cursor {
        Cursor {
            shared: Arc::clone(&self.0),
            newest: self.0.newest.subscribe(),
            last_number,
        }
    }
}

impl Cursor {
    /// Waits for the next change. Cancel safe.
    ///
    /// # Errors
    /// [`TooFarBehind`]: it is no longer known.
    pub(crate) async fn next(&mut self) -> Result<Passed, TooFarBehind> {
        let last_number = self.last_number;
        // `Err` cannot come: this holds the sender.
        let _ = self.newest.wait_for(|newest| *newest > last_number).await;
        let next = self.shared.history.lock().at(last_number + 1).cloned();
        let next = next.ok_or(TooFarBehind)?;
        self.last_number = next.number;
        Ok(next)
    }
}

impl History {
    fn push(&mut self, change: &Change) {
        self.last_number += 1;
        self.keys += change.keys.len();
        self.changes.push_back(Passed {
            number: self.last_number,
            path: Arc::clone(&change.path),
            revision: change.revision.clone(),
            keys: Arc::clone(&change.keys),
        });
        // The newest stays, however many keys it has.
        while self.changes.len() > CHANGES_MAX || (self.keys > KEYS_MAX && self.changes.len() > 1) {
            let oldest = self.changes.pop_front().expect("it has more than one");
            self.keys -= oldest.keys.len();
        }
    }

    fn at(&self, number: u64) -> Option<&Passed> {
        let oldest = self.changes.front()?.number;
        self.changes
            .get(usize::try_from(number.checked_sub(oldest)?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Instant;

    use futures_util::FutureExt;

    use super::*;

    pub(crate) fn change(path: &str, revision: &str, keys: usize) -> Change {
        Change {
            path: Arc::new(PathBuf::from(path)),
            revision: Revision::new(revision),
            keys: (0..keys)
                .map(|key| KeyChange::Modified(key.to_string().into()))
                .collect(),
            is_initial: false,
            seen: Instant::now(),
        }
    }

    fn next(cursor: &mut Cursor) -> Option<Result<String, TooFarBehind>> {
        let next = cursor.next().now_or_never()?;
        Some(next.map(|change| change.revision.to_string()))
    }

    #[test]
    fn a_cursor_sees_each_change_once_and_in_order() {
        let changes = Changes::default();
        let (current, mut cursor) = changes.current();
        assert!(current.is_empty());
        assert_eq!(next(&mut cursor), None);
        changes.passed(&[change("/a", "a1", 1), change("/b", "b1", 1)]);
        changes.passed(&[change("/a", "a2", 1)]);
        changes.passed(&[change("/a", "a2", 1)]);
        for revision in ["a1", "b1", "a2"] {
            assert_eq!(next(&mut cursor), Some(Ok(revision.to_owned())));
        }
        assert_eq!(next(&mut cursor), None);

        let (current, mut later) = changes.current();
        let current: Vec<&str> = current.iter().map(|change| change.revision.as_str()).collect();
        assert_eq!(
            current,
            ["b1", "a2"],
            "one of each path, oldest first: the last id is a place to go on from"
        );
        assert_eq!(next(&mut later), None);
        let mut resumed = changes.after("b1").unwrap();
        assert_eq!(next(&mut resumed), Some(Ok("a2".to_owned())));
        assert!(changes.after("never").is_none());
        assert_eq!(changes.newest_of(Path::new("/a")), Some(Revision::new("a2")));
        assert_eq!(changes.newest_of(Path::new("/c")), None);
        assert!(changes.has(Path::new("/a"), "a1") && !changes.has(Path::new("/b"), "a1"));
    }

    #[test]
    fn one_that_is_too_far_behind_hears_so() {
        let changes = Changes::default();
        let (_, mut cursor) = changes.current();
        for number in 0..=CHANGES_MAX {
            changes.passed(&[change("/a", &number.to_string(), 1)]);
        }
        assert_eq!(next(&mut cursor), Some(Err(TooFarBehind)));
        assert!(changes.after("0").is_none());
        let mut oldest = changes.after("1").unwrap();
        assert_eq!(next(&mut oldest), Some(Ok("2".to_owned())));

        changes.passed(&[change("/a", "many", KEYS_MAX + 1)]);
        let (current, _) = changes.current();
        assert_eq!(
            current[0].revision.as_str(),
            "many",
            "the newest is kept, however large"
        );
        assert_eq!(next(&mut oldest), Some(Err(TooFarBehind)));
    }
}
