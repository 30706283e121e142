//! How long a Job has been active.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Time since `status.startTime`. What was before we first saw it is known by the wall clock alone; from then on nobody sets
/// the clock, so that a jump neither ends a Job nor lets it run on.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActiveTime {
    start: Timestamp,
    before: SignedDuration,
    since: Instant,
}

impl ActiveTime {
    /// `now` and `since` are the same moment. A start in the future comes from a clock that was set back.
    pub(super) fn new(start: Timestamp, now: Timestamp, since: Instant) -> Self {
        let before = now.duration_since(start).max(SignedDuration::ZERO);
        Self { start, before, since }
    }

    /// Whether it counts from this start: a Job that was suspended has another one.
    pub(super) fn is_from(&self, start: Timestamp) -> bool {
        self.start == start
    }

    pub(super) fn until(&self, now: Instant) -> SignedDuration {
        let passed = SignedDuration::try_from(now.saturating_duration_since(self.since));
        self.before.saturating_add(passed.unwrap_or(SignedDuration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_counts_from_the_start_of_the_job_whatever_becomes_of_the_clock() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let seen = Instant::now();
        for (start, now, before) in [
            (100, 100, 0),
            // We were started anew in between.
            (100, 120, 20),
            // The clock was set back before we saw it.
            (100, 40, 0),
        ] {
            let active = ActiveTime::new(at(start), at(now), seen);
            for passed in [0, 30, 86_400] {
                let elapsed = active.until(seen + Duration::from_secs(passed)).as_secs();
                assert_eq!(
                    elapsed,
                    before + i64::try_from(passed).expect("small"),
                    "{start} {now}"
                );
            }
            assert!(active.is_from(at(start)) && !active.is_from(at(start + 1)));
        }
    }
}
