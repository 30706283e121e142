//! What `sync` counts beside what every reloader counts.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::shown::{Outcomes, Shown, set};

/// Upper bounds in seconds: from a rename in memory to a disk that is in trouble.
const BUCKETS: [f64; 12] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0,
];

/// Counters of one directory. Clones count together.
#[derive(Clone)]
pub(crate) struct SyncMetrics(Arc<Counts>);

struct Counts {
    writes: Outcomes,
    write: Histogram,
    verifications: Outcomes,
    interruptions: Counter,
    gone: Counter,
    deaf: Gauge,
    missing: Gauge,
    impossible: Gauge,
    overridden: Gauge,
    left_out: Gauge,
    shadowed: Gauge,
}

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    New,
    Unchanged,
    Failed,
}

impl SyncMetrics {
    /// Counters that are part of what is shown.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let writes = "Writes of the directory by outcome: new, unchanged, failed";
        let verifications = "Revisions asked about with --verify by outcome: passed, failed";
        Self(Arc::new(Counts {
            writes: Outcomes::register(registry, "hotmap_sync_writes", writes),
            write: registry.shown_in_seconds(
                "hotmap_sync_write",
                "Time from the news of a change until its content was visible",
                Histogram::new(BUCKETS),
            ),
            verifications: Outcomes::register(registry, "hotmap_sync_verifications", verifications),
            interruptions: registry.shown("hotmap_sync_interruptions", "Failed attempts to hear the API"),
            gone: registry.shown(
                "hotmap_sync_objects_gone",
                "Named objects that were deleted and whose last content stayed",
            ),
            deaf: registry.shown(
                "hotmap_sync_deaf",
                "1 while the API cannot be heard or the manifests cannot be read",
            ),
            missing: registry.shown(
                "hotmap_sync_objects_missing",
                "Objects that are waited for because they do not exist",
            ),
            impossible: registry.shown(
                "hotmap_sync_impossible",
                "1 while the objects make no set of files, and the last content stays",
            ),
            overridden: registry.shown(
                "hotmap_sync_keys_overridden",
                "Keys that two objects have, of which one is not shown",
            ),
            left_out: registry.shown("hotmap_sync_left_out", "Objects and keys that are left out"),
            shadowed: registry.shown(
                "hotmap_sync_files_shadowed",
                "Files that a file which is not ours is in the way of",
            ),
        }))
    }

    pub(crate) fn wrote(&self, write: Write, since_heard: Duration) {
        let outcome = match write {
            Write::New => "new",
            Write::Unchanged => "unchanged",
            Write::Failed => "failed",
        };
        self.0.writes.count(outcome);
        if write == Write::New {
            self.0.write.observe(since_heard.as_secs_f64());
        }
    }

    pub(crate) fn verified(&self, has_passed: bool) {
        let outcome = if has_passed { "passed" } else { "failed" };
        self.0.verifications.count(outcome);
    }

    pub(crate) fn interrupted(&self) {
        self.0.interruptions.inc();
    }

    pub(crate) fn gone(&self) {
        self.0.gone.inc();
    }

    pub(crate) fn deaf(&self, is_deaf: bool) {
        self.0.deaf.set(i64::from(is_deaf));
    }

    pub(crate) fn missing(&self, objects: usize) {
        set(&self.0.missing, objects);
    }

    pub(crate) fn impossible(&self, is_impossible: bool) {
        self.0.impossible.set(i64::from(is_impossible));
    }

    pub(crate) fn overridden(&self, keys: usize) {
        set(&self.0.overridden, keys);
    }

    pub(crate) fn left_out(&self, count: usize) {
        set(&self.0.left_out, count);
    }

    pub(crate) fn shadowed(&self, files: usize) {
        set(&self.0.shadowed, files);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::{assert_shows, text};

    #[test]
    fn what_is_counted_is_shown_under_its_name() {
        let mut registry = Registry::default();
        let metrics = SyncMetrics::register(&mut registry);
        metrics.wrote(Write::New, Duration::from_micros(300));
        metrics.wrote(Write::Failed, Duration::ZERO);
        metrics.verified(false);
        metrics.interrupted();
        metrics.gone();
        metrics.deaf(true);
        metrics.missing(2);
        metrics.overridden(3);
        let lines = [
            "hotmap_sync_writes_total{outcome=\"new\"} 1",
            "hotmap_sync_writes_total{outcome=\"failed\"} 1",
            "hotmap_sync_write_seconds_count 1",
            "hotmap_sync_verifications_total{outcome=\"failed\"} 1",
            "hotmap_sync_interruptions_total 1",
            "hotmap_sync_objects_gone_total 1",
            "hotmap_sync_deaf 1",
            "hotmap_sync_objects_missing 2",
            "hotmap_sync_keys_overridden 3",
            "hotmap_sync_left_out 0",
        ];
        assert_shows(&text(&registry), &lines);
    }
}
