//! What every controller does: take a key, look at everything, act once, say when to look again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use hotmap_client::ClientError;
use hotmap_clock::ClockJumps;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{error, warn};

use crate::{
    controllers::panic_text,
    informer::NotShown,
    queue::{Outcome, Queue},
    view::Key,
};

/// Objects of one controller that are reconciled at the same time; upstream's `--concurrent-*-syncs` default.
const CONCURRENT_RECONCILES: usize = 5;

/// When to look at an object again if nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// Never.
    Done,
    /// After this time.
    After(Duration),
}

/// A reconcile that did not get to its end; it starts over after a pause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// A request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What was written cannot be seen yet.
    #[error(transparent)]
    NotShown(#[from] NotShown),
}

/// A controller of one kind.
pub(crate) trait Controller: Send + Sync + 'static {
    /// Its name in logs, upstream's where there is one: `deployment`.
    const NAME: &'static str;

    /// Whether it must not be late for a time of day: then it looks at all that waits when the clock jumps. What only tidies
    /// up is not hurried by a clock that may be wrong.
    const WAITS_FOR_TIMES_OF_DAY: bool = false;

    /// Brings the object with this key one step further. Level-triggered: it works from what is, and doing it again is
    /// harmless.
    fn reconcile(&self, key: &Key) -> impl Future<Output = Result<Requeue, ReconcileError>> + Send;
}

/// Reconciles what the queue holds, for ever; with each of `clock_jumps` also what waits there for its time. A panic ends
/// one reconcile.
pub(crate) async fn run<C: Controller>(controller: Arc<C>, queue: Queue<Key>, mut clock_jumps: ClockJumps) {
    let mut reconciles = JoinSet::new();
    let mut keys: HashMap<Id, Key> = HashMap::new();
    loop {
        tokio::select! {
            key = queue.next(), if reconciles.len() < CONCURRENT_RECONCILES => {
                let (controller, of) = (controller.clone(), key.clone());
                let handle = reconciles.spawn(async move { controller.reconcile(&of).await });
                keys.insert(handle.id(), key);
            }
            () = clock_jumps.next() => queue.add_all_that_wait(),
            Some(ended) = reconciles.join_next_with_id() => {
                let id = match &ended {
                    Ok((id, _)) => *id,
                    Err(failure) => failure.id(),
                };
                let key = keys.remove(&id).expect("every reconcile has its key");
                queue.looked_at(&key, outcome::<C>(&key, ended.map(|(_, result)| result)));
            }
        }
    }
}

fn outcome<C: Controller>(key: &Key, ended: Result<Result<Requeue, ReconcileError>, JoinError>) -> Outcome {
    match ended {
        Ok(Ok(Requeue::Done)) => Outcome::Done,
        Ok(Ok(Requeue::After(delay))) => Outcome::Again(delay),
        Ok(Err(failure)) => {
            // A lost race is nothing to tell anybody: the change that won is looked at next.
            if !matches!(&failure, ReconcileError::Client(error) if error.is_conflict()) {
                warn!(controller = C::NAME, %key, error = %failure, "cannot reconcile, trying again");
            }
            Outcome::Failed
        }
        Err(panic) => {
            error!(controller = C::NAME, %key, error = panic_text(panic), "a reconcile panicked, trying again");
            Outcome::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::sync::mpsc;

    use super::*;

    struct Script {
        answers: Mutex<Vec<Result<Requeue, &'static str>>>,
        looked_at: mpsc::UnboundedSender<Key>,
    }

    impl Controller for Script {
        const NAME: &'static str = "script";

        async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
            let _ = self.looked_at.send(key.clone());
            let answer = self.answers.lock().pop();
            match answer {
                Some(Ok(requeue)) => Ok(requeue),
                Some(Err("panic")) => panic!("on purpose"),
                Some(Err(_)) => Err(NotShown.into()),
                None => Ok(Requeue::Done),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn errors_and_panics_end_one_look_and_not_the_controller() {
        let (looked_at, mut looks) = mpsc::unbounded_channel();
        let answers = vec![
            Ok(Requeue::Done),
            Ok(Requeue::After(Duration::from_secs(5))),
            Err("panic"),
            Err("not shown"),
        ];
        let script = Arc::new(Script {
            answers: Mutex::new(answers),
            looked_at,
        });
        let queue = Queue::default();
        let running = tokio::spawn(run(script, queue.clone(), ClockJumps::never()));
        queue.add(Key::new("a", "b"));
        for look in 0..4 {
            assert_eq!(looks.recv().await, Some(Key::new("a", "b")), "{look}");
        }
        assert!(
            tokio::time::timeout(Duration::from_secs(600), looks.recv())
                .await
                .is_err()
        );
        running.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_jump_of_the_clock_is_a_reason_to_look_at_all_that_waits() {
        let (looked_at, mut looks) = mpsc::unbounded_channel();
        let tomorrow: Result<Requeue, &str> = Ok(Requeue::After(Duration::from_secs(24 * 60 * 60)));
        let script = Arc::new(Script {
            answers: Mutex::new(vec![Ok(Requeue::Done), tomorrow, tomorrow]),
            looked_at,
        });
        let queue = Queue::default();
        let (jumper, clock_jumps) = ClockJumps::by_hand();
        let running = tokio::spawn(run(script, queue.clone(), clock_jumps));
        let key = Key::new("a", "b");
        queue.add(key.clone());
        for look in 0..3 {
            let begun = tokio::time::Instant::now();
            assert_eq!(looks.recv().await, Some(key.clone()), "{look}");
            assert_eq!(begun.elapsed(), Duration::ZERO, "{look}");
            // The look ends, and what it asks for is noted, before an hour has passed.
            tokio::time::sleep(Duration::from_secs(60 * 60)).await;
            jumper.jump();
        }
        assert!(
            tokio::time::timeout(Duration::from_secs(48 * 60 * 60), looks.recv())
                .await
                .is_err()
        );
        running.abort();
    }
}
