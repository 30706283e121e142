//! Which objects of a controller deserve a look, and when.
//!
//! A key waits in the queue once however often it is added, is looked at by one at a time, and is looked at again when it
//! was added meanwhile. Bounded by the number of objects.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use hotmap_client::Backoff;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::controllers::retries;

/// A handle on a queue; clones are the same queue.
pub(crate) struct Queue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

struct Shared<K> {
    state: Mutex<State<K>>,
    added: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    /// What is in `ready`, or waits for its running look to end.
    wanted: HashSet<K>,
    running: HashSet<K>,
    /// When to look again, the earliest of all wishes.
    due: HashMap<K, Instant>,
    timers: BTreeSet<(Instant, K)>,
    failures: HashMap<K, Backoff>,
}

impl<K: Clone + Eq + Hash + Ord> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            ready: VecDeque::new(),
            wanted: HashSet::new(),
            running: HashSet::new(),
            due: HashMap::new(),
            timers: BTreeSet::new(),
            failures: HashMap::new(),
        };
        let shared = Shared {
            state: Mutex::new(state),
            added: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// Asks for a look at once.
    pub(crate) fn add(&self, key: K) {
        if self.shared.state.lock().add(key) {
            self.shared.added.notify_one();
        }
    }

    /// Asks for a look in a while; the earliest wish counts, and a look fulfils all of them.
    pub(crate) fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        self.shared.state.lock().add_at(key, Instant::now() + delay);
        self.shared.added.notify_one();
    }

    /// Asks for a look at once at everything that was to be looked at in a while.
    pub(crate) fn add_all_that_wait(&self) {
        let mut state = self.shared.state.lock();
        while let Some((at, _)) = state.timers.first().cloned() {
            state.wake(at);
        }
        drop(state);
        self.shared.added.notify_one();
    }

    /// The next key that deserves a look; [`Queue::looked_at`] ends the look. For one caller at a time.
    pub(crate) async fn next(&self) -> K {
        loop {
            let wake_at = {
                let mut state = self.shared.state.lock();
                state.wake(Instant::now());
                if let Some(key) = state.start() {
                    return key;
                }
                state.timers.first().map(|(at, _)| *at)
            };
            tokio::select! {
                () = self.shared.added.notified() => {}
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {}
            }
        }
    }

    /// A look has ended.
    pub(crate) fn looked_at(&self, key: &K, outcome: Outcome) {
        let mut state = self.shared.state.lock();
        let delay = match outcome {
            Outcome::Done => None,
            Outcome::Again(delay) => Some(delay),
            Outcome::Failed => Some(
                state
                    .failures
                    .entry(key.clone())
                    .or_insert_with(retries)
                    .next_delay(),
            ),
        };
        if outcome != Outcome::Failed {
            state.failures.remove(key);
        }
        state.running.remove(key);
        if state.wanted.contains(key) {
            state.ready.push_back(key.clone());
        }
        if let Some(delay) = delay {
            state.add_at(key.clone(), Instant::now() + delay);
        }
        drop(state);
        self.shared.added.notify_one();
    }
}

/// How a look ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing more to do until something changes.
    Done,
    /// Look again after this time.
    Again(Duration),
    /// Look again after a pause that grows with each failure in a row.
    Failed,
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    fn add(&mut self, key: K) -> bool {
        if !self.wanted.insert(key.clone()) || self.running.contains(&key) {
            return false;
        }
        self.ready.push_back(key);
        true
    }

    fn add_at(&mut self, key: K, at: Instant) {
        match self.due.get(&key) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                self.timers.remove(&(*later, key.clone()));
            }
            None => {}
        }
        self.due.insert(key.clone(), at);
        self.timers.insert((at, key));
    }

    fn wake(&mut self, now: Instant) {
        while let Some((at, _)) = self.timers.first()
            && *at <= now
        {
            let (_, key) = self.timers.pop_first().expect("there is a first");
            self.due.remove(&key);
            self.add(key);
        }
    }

    fn start(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.wanted.remove(&key);
        if let Some(at) = self.due.remove(&key) {
            self.timers.remove(&(at, key.clone()));
        }
        self.running.insert(key.clone());
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_idle(queue: &Queue<&'static str>, time: Duration) -> bool {
        tokio::time::timeout(time, queue.next()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_looked_at_once_and_again_when_it_was_added_meanwhile() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
        queue.add("a");
        assert!(
            is_idle(&queue, Duration::from_secs(60)).await,
            "a is being looked at"
        );
        queue.looked_at(&"a", Outcome::Done);
        assert_eq!(queue.next().await, "a");
        queue.looked_at(&"a", Outcome::Done);
        queue.looked_at(&"b", Outcome::Done);
        assert!(is_idle(&queue, Duration::from_secs(60)).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_wish_counts_and_a_look_fulfils_all() {
        let queue = Queue::default();
        for seconds in [30, 10, 20] {
            queue.add_after("a", Duration::from_secs(seconds));
        }
        assert!(is_idle(&queue, Duration::from_secs(9)).await);
        assert_eq!(queue.next().await, "a");
        queue.looked_at(&"a", Outcome::Done);
        assert!(is_idle(&queue, Duration::from_secs(60)).await);
        queue.add_after("a", Duration::from_secs(10));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.looked_at(&"a", Outcome::Again(Duration::from_secs(30)));
        assert!(is_idle(&queue, Duration::from_secs(29)).await);
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_with_failures_and_end_with_a_success() {
        let queue = Queue::default();
        queue.add("a");
        let mut pauses = Vec::new();
        for outcome in [Outcome::Failed, Outcome::Failed, Outcome::Done] {
            let begun = Instant::now();
            assert_eq!(queue.next().await, "a");
            pauses.push(begun.elapsed());
            queue.looked_at(&"a", outcome);
        }
        assert!(pauses[1] > Duration::ZERO && pauses[2] > pauses[1], "{pauses:?}");
        assert!(queue.shared.state.lock().failures.is_empty());
    }
}
