//! Metrics are made and shown in one step, so that nothing is counted that nobody can see.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry, Unit};

/// A gauge of seconds or of fractions.
pub(crate) type SecondsGauge = Gauge<f64, AtomicU64>;

/// What a registry shows.
pub(crate) trait Shown {
    /// A metric that is shown from now on, at zero.
    fn shown<M: Metric + Clone + Default>(&mut self, name: &'static str, help: &'static str) -> M;

    /// A metric of seconds that is shown from now on; its name gets `_seconds` behind it.
    fn shown_in_seconds<M: Metric + Clone>(&mut self, name: &'static str, help: &'static str, metric: M)
    -> M;
}

impl Shown for Registry {
    fn shown<M: Metric + Clone + Default>(&mut self, name: &'static str, help: &'static str) -> M {
        let metric = M::default();
        self.register(name, help, metric.clone());
        metric
    }

    fn shown_in_seconds<M: Metric + Clone>(
        &mut self,
        name: &'static str,
        help: &'static str,
        metric: M,
    ) -> M {
        self.register_with_unit(name, help, Unit::Seconds, metric.clone());
        metric
    }
}

/// Things that are counted by how they ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes(Family<OutcomeLabels, Counter>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

impl Outcomes {
    /// Counters that are shown from now on; each outcome from its first time.
    pub(crate) fn register(registry: &mut Registry, name: &'static str, help: &'static str) -> Self {
        Self(registry.shown(name, help))
    }

    /// One more.
    pub(crate) fn count(&self, outcome: &'static str) {
        self.0.get_or_create(&OutcomeLabels { outcome }).inc();
    }
}

/// Sets a gauge to a number of things.
pub(crate) fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

/// Fails unless each of these lines is in what a registry shows.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_shows(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            text.lines().any(|shown| shown == *line),
            "{line}\nis not in\n{text}"
        );
    }
}

/// The text of what a registry shows.
#[cfg(test)]
pub(crate) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).expect("a string takes it");
    text
}
