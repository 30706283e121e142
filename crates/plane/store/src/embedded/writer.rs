//! The one thread that writes.

use std::{
    collections::{BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    batch::decide,
    file::{PersistError, StoreFile},
    history::Change,
    memory::{CLOSED, Pending, Shared},
    queue::{Door, Job, Queue, Reply},
};
use crate::{Clock, Committed, Expect, Health, Key, Op, Revision, StoreError, Write, limits};

/// Pause before a full disk is tried again. Each try may cost opening the file anew.
const FULL_RETRY_MIN: Duration = Duration::from_secs(1);

/// A try that took long earns a pause this many times as long, so that a full disk costs a tenth of a core at most.
const FULL_RETRY_FACTOR: u32 = 10;

pub(super) struct Writer {
    file: StoreFile,
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    clock: Arc<dyn Clock>,
    mode: Mode,
    /// Taken from the queue, not yet decided.
    backlog: VecDeque<Job>,
    /// When which key is to go, in milliseconds since the epoch.
    expiries: BTreeSet<(u64, Key)>,
}

enum Mode {
    Writable,
    /// The disk is full.
    Full {
        since: SystemTime,
        pause: Duration,
        /// A batch of which it is not known whether it is in the file, as the file could not be opened since.
        unsettled: Option<Batch>,
    },
    /// Until restart.
    ReadOnly {
        reason: String,
    },
}

/// Changes decided together, to become durable together.
#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    /// Old changes that leave the history.
    surplus: usize,
}

/// How a failed batch turned out.
enum Settled {
    /// It is in the file, durably.
    Happened,
    /// It is not in the file.
    DidNot,
    /// The disk is too full even to look.
    Unknown(Batch),
}

type Answers = Vec<(Reply, Result<Committed, StoreError>)>;

impl Writer {
    pub(super) fn new(
        file: StoreFile,
        shared: Arc<Shared>,
        queue: Arc<Queue>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let expiries = {
            let memory = shared.memory.read();
            let expiring = memory
                .objects
                .iter()
                .filter_map(|(key, record)| Some((record.expires?, key.clone())));
            expiring.collect()
        };
        Self {
            file,
            shared,
            queue,
            clock,
            mode: Mode::Writable,
            backlog: VecDeque::new(),
            expiries,
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        // A panic ends one batch, whose callers learn that its outcome is unknown. Whatever it left behind is not
        // written over.
        while catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            self.become_read_only("the writer panicked".into());
        }
        self.file.close();
    }

    fn serve(&mut self) {
        loop {
            let patience = self.patience();
            let door = self
                .queue
                .take(&mut self.backlog, limits::BATCH_WRITES_MAX, patience);
            if self.backlog.is_empty() && door == Door::Closed {
                return;
            }
            self.step();
        }
    }

    /// Time until there is something to do besides writes; `None`: never.
    fn patience(&self) -> Option<Duration> {
        let due = UNIX_EPOCH + Duration::from_millis(self.expiries.first()?.0);
        let until_due = due.duration_since(self.clock.now()).unwrap_or_default();
        match &self.mode {
            Mode::Writable => Some(until_due),
            Mode::Full { .. } => Some(until_due.max(self.full_pause_left())),
            Mode::ReadOnly { .. } => None,
        }
    }

    fn full_pause_left(&self) -> Duration {
        match &self.mode {
            Mode::Full { since, pause, .. } => {
                // A clock set back must not keep the store read-only: then the pause is over.
                let waited = self.clock.now().duration_since(*since).unwrap_or(*pause);
                pause.saturating_sub(waited)
            }
            _ => Duration::ZERO,
        }
    }

    /// One batch.
    fn step(&mut self) {
        if self.backlog.is_empty() && !self.is_expiry_due() {
            return; // woken for a deadline that is not there yet
        }
        if let Err(error) = self.ready() {
            return self.refuse_backlog(&error);
        }
        let (batch, answers) = self.decide_batch();
        if batch.changes.is_empty() {
            return answer(answers);
        }
        match self.persist(&batch) {
            Ok(()) => self.succeed(batch, answers),
            Err(error) if self.file.was_full() => self.fail_full(batch, answers, &error),
            Err(error) => {
                let reason = format!("a disk commit failed: {error}");
                self.become_read_only(reason.clone());
                fail(answers, &StoreError::UnknownOutcome { reason });
            }
        }
    }

    fn is_expiry_due(&self) -> bool {
        self.expiries
            .first()
            .is_some_and(|(at, _)| *at <= millis(self.clock.now()))
    }

    /// Whether a batch can be tried now.
    fn ready(&mut self) -> Result<(), StoreError> {
        if !self.full_pause_left().is_zero() {
            return Err(StoreError::NoSpace);
        }
        self.reopen_after_full()?;
        match &self.mode {
            Mode::ReadOnly { reason } => Err(StoreError::Unavailable {
                reason: reason.clone(),
            }),
            Mode::Writable | Mode::Full { .. } => Ok(()),
        }
    }

    fn decide_batch(&mut self) -> (Batch, Answers) {
        let now = millis(self.clock.now());
        let memory = self.shared.memory.read();
        let mut pending = Pending::new(&memory);
        let mut bytes = 0;
        let mut answers = Vec::with_capacity(self.backlog.len());
        for write in expired(&self.expiries, &pending, now) {
            if bytes >= limits::BATCH_BYTES_MAX {
                break;
            }
            bytes += cost(&write, &pending);
            // Nothing came before it in this batch, so the key is as it was found.
            let _ = decide(write, &mut pending, now);
        }
        while bytes < limits::BATCH_BYTES_MAX
            && let Some(Job { write, reply }) = self.backlog.pop_front()
        {
            bytes += cost(&write, &pending);
            answers.push((reply, decide(write, &mut pending, now)));
        }
        let (changes, surplus) = pending.finish(now);
        (Batch { changes, surplus }, answers)
    }

    fn persist(&mut self, batch: &Batch) -> Result<(), PersistError> {
        let oldest = self.shared.memory.read().history.compacted().0 + 1;
        let trimmed = oldest..oldest + batch.surplus as u64;
        self.file.persist(&batch.changes, trimmed, batch.newest())
    }

    fn succeed(&mut self, batch: Batch, answers: Answers) {
        if !matches!(self.mode, Mode::Writable) {
            tracing::info!("the store has space again and takes writes");
            self.mode = Mode::Writable;
            self.shared.set_health(Health::Ok);
        }
        self.publish(batch);
        answer(answers);
    }

    fn publish(&mut self, batch: Batch) {
        for change in &batch.changes {
            if let Some(expires) = change.before.as_ref().and_then(|before| before.expires) {
                self.expiries.remove(&(expires, change.key.clone()));
            }
            if let Some(expires) = change.after.as_ref().and_then(|after| after.expires) {
                self.expiries.insert((expires, change.key.clone()));
            }
        }
        self.shared.publish(batch.changes, batch.surplus);
    }

    fn fail_full(&mut self, batch: Batch, answers: Answers, error: &PersistError) {
        if matches!(self.mode, Mode::Writable) {
            tracing::warn!(%error, "no space left for the store: it is read-only until there is some");
        }
        self.shared.set_health(Health::ReadOnly {
            reason: StoreError::NoSpace.to_string(),
        });
        match self.settle(batch) {
            Ok(Settled::Happened) => answer(answers),
            Ok(Settled::DidNot) => {
                answer(
                    answers
                        .into_iter()
                        .map(|(job, _)| (job, Err(StoreError::NoSpace)))
                        .collect(),
                );
            }
            Ok(Settled::Unknown(_)) => fail(
                answers,
                &StoreError::UnknownOutcome {
                    reason: "the disk is full".into(),
                },
            ),
            Err(error) => {
                let reason = format!("a disk commit failed: {error}");
                self.become_read_only(reason.clone());
                fail(answers, &StoreError::UnknownOutcome { reason });
            }
        }
    }

    /// Opens the file if a full disk has kept it from being open.
    fn reopen_after_full(&mut self) -> Result<(), StoreError> {
        let Mode::Full { unsettled, .. } = &mut self.mode else {
            return Ok(());
        };
        let Some(batch) = unsettled.take() else {
            return Ok(());
        };
        match self.settle(batch) {
            Ok(Settled::Unknown(_)) => Err(StoreError::NoSpace),
            Ok(Settled::Happened | Settled::DidNot) => {
                // The file is open, so this is the try: the next pause begins if it fails.
                if let Mode::Full { pause, .. } = &mut self.mode {
                    *pause = Duration::ZERO;
                }
                Ok(())
            }
            Err(error) => {
                let reason = format!("the store file cannot be opened again: {error}");
                self.become_read_only(reason.clone());
                Err(StoreError::Unavailable { reason })
            }
        }
    }

    /// Finds out from the file whether a batch that hit a full disk has happened, and starts the pause before the
    /// next try.
    fn settle(&mut self, batch: Batch) -> Result<Settled, PersistError> {
        let began = self.clock.now();
        let settled = self.look_for(batch);
        let since = self.clock.now();
        let took = since.duration_since(began).unwrap_or_default();
        let pause = FULL_RETRY_MIN.max(took * FULL_RETRY_FACTOR);
        let (settled, unsettled) = match settled? {
            Settled::Unknown(batch) => (Settled::Unknown(Batch::default()), Some(batch)),
            settled => (settled, None),
        };
        self.mode = Mode::Full {
            since,
            pause,
            unsettled,
        };
        Ok(settled)
    }

    fn look_for(&mut self, batch: Batch) -> Result<Settled, PersistError> {
        let visible = self.shared.revision();
        match self.file.reopen() {
            Ok(found) if found == visible => Ok(Settled::DidNot),
            Ok(found) if found == batch.newest() => {
                // In the file as the system shows it. One more commit makes sure that it is on the disk too.
                match self.file.persist(&[], 0..0, found) {
                    Ok(()) => {
                        self.publish(batch);
                        Ok(Settled::Happened)
                    }
                    Err(_) if self.file.was_full() => Ok(Settled::Unknown(batch)),
                    Err(error) => Err(error),
                }
            }
            Ok(found) => Err(PersistError::new(format!(
                "the file is at revision {found}, memory at {visible}"
            ))),
            Err(_) if self.file.was_full() => Ok(Settled::Unknown(batch)),
            Err(error) => Err(error),
        }
    }

    fn become_read_only(&mut self, reason: String) {
        tracing::error!(%reason, "the store is read-only until it is restarted");
        self.file.close();
        self.shared.set_health(Health::ReadOnly {
            reason: reason.clone(),
        });
        self.mode = Mode::ReadOnly { reason };
    }

    fn refuse_backlog(&mut self, error: &StoreError) {
        self.backlog
            .drain(..)
            .for_each(|job| job.reply.answer(Err(error.clone())));
    }
}

impl Batch {
    fn newest(&self) -> Revision {
        self.changes
            .last()
            .map_or(Revision::ZERO, |change| change.revision)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Also when the thread ends in a way nobody planned, nobody may wait for it in vain.
        self.queue.close();
        while self.queue.take(&mut self.backlog, usize::MAX, None) == Door::Open || !self.backlog.is_empty() {
            self.refuse_backlog(&StoreError::Unavailable {
                reason: CLOSED.into(),
            });
        }
        self.shared.close();
    }
}

/// Deletes for the keys whose time is over, the longest over first.
fn expired(expiries: &BTreeSet<(u64, Key)>, pending: &Pending<'_>, now: u64) -> Vec<Write> {
    let due = expiries
        .iter()
        .take_while(|(at, _)| *at <= now)
        .take(limits::BATCH_EXPIRIES_MAX);
    due.filter_map(|(_, key)| {
        let seen = pending.get(key)?.revision;
        Some(Write {
            key: key.clone(),
            expect: Expect::At(seen),
            op: Op::Delete,
            memo: None,
        })
    })
    .collect()
}

/// Bytes a write adds to the disk commit: its value, and the one before it, which goes into the history.
fn cost(write: &Write, pending: &Pending<'_>) -> usize {
    write.size() + pending.get(&write.key).map_or(0, |before| before.value.len())
}

fn answer(answers: Answers) {
    answers
        .into_iter()
        .for_each(|(reply, outcome)| reply.answer(outcome));
}

/// Also a write that was refused gets `error`: it may have been refused because of a write of the same batch.
fn fail(answers: Answers, error: &StoreError) {
    answers
        .into_iter()
        .for_each(|(reply, _)| reply.answer(Err(error.clone())));
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
