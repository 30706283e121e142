//! How long a container waits before its next start.
//!
//! Numbers are `pkg/kubelet/kubelet.go`'s, Kubernetes 1.36: 10 s, doubling to 5 min, forgotten after 10 min of running.

use std::time::Duration;

/// Wait before the first restart that has to wait.
const BACK_OFF_FIRST: Duration = Duration::from_secs(10);
/// The longest wait.
pub(crate) const BACK_OFF_MAX: Duration = Duration::from_secs(300);
/// A container that ran this long starts afresh.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// The restarts of one container so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BackOff {
    next: Option<Duration>,
}

impl BackOff {
    /// Notes that the container ended after running for `ran`; says how long to wait before it starts again.
    ///
    /// The first restart is immediate.
    pub(crate) fn after_exit(&mut self, ran: Duration) -> Duration {
        if ran >= FORGOTTEN_AFTER {
            self.next = None;
        }
        let wait = self.next.unwrap_or_default();
        self.next = Some(if wait.is_zero() {
            BACK_OFF_FIRST
        } else {
            (wait * 2).min(BACK_OFF_MAX)
        });
        wait
    }
}

/// A wait in Go's notation, as `back-off 2m40s restarting failed container` prints it.
pub(crate) fn shown(wait: Duration) -> String {
    match (wait.as_secs() / 60, wait.as_secs() % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_five_minutes_and_are_forgotten() {
        let mut back_off = BackOff::default();
        let waits: Vec<u64> = (0..8)
            .map(|_| back_off.after_exit(Duration::ZERO).as_secs())
            .collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(back_off.after_exit(FORGOTTEN_AFTER), Duration::ZERO);
        assert_eq!(shown(Duration::from_secs(160)), "2m40s");
        assert_eq!(shown(Duration::from_secs(10)), "10s");
    }
}
