//! When a change is brought to the targets, and when a failed call is repeated.

use std::time::Duration;

use tokio::time::Instant;

/// The times of a [`Reloader`](crate::Reloader), as flags set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// From the first sign of a change until it is brought on its way. More changes that arrive in between are brought
    /// together with it; they do not make it wait longer.
    pub delay: Duration,
    /// At most this much is added to `delay`, drawn anew for each change: replicas do not all reload at once.
    pub jitter: Duration,
    /// From one change that was brought until the next one is.
    pub min_interval: Duration,
    /// How long one call of one target may take.
    pub timeout: Duration,
    /// The pause before a failed call is repeated; it doubles each time, up to `backoff_max`. Half of it is drawn.
    pub backoff: Duration,
    /// The longest pause between two calls.
    pub backoff_max: Duration,
    /// How often a failed call is repeated; without one, until it succeeds or a newer change is there.
    pub retries: Option<u32>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            min_interval: Duration::ZERO,
            timeout: Duration::from_secs(30),
            backoff: Duration::from_millis(200),
            backoff_max: Duration::from_secs(30),
            retries: None,
        }
    }
}

impl Pace {
    /// When a change that was seen at `seen` is due. `draw` is within 0..1.
    pub(crate) fn due(&self, seen: Instant, last_brought: Option<Instant>, draw: f64) -> Instant {
        let after_quiet = seen + self.delay + self.jitter.mul_f64(draw);
        last_brought.map_or(after_quiet, |last| after_quiet.max(last + self.min_interval))
    }

    /// The pause after the `failures`-th failure in a row, counted from one; none if it is not repeated any more.
    pub(crate) fn pause(&self, failures: u32, draw: f64) -> Option<Duration> {
        if self.retries.is_some_and(|retries| failures > retries) {
            return None;
        }
        // Beyond 2^20 every limit that a person sets is reached.
        let doubled = self.backoff.saturating_mul(1 << (failures - 1).min(20));
        Some(doubled.min(self.backoff_max).mul_f64(0.5 + draw / 2.0))
    }
}

/// Draws fractions for jitter. Not for secrets.
#[derive(Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The same seed draws the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        // The generator stays at zero once it is there.
        Self(seed | 1)
    }

    /// One that draws other numbers.
    pub(crate) fn split(&mut self) -> Self {
        self.next();
        Self::new(self.0.rotate_left(17))
    }

    /// The next number within 0..1 (xorshift64*).
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        drawn as f64 / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_waits_for_its_delay_or_for_the_interval_whichever_is_later() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let pace = Pace {
            delay: ms(100),
            jitter: ms(50),
            min_interval: ms(1_000),
            ..Pace::default()
        };
        for (last_brought, draw, due) in [
            (None, 0.0, 100),
            (None, 0.5, 125),
            (Some(0), 0.0, 1_000),
            (Some(0), 0.9, 1_000),
        ] {
            let last_brought = last_brought.map(|at| start + ms(at));
            assert_eq!(
                pace.due(start, last_brought, draw),
                start + ms(due),
                "{last_brought:?} {draw}"
            );
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end_with_the_retries() {
        let ms = Duration::from_millis;
        let pace = Pace {
            backoff: ms(100),
            backoff_max: ms(300),
            retries: Some(3),
            ..Pace::default()
        };
        for (failures, draw, pause) in [
            (1, 1.0, Some(100)),
            (1, 0.0, Some(50)),
            (2, 1.0, Some(200)),
            (3, 1.0, Some(300)),
            (4, 1.0, None),
        ] {
            assert_eq!(pace.pause(failures, draw), pause.map(ms), "{failures} {draw}");
        }
        assert_eq!(
            Pace {
                retries: None,
                ..pace
            }
            .pause(u32::MAX, 1.0),
            Some(ms(300))
        );
    }

    #[test]
    fn draws_are_fractions_and_differ() {
        let mut draw = Draw::new(0);
        let drawn: Vec<f64> = (0..1_000).map(|_| draw.next()).collect();
        assert!(drawn.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(drawn.iter().any(|x| *x < 0.1) && drawn.iter().any(|x| *x > 0.9));
    }
}
