//! How many requests are answered at once. Watches and streams do not count.

use hotmap_object::Status;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Upstream answers as many reads at once without fair queuing.
const READS_MAX: usize = 400;
/// Upstream answers 200 writes; ours wait for one disk together, so more of them make one batch.
const WRITES_MAX: usize = 400;
/// Requests that wait for their turn, in each lane; more are refused at once.
const WAITING_MAX: usize = 4_000;

/// One lane for reads, one for writes: neither starves the other.
#[derive(Debug)]
pub(super) struct Lanes {
    reads: Lane,
    writes: Lane,
}

#[derive(Debug)]
struct Lane {
    inside: Semaphore,
    at_all: Semaphore,
}

/// A place in a lane.
pub(super) struct Place<'a> {
    _inside: SemaphorePermit<'a>,
    _at_all: SemaphorePermit<'a>,
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            reads: Lane::new(READS_MAX),
            writes: Lane::new(WRITES_MAX),
        }
    }

    /// Waits for a place.
    ///
    /// # Errors
    ///
    /// 429 if too many wait already.
    pub(super) async fn enter(&self, mutates: bool) -> Result<Place<'_>, Status> {
        let lane = if mutates { &self.writes } else { &self.reads };
        let at_all = lane
            .at_all
            .try_acquire()
            .map_err(|_| Status::too_many_requests("too many requests, please try again later", 1))?;
        let inside = lane
            .inside
            .acquire()
            .await
            .expect("the semaphore is never closed");
        Ok(Place {
            _inside: inside,
            _at_all: at_all,
        })
    }
}

impl Lane {
    fn new(inside_max: usize) -> Self {
        Self {
            inside: Semaphore::new(inside_max),
            at_all: Semaphore::new(inside_max + WAITING_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    // Outside a runtime: inside one, a task that never waits is made to yield.
    #[test]
    fn lanes_are_bounded_and_apart() {
        let lanes = Lanes::new();
        let mut inside = Vec::new();
        for _ in 0..READS_MAX {
            inside.push(
                lanes
                    .enter(false)
                    .now_or_never()
                    .expect("no wait")
                    .expect("a place"),
            );
        }
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(lanes.enter(false))).collect();
        assert!(
            waiting
                .iter_mut()
                .all(|one| one.as_mut().now_or_never().is_none())
        );
        let refused = lanes
            .enter(false)
            .now_or_never()
            .expect("no wait")
            .map(drop)
            .expect_err("full");
        assert_eq!(refused.code, 429);
        assert!(
            lanes
                .enter(true)
                .now_or_never()
                .is_some_and(|place| place.is_ok()),
            "writes go on"
        );
        inside.pop();
        assert!(
            waiting[0]
                .as_mut()
                .now_or_never()
                .is_some_and(|place| place.is_ok())
        );
    }
}
