//! The way from callers to the writer thread: bounded, first come, first served.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::memory::CLOSED;
use crate::{Committed, StoreError, Write, limits};

/// What one permit of the queue stands for.
const PERMIT_BYTES: usize = 1024;

/// A write on its way.
pub(super) struct Job {
    pub(super) write: Write,
    pub(super) reply: Reply,
}

/// Whoever waits for a write.
pub(super) struct Reply {
    answer: oneshot::Sender<Result<Committed, StoreError>>,
    /// The write's room in the queue, given back with the answer.
    _room: OwnedSemaphorePermit,
}

impl Reply {
    pub(super) fn answer(self, outcome: Result<Committed, StoreError>) {
        // A caller that has gone away does not care.
        let _ = self.answer.send(outcome);
    }
}

/// Whether the queue still takes writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    Closed,
}

pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    room: Arc<Semaphore>,
}

struct Waiting {
    jobs: VecDeque<Job>,
    door: Door,
    woken: bool,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                jobs: VecDeque::new(),
                door: Door::Open,
                woken: false,
            }),
            ready: Condvar::new(),
            room: Arc::new(Semaphore::new(limits::QUEUE_BYTES_MAX / PERMIT_BYTES)),
        }
    }

    /// Hands a write to the writer and waits for its answer.
    pub(super) async fn submit(&self, write: Write) -> Result<Committed, StoreError> {
        let closed = || StoreError::Unavailable {
            reason: CLOSED.into(),
        };
        let permits = u32::try_from(write.size().div_ceil(PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .acquire_many_owned(permits)
            .await
            .map_err(|_| closed())?;
        let (answer, outcome) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            if waiting.door == Door::Closed {
                return Err(closed());
            }
            waiting.jobs.push_back(Job {
                write,
                reply: Reply { answer, _room: room },
            });
        }
        self.ready.notify_one();
        outcome.await.unwrap_or_else(|_| {
            Err(StoreError::UnknownOutcome {
                reason: "the writer stopped".into(),
            })
        })
    }

    /// Moves waiting writes to `jobs` until that holds `max`. Waits for the first one, at most `patience` long, unless
    /// `jobs` holds some already. [`Door::Closed`]: nothing will come any more.
    pub(super) fn take(&self, jobs: &mut VecDeque<Job>, max: usize, patience: Option<Duration>) -> Door {
        let mut waiting = self.waiting.lock();
        while jobs.is_empty() && waiting.jobs.is_empty() && waiting.door == Door::Open && !waiting.woken {
            match patience {
                None => self.ready.wait(&mut waiting),
                Some(patience) => {
                    if self.ready.wait_for(&mut waiting, patience).timed_out() {
                        break;
                    }
                }
            }
        }
        waiting.woken = false;
        let room = max.saturating_sub(jobs.len()).min(waiting.jobs.len());
        jobs.extend(waiting.jobs.drain(..room));
        if waiting.jobs.is_empty() {
            waiting.door
        } else {
            Door::Open
        }
    }

    /// Ends a wait of the writer, who looks at the clock then.
    pub(super) fn wake(&self) {
        self.waiting.lock().woken = true;
        self.ready.notify_one();
    }

    /// Refuses what has not been accepted yet; the rest is still handed to the writer.
    pub(super) fn close(&self) {
        self.waiting.lock().door = Door::Closed;
        self.room.close();
        self.ready.notify_one();
    }
}
