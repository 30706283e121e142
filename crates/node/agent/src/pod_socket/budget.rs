//! How often a pod may speak. No clock: whoever asks says what time it is.

use std::time::Duration;

use tokio::time::Instant;

/// Lines that may come at once.
const BURST: u32 = 32;
/// From one line to the next, once those are used up: ten a second.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// What a pod has left.
pub(super) struct Budget {
    /// When all lines of a burst will be there again.
    full_at: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self { full_at: now }
    }

    /// Takes a line, and says how long to wait before it is read.
    pub(super) fn take(&mut self, now: Instant) -> Duration {
        self.full_at = self.full_at.max(now) + PAUSE;
        self.full_at.duration_since(now).saturating_sub(PAUSE * BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_it_is_ten_a_second() {
        let now = Instant::now();
        let mut budget = Budget::new(now);
        assert!((0..32).all(|_| budget.take(now).is_zero()));
        assert_eq!(budget.take(now), PAUSE);
        assert_eq!(budget.take(now), PAUSE * 2);
        let later = now + Duration::from_secs(10);
        assert!(
            (0..32).all(|_| budget.take(later).is_zero()),
            "rest brings all of it back, and no more"
        );
        assert_eq!(budget.take(later), PAUSE);
    }
}
