//! How long a program that ends by itself waits for its next start.

use std::time::Duration;

/// The times of `--restart`. The first restart is at once; the second waits `initial`, each further one twice as long
/// as the one before, up to `max`; a program that has run for `reset_after` starts over.
///
/// The kubelet's rule, with the numbers that its feature gate ReduceDefaultCrashLoopBackOffDecay sets
/// (`pkg/kubelet/kubelet.go`, Kubernetes 1.36): a process that is started anew costs less than a container. The former
/// ones are `--backoff 10s --backoff-max 5m`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub(crate) initial: Duration,
    pub(crate) max: Duration,
    pub(crate) reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
            reset_after: Duration::from_secs(600),
        }
    }
}

/// What has become of the starts so far.
#[derive(Debug, Default)]
pub(crate) struct Crashes {
    /// Ends since the program last ran for long.
    in_a_row: u32,
}

impl Crashes {
    /// The program ended by itself, after it had run this long; how long its next start waits.
    pub(crate) fn pause(&mut self, backoff: &Backoff, ran: Duration) -> Duration {
        if ran >= backoff.reset_after {
            self.in_a_row = 0;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        match self.in_a_row {
            1 => Duration::ZERO,
            // Beyond 2^20 every limit that a person sets is reached.
            ends => backoff
                .initial
                .saturating_mul(1 << (ends - 2).min(20))
                .min(backoff.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_the_second_crash_on_and_start_over_after_a_long_run() {
        let (backoff, mut crashes) = (Backoff::default(), Crashes::default());
        let ran_and_paused = [
            (0, 0),
            (0, 1),
            (5, 2),
            (599, 4),
            (0, 8),
            (0, 16),
            (0, 32),
            (0, 60),
            (0, 60),
            (600, 0),
            (0, 1),
        ];
        for (ran, paused) in ran_and_paused {
            let pause = crashes.pause(&backoff, Duration::from_secs(ran));
            assert_eq!(pause, Duration::from_secs(paused), "after {ran} s");
        }
    }
}
