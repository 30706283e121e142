//! Where the time comes from.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

/// Makes a store look at the clock again.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The wall clock: expiry times outlive the process, so a monotonic clock would not do.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> SystemTime;

    /// Hands over what a clock that does not flow by itself calls after each jump, so that deadlines in between are
    /// met. Of no use to a clock that flows.
    fn on_jump(&self, _wake: Wake) {}
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that stands still until it is told to move: for tests that need not sleep.
pub struct ManualClock {
    now: Mutex<SystemTime>,
    wakes: Mutex<Vec<Wake>>,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: SystemTime) -> Self {
        Self {
            now: Mutex::new(now),
            wakes: Mutex::new(Vec::new()),
        }
    }

    /// Moves the clock forward and wakes whoever waits for a deadline.
    pub fn advance(&self, by: Duration) {
        *self.now.lock() += by;
        let wakes = self.wakes.lock().clone();
        wakes.iter().for_each(|wake| wake());
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.now.lock()
    }

    fn on_jump(&self, wake: Wake) {
        self.wakes.lock().push(wake);
    }
}
