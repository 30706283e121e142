//! What readers see: current values and history, as of the newest durable revision.

use std::{
    collections::{BTreeMap, HashMap},
    iter::Peekable,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::RwLock;
use tokio::sync::Notify;

use super::{
    EmbeddedStats,
    history::{Change, History},
};
use crate::{Entry, Health, Key, Listed, Range, Revision, StoreError, limits};

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) revision: Revision,
    pub(super) created: Revision,
    pub(super) version: u64,
    /// Milliseconds since the epoch.
    pub(super) expires: Option<u64>,
    pub(super) value: Bytes,
}

/// Current values and how they came about.
pub(super) struct Memory {
    pub(super) objects: BTreeMap<Key, Record>,
    pub(super) history: History,
}

impl Memory {
    pub(super) fn revision(&self) -> Revision {
        self.history.newest()
    }

    /// Whether the state at `revision` can be told.
    pub(super) fn reaches(&self, revision: Revision) -> Result<(), StoreError> {
        if revision > self.revision() {
            return Err(StoreError::FutureRevision {
                current: self.revision(),
            });
        }
        if revision < self.history.compacted() {
            return Err(StoreError::Compacted {
                oldest: self.history.compacted(),
            });
        }
        Ok(())
    }
}

/// What the writer publishes and everybody reads.
pub(super) struct Shared {
    pub(super) memory: RwLock<Memory>,
    /// Rings when the revision has advanced, and when the store closes.
    pub(super) changed: Arc<Notify>,
    revision: AtomicU64,
    commits: AtomicU64,
    closed: AtomicBool,
    health: RwLock<Health>,
}

impl Shared {
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            revision: AtomicU64::new(memory.revision().0),
            memory: RwLock::new(memory),
            changed: Arc::new(Notify::new()),
            commits: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            health: RwLock::new(Health::Ok),
        }
    }

    pub(super) fn revision(&self) -> Revision {
        Revision(self.revision.load(Ordering::Acquire))
    }

    pub(super) fn health(&self) -> Health {
        self.health.read().clone()
    }

    pub(super) fn set_health(&self, health: Health) {
        *self.health.write() = health;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn stats(&self) -> EmbeddedStats {
        let memory = self.memory.read();
        EmbeddedStats {
            objects: memory.objects.len(),
            history_events: memory.history.len(),
            history_bytes: memory.history.bytes(),
            commits: self.commits.load(Ordering::Relaxed),
            revision: memory.revision(),
            compacted: memory.history.compacted(),
        }
    }

    /// Makes durable changes visible, all at once, and wakes the watchers. For the writer only.
    pub(super) fn publish(&self, changes: Vec<Change>, surplus: usize) {
        let mut replaced = Vec::with_capacity(changes.len());
        let mut memory = self.memory.write();
        let trimmed = memory.history.trim(surplus);
        for change in changes {
            replaced.push(match &change.after {
                Some(after) => memory.objects.insert(change.key.clone(), after.clone()),
                None => memory.objects.remove(&change.key),
            });
            memory.history.push(change);
        }
        self.revision.store(memory.revision().0, Ordering::Release);
        self.commits.fetch_add(1, Ordering::Relaxed);
        drop(memory);
        self.changed.notify_waiters();
        drop((trimmed, replaced)); // freed without the lock
    }

    /// Ends every watch. For the writer only.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.set_health(Health::ReadOnly {
            reason: CLOSED.into(),
        });
        self.changed.notify_waiters();
    }

    /// Reads a range at one revision without holding the writer up.
    pub(super) async fn range(&self, range: Range) -> Result<Listed, StoreError> {
        // A read of "now" that takes so long that its revision leaves the history begins anew, and at last insists.
        for chunk in [limits::READ_CHUNK_ENTRIES, limits::READ_CHUNK_ENTRIES, usize::MAX] {
            let mut read = RangeRead::begin(&self.memory.read(), &range)?;
            loop {
                let step = read.step(&self.memory.read(), chunk);
                match step {
                    Ok(Step::Done) => return Ok(read.finish()),
                    Ok(Step::More) => tokio::task::yield_now().await,
                    Err(StoreError::Compacted { .. }) if read.is_now => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(StoreError::Unavailable {
            reason: "the history is shorter than one read".into(),
        })
    }
}

pub(super) const CLOSED: &str = "it is closed";

enum Step {
    Done,
    More,
}

/// A read in steps. Between two steps the store moves on; what has changed since the revision of the read is undone
/// from the history.
struct RangeRead<'r> {
    range: &'r Range,
    revision: Revision,
    is_now: bool,
    limit: usize,
    /// Changes up to here are in `undone`.
    seen: Revision,
    /// Keys that have changed since `revision`, as they were then.
    undone: BTreeMap<Key, Option<Record>>,
    cursor: Bound<Key>,
    items: Vec<Entry>,
    remaining: u64,
}

impl<'r> RangeRead<'r> {
    fn begin(memory: &Memory, range: &'r Range) -> Result<Self, StoreError> {
        let asked = range.revision.filter(|revision| !revision.is_zero());
        let revision = asked.unwrap_or(memory.revision());
        memory.reaches(revision)?;
        Ok(Self {
            range,
            revision,
            is_now: asked.is_none(),
            limit: range.limit.unwrap_or(usize::MAX),
            seen: revision,
            undone: BTreeMap::new(),
            cursor: Bound::Included(range.start.as_str().into()),
            items: Vec::new(),
            remaining: 0,
        })
    }

    fn step(&mut self, memory: &Memory, chunk: usize) -> Result<Step, StoreError> {
        if !self.undo(memory, chunk)? {
            return Ok(Step::More);
        }
        let end = self
            .range
            .end
            .as_deref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        if is_empty(borrowed(&self.cursor), end) {
            return Ok(Step::Done);
        }
        let mut live = memory
            .objects
            .range::<str, _>((borrowed(&self.cursor), end))
            .peekable();
        let mut undone = self
            .undone
            .range::<str, _>((borrowed(&self.cursor), end))
            .peekable();
        let mut last = None;
        for _ in 0..chunk {
            let Some((key, record)) = next_merged(&mut live, &mut undone) else {
                return Ok(Step::Done);
            };
            last = Some(key);
            let Some(record) = record else { continue };
            if self.items.len() < self.limit {
                self.items.push(entry(key, record));
            } else {
                self.remaining += 1;
            }
        }
        if let Some(last) = last.cloned() {
            self.cursor = Bound::Excluded(last);
        }
        Ok(Step::More)
    }

    /// Takes note of at most `chunk` changes since the last step. `false`: there are more.
    fn undo(&mut self, memory: &Memory, chunk: usize) -> Result<bool, StoreError> {
        memory.reaches(self.seen)?;
        for change in memory.history.after(self.seen).take(chunk) {
            self.seen = change.revision;
            // The first change after the revision knows what was there; keys already read no longer matter.
            if self.range.contains(&change.key) && !is_before(&change.key, &self.cursor) {
                self.undone
                    .entry(change.key.clone())
                    .or_insert_with(|| change.before.clone());
            }
        }
        Ok(self.seen == memory.revision())
    }

    fn finish(self) -> Listed {
        Listed {
            items: self.items,
            revision: self.revision,
            remaining: self.remaining,
        }
    }
}

/// The next key of either, where what is undone wins; without a record, the key did not exist.
fn next_merged<'m>(
    live: &mut Peekable<impl Iterator<Item = (&'m Key, &'m Record)>>,
    undone: &mut Peekable<impl Iterator<Item = (&'m Key, &'m Option<Record>)>>,
) -> Option<(&'m Key, Option<&'m Record>)> {
    match (live.peek(), undone.peek()) {
        (Some((key, _)), Some((undone_key, _))) if key < undone_key => {}
        (_, Some(_)) => {
            let (key, record) = undone.next()?;
            live.next_if(|(live_key, _)| *live_key == key);
            return Some((key, record.as_ref()));
        }
        _ => {}
    }
    live.next().map(|(key, record)| (key, Some(record)))
}

fn entry(key: &Key, record: &Record) -> Entry {
    Entry {
        key: key.clone(),
        revision: record.revision,
        created: record.created,
        version: record.version,
        value: record.value.clone(),
    }
}

fn borrowed(bound: &Bound<Key>) -> Bound<&str> {
    bound.as_ref().map(Key::as_str)
}

fn is_before(key: &Key, cursor: &Bound<Key>) -> bool {
    match cursor {
        Bound::Included(from) => key < from,
        Bound::Excluded(after) => key <= after,
        Bound::Unbounded => false,
    }
}

/// `BTreeMap::range` panics on bounds that run backwards.
fn is_empty(start: Bound<&str>, end: Bound<&str>) -> bool {
    match (start, end) {
        (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

/// Changes of a batch that are not visible yet, by key, over the visible state.
pub(super) struct Pending<'m> {
    memory: &'m Memory,
    changes: Vec<Change>,
    newest: HashMap<Key, usize>,
}

impl<'m> Pending<'m> {
    pub(super) fn new(memory: &'m Memory) -> Self {
        Self {
            memory,
            changes: Vec::new(),
            newest: HashMap::new(),
        }
    }

    /// What `key` will hold once the batch is through.
    pub(super) fn get(&self, key: &Key) -> Option<&Record> {
        match self.newest.get(key) {
            Some(&index) => self.changes[index].after.as_ref(),
            None => self.memory.objects.get(key),
        }
    }

    /// The revision of the next change.
    pub(super) fn next_revision(&self) -> Revision {
        Revision(self.memory.revision().0 + self.changes.len() as u64).next()
    }

    pub(super) fn push(&mut self, change: Change) {
        self.newest.insert(change.key.clone(), self.changes.len());
        self.changes.push(change);
    }

    /// The changes, and how many old ones leave the history for them.
    pub(super) fn finish(self, now: u64) -> (Vec<Change>, usize) {
        let surplus = self.memory.history.surplus(&self.changes, now);
        (self.changes, surplus)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn empty() -> Shared {
        let history = History::new(Revision(1), VecDeque::new());
        Shared::new(Memory {
            objects: BTreeMap::new(),
            history,
        })
    }

    /// Puts or deletes a key and publishes that.
    fn apply(shared: &Shared, (key, put): (u8, bool)) {
        let (change, before) = {
            let memory = shared.memory.read();
            let key = Key::from(format!("/{key:03}"));
            let before = memory.objects.get(&key).cloned();
            let revision = memory.revision().next();
            let value = Bytes::from(revision.to_string());
            let after = put.then_some(Record {
                revision,
                created: revision,
                version: 1,
                expires: None,
                value,
            });
            (
                Change {
                    key,
                    revision,
                    at: 0,
                    before: before.clone(),
                    after,
                    memo: None,
                },
                before,
            )
        };
        if put || before.is_some() {
            shared.publish(vec![change], 0);
        }
    }

    proptest! {
        #[test]
        fn a_read_in_steps_is_of_one_revision_whatever_happens_in_between(
            first in proptest::collection::vec((0..20u8, any::<bool>()), 0..40),
            later in proptest::collection::vec((0..20u8, any::<bool>()), 0..40),
            chunk in 1..6usize,
            limit in proptest::option::of(0..10usize),
            from in 0..20u8,
            to in 0..20u8,
        ) {
            let shared = empty();
            first.into_iter().for_each(|change| apply(&shared, change));
            let range = Range {
                start: format!("/{from:03}"),
                end: Some(format!("/{to:03}")),
                revision: None,
                limit,
            };
            let expected: Vec<Entry> = {
                let memory = shared.memory.read();
                let inside = memory.objects.iter().filter(|(key, _)| range.contains(key));
                inside.map(|(key, record)| entry(key, record)).collect()
            };
            let mut read = RangeRead::begin(&shared.memory.read(), &range).expect("now can be read");
            let mut later = later.into_iter();
            loop {
                // The lock is released before the changes in between.
                let step = read.step(&shared.memory.read(), chunk).expect("nothing is compacted");
                if let Step::Done = step {
                    break;
                }
                later.by_ref().take(2).for_each(|change| apply(&shared, change));
            }
            let listed = read.finish();
            let kept = limit.unwrap_or(usize::MAX).min(expected.len());
            prop_assert_eq!(&listed.items, &expected[..kept]);
            prop_assert_eq!(listed.remaining, (expected.len() - kept) as u64);
        }
    }
}
