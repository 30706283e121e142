//! Waiting longer after each failure, and not all at the same moment.

use std::time::Duration;

/// Delays that double from `min` to `max`, each drawn from the upper half of its step, so that clients that
/// failed together do not come back together.
#[derive(Debug, Clone)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
    random: u64,
}

impl Backoff {
    /// Starts at `min`; `seed` makes the sequence of delays, equal seeds make equal sequences.
    pub fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self {
            min,
            max,
            failures: 0,
            random: seed,
        }
    }

    /// A back-off with a seed of its own.
    pub fn seeded(min: Duration, max: Duration) -> Self {
        // Without random numbers from the system clients only lose their jitter.
        Self::new(min, max, getrandom::u64().unwrap_or_default())
    }

    /// The delay after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let step = self.min.saturating_mul(1 << self.failures.min(20)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        step / 2 + (step / 2).mul_f64(self.next_fraction())
    }

    /// Forgets the failures: something worked.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// SplitMix64, scaled to [0, 1): a spread is needed here, not secrecy.
    fn next_fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_start_over_after_a_success() {
        for seed in 0..50 {
            let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(10), seed);
            for step_ms in [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
                let delay = backoff.next_delay();
                let step = Duration::from_millis(step_ms);
                assert!(
                    delay >= step / 2 && delay <= step,
                    "{delay:?} for a step of {step:?}"
                );
            }
            backoff.reset();
            assert!(backoff.next_delay() <= Duration::from_millis(50));
        }
    }
}
