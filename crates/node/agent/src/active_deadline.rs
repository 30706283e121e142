//! How long a pod has been active on its node, and when its time is up.
//!
//! Rules and words follow `pkg/kubelet/active_deadline.go`, Kubernetes 1.36: the time counts from `status.startTime`, init
//! containers and everything that is waited for included.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The reason of the pod's status and of the event.
pub(crate) const REASON: &str = "DeadlineExceeded";
/// What both say.
pub(crate) const MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// Time since the start of a pod. What was before this run of the agent is known by the wall clock alone; from then on
/// nobody sets the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveTime {
    before: Duration,
    since: Instant,
}

impl ActiveTime {
    /// `now` and `since` are the same moment. A start in the future comes from a clock that was set back.
    pub(crate) fn new(start_time: Timestamp, now: Timestamp, since: Instant) -> Self {
        let before = Duration::try_from(now.duration_since(start_time)).unwrap_or_default();
        Self { before, since }
    }

    /// When the pod will have been active for so long; `None`: never.
    pub(crate) fn due(&self, seconds: i64) -> Option<Instant> {
        let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        self.since.checked_add(limit.saturating_sub(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_start_of_the_pod_whatever_becomes_of_the_clock() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let begun = Instant::now();
        for (start, now, limit, left) in [
            // The agent was there from the beginning.
            (100, 100, 30, 30),
            // It was started anew, in time and too late.
            (100, 120, 30, 10),
            (100, 500, 30, 0),
            // The clock was set back in between: what was before does not count.
            (100, 40, 30, 30),
            (100, 100, 0, 0),
            (100, 100, -5, 0),
        ] {
            let active = ActiveTime::new(at(start), at(now), begun);
            let due = active.due(limit).expect("not for ever");
            assert_eq!(due.duration_since(begun).as_secs(), left, "{start} {now} {limit}");
        }
        assert_eq!(ActiveTime::new(at(0), at(0), begun).due(i64::MAX), None);
    }
}
