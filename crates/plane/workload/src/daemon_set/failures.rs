//! How often the failed pods of a node are replaced.
//!
//! Source: `failedPodsBackoff` in `pkg/controller/daemon/daemon_controller.go` and `flowcontrol.Backoff`,
//! Kubernetes 1.36. A node that refuses a pod again and again would otherwise be asked without end.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;

const DELAY_MIN: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(15 * 60);

/// One node of one state of one DaemonSet. Another generation starts anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) node: String,
}

/// When pods were replaced last, and for how long the next ones are left alone.
#[derive(Debug, Default)]
pub(super) struct Failures {
    places: HashMap<Place, (Timestamp, Duration)>,
}

impl Failures {
    /// How long a failed pod of this place is still left alone; nothing if it may be replaced.
    pub(super) fn held(&self, place: &Place, now: Timestamp) -> Option<Duration> {
        let (last, delay) = self.places.get(place)?;
        let left = delay.checked_sub(since(*last, now))?;
        (!left.is_zero()).then_some(left)
    }

    /// A failed pod of this place is replaced now. What has been quiet for long is forgotten.
    pub(super) fn replaced(&mut self, place: Place, now: Timestamp) {
        self.places
            .retain(|_, (last, _)| since(*last, now) <= 2 * DELAY_MAX);
        let (last, delay) = self.places.entry(place).or_insert((now, Duration::ZERO));
        *last = now;
        *delay = (*delay * 2).clamp(DELAY_MIN, DELAY_MAX);
    }
}

fn since(last: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(last)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_quarter_of_an_hour_and_are_forgotten_after_twice_that() {
        let place = |node: &str| Place {
            uid: "u".to_owned(),
            generation: 1,
            node: node.to_owned(),
        };
        let start: Timestamp = "2026-01-02T15:04:05Z".parse().expect("a time");
        let mut failures = Failures::default();
        assert_eq!(failures.held(&place("a"), start), None);
        let mut now = start;
        let mut delays = Vec::new();
        for _ in 0..12 {
            failures.replaced(place("a"), now);
            let held = failures.held(&place("a"), now).expect("held");
            delays.push(held.as_secs());
            now += held;
            assert_eq!(failures.held(&place("a"), now), None);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
        assert_eq!(failures.held(&place("b"), start), None);
        failures.replaced(place("b"), now + 2 * DELAY_MAX + DELAY_MIN);
        assert_eq!(failures.places.len(), 1);
    }
}
