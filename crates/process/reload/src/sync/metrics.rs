//! What `sync` counts beside what every reloader counts.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Upper bounds in seconds: from a rename in memory to a disk that is in trouble.
const BUCKETS: [f64; 12] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0,
];

/// Counters of one directory. Clones count together.
#[derive(Clone, Default)]
pub(crate) struct SyncMetrics(Arc<Counts>);

struct Counts {
    writes: Family<OutcomeLabels, Counter>,
    write: Histogram,
    verifications: Family<OutcomeLabels, Counter>,
    interruptions: Counter,
    gone: Counter,
    deaf: Gauge<i64, AtomicI64>,
    missing: Gauge<i64, AtomicI64>,
    impossible: Gauge<i64, AtomicI64>,
    overridden: Gauge<i64, AtomicI64>,
    left_out: Gauge<i64, AtomicI64>,
    shadowed: Gauge<i64, AtomicI64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            writes: Family::default(),
            write: Histogram::new(BUCKETS),
            verifications: Family::default(),
            interruptions: Counter::default(),
            gone: Counter::default(),
            deaf: Gauge::default(),
            missing: Gauge::default(),
            impossible: Gauge::default(),
            overridden: Gauge::default(),
            left_out: Gauge::default(),
            shadowed: Gauge::default(),
        }
    }
}

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    New,
    Unchanged,
    Failed,
}

impl SyncMetrics {
    /// Makes them part of what is shown.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let counts = &self.0;
        let gauge = |gauge: &Gauge<i64, AtomicI64>| gauge.clone();
        let writes = "Writes of the directory by outcome: new, unchanged, failed";
        registry.register("hotmap_sync_writes", writes, counts.writes.clone());
        let write = "Time from the news of a change until its content was visible";
        registry.register_with_unit("hotmap_sync_write", write, Unit::Seconds, counts.write.clone());
        let verifications = "Revisions asked about with --verify by outcome: passed, failed";
        registry.register(
            "hotmap_sync_verifications",
            verifications,
            counts.verifications.clone(),
        );
        let interruptions = "Failed attempts to hear the API";
        registry.register(
            "hotmap_sync_interruptions",
            interruptions,
            counts.interruptions.clone(),
        );
        let gone = "Named objects that were deleted and whose last content stayed";
        registry.register("hotmap_sync_objects_gone", gone, counts.gone.clone());
        let deaf = "1 while the API cannot be heard or the manifests cannot be read";
        registry.register("hotmap_sync_deaf", deaf, gauge(&counts.deaf));
        let missing = "Objects that are waited for because they do not exist";
        registry.register("hotmap_sync_objects_missing", missing, gauge(&counts.missing));
        let impossible = "1 while the objects make no set of files, and the last content stays";
        registry.register("hotmap_sync_impossible", impossible, gauge(&counts.impossible));
        let overridden = "Keys that two objects have, of which one is not shown";
        registry.register(
            "hotmap_sync_keys_overridden",
            overridden,
            gauge(&counts.overridden),
        );
        let left_out = "Objects and keys that are left out";
        registry.register("hotmap_sync_left_out", left_out, gauge(&counts.left_out));
        let shadowed = "Files that a file which is not ours is in the way of";
        registry.register("hotmap_sync_files_shadowed", shadowed, gauge(&counts.shadowed));
    }

    pub(crate) fn wrote(&self, write: Write, since_heard: Duration) {
        let outcome = match write {
            Write::New => "new",
            Write::Unchanged => "unchanged",
            Write::Failed => "failed",
        };
        self.0.writes.get_or_create(&OutcomeLabels { outcome }).inc();
        if write == Write::New {
            self.0.write.observe(since_heard.as_secs_f64());
        }
    }

    pub(crate) fn verified(&self, has_passed: bool) {
        let outcome = if has_passed { "passed" } else { "failed" };
        self.0
            .verifications
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
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

fn set(gauge: &Gauge<i64, AtomicI64>, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown_under_its_name() {
        let mut registry = Registry::default();
        let metrics = SyncMetrics::default();
        metrics.register(&mut registry);
        metrics.wrote(Write::New, Duration::from_micros(300));
        metrics.wrote(Write::Failed, Duration::ZERO);
        metrics.verified(false);
        metrics.interrupted();
        metrics.gone();
        metrics.deaf(true);
        metrics.missing(2);
        metrics.overridden(3);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string takes it");
        for line in [
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
        ] {
            assert!(
                text.lines().any(|shown| shown == line),
                "{line}\nis not in\n{text}"
            );
        }
    }
}
