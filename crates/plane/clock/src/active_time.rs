//! How long something has been active whose start is a time of day.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Time since a start, such as `status.startTime` of a pod or a Job. What was before this process first saw it is known by the
/// wall clock alone; from then on nobody sets the clock, so that a jump neither ends it nor lets it run on.
#[derive(Debug, Clone, Copy)]
pub struct ActiveTime {
    start: Timestamp,
    before: Duration,
    since: Instant,
}

impl ActiveTime {
    /// `now` and `since` are the same moment. A start in the future comes from a clock that was set back, and what was before
    /// does not count.
    pub fn new(start: Timestamp, now: Timestamp, since: Instant) -> Self {
        let before = Duration::try_from(now.duration_since(start)).unwrap_or_default();
        Self { start, before, since }
    }

    /// Whether it counts from this start: a Job that was suspended has another one.
    pub fn is_from(&self, start: Timestamp) -> bool {
        self.start == start
    }

    /// How long it has been active by then.
    pub fn until(&self, now: Instant) -> Duration {
        self.before
            .saturating_add(now.saturating_duration_since(self.since))
    }

    /// When it will have been active for so long; `None`: never.
    pub fn due(&self, limit: Duration) -> Option<Instant> {
        self.since.checked_add(limit.saturating_sub(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_start_whatever_becomes_of_the_clock() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let seconds = Duration::from_secs;
        let seen = Instant::now();
        for (start, now, before) in [
            // Seen from the beginning.
            (100, 100, 0),
            // We were started anew in between.
            (100, 120, 20),
            (100, 500, 400),
            // The clock was set back before we saw it.
            (100, 40, 0),
        ] {
            let active = ActiveTime::new(at(start), at(now), seen);
            for passed in [0, 30, 86_400] {
                let elapsed = active.until(seen + seconds(passed));
                assert_eq!(elapsed, seconds(before + passed), "{start} {now}");
            }
            for limit in [0, 30, 86_400] {
                let due = active.due(seconds(limit)).expect("not for ever");
                let left = limit.saturating_sub(before);
                assert_eq!(due.duration_since(seen), seconds(left), "{start} {now} {limit}");
            }
            assert!(active.is_from(at(start)) && !active.is_from(at(start + 1)));
        }
    }

    #[test]
    fn time_that_no_clock_can_count_to_is_never_due() {
        let active = ActiveTime::new(Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH, Instant::now());
        assert_eq!(active.due(Duration::from_secs(i64::MAX as u64)), None);
        assert_eq!(active.due(Duration::MAX), None);
    }
}
