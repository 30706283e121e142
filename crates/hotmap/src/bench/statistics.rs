//! From samples to the figures people compare. Percentiles are exact: every sample is kept and sorted.

use std::time::Duration;

use serde::Serialize;

/// Latencies of one kind of operation, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Summary {
    pub(super) count: usize,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
}

impl Summary {
    /// Nothing if there are no samples.
    pub(super) fn of(mut samples: Vec<Duration>) -> Option<Self> {
        samples.sort_unstable();
        let last = samples.last()?;
        Some(Self {
            count: samples.len(),
            p50_us: micros(percentile(&samples, 50)),
            p99_us: micros(percentile(&samples, 99)),
            max_us: micros(*last),
        })
    }
}

/// The smallest sample that `percent` of all samples do not exceed (nearest rank).
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_that_occurred() {
        for (samples, p50, p99, max) in [
            (vec![7], 7.0, 7.0, 7.0),
            (vec![2, 1], 1.0, 2.0, 2.0),
            ((1..=100).rev().collect(), 50.0, 99.0, 100.0),
            ((1..=1000).collect(), 500.0, 990.0, 1000.0),
            ((1..=101).collect(), 51.0, 100.0, 101.0),
        ] {
            let count = samples.len();
            let summary =
                Summary::of(samples.into_iter().map(Duration::from_micros).collect()).expect("samples");
            let near = |left: f64, right: f64| (left - right).abs() < 1e-6;
            assert_eq!(summary.count, count);
            assert!(
                near(summary.p50_us, p50) && near(summary.p99_us, p99) && near(summary.max_us, max),
                "{summary:?}"
            );
        }
        assert_eq!(Summary::of(Vec::new()), None);
    }
}
