//! What is counted on the way to the process.
//!
//! Labels never hold content, keys or credentials; their number is bounded by the flags and by this file.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hotmap_projection::Revision;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metric_names::{ConfigmapReloadNames, MetricNames, PrometheusConfigReloaderNames};
use crate::shown::{Outcomes, SecondsGauge, Shown, set};
use crate::target::{TargetError, TargetKind};

/// Upper bounds in seconds: from a bare signal to a command's time limit.
const BUCKETS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0,
];

/// Everything that one process counts. Clones count together.
#[derive(Clone)]
pub struct Metrics(Arc<Counts>);

struct Counts {
    registry: Registry,
    changes: Outcomes,
    calls: Family<CallLabels, Counter>,
    call_time: Family<TargetLabels, Histogram>,
    checks: Family<CheckLabels, Counter>,
    told: Histogram,
    last_success: SecondsGauge,
    last_successful: Gauge,
    deaf: Gauge,
    watch_errors: Counter,
    watched: Gauge,
    loaded: Family<LoadedLabels, Gauge>,
    configmap_reload: Option<ConfigmapReloadNames>,
    prometheus_config_reloader: Option<PrometheusConfigReloaderNames>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    target: &'static str,
    outcome: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabels {
    target: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    outcome: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoadedLabels {
    volume: String,
    revision: String,
}

/// How one call of a target went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) target: TargetKind,
    pub(crate) name: &'a str,
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<&'a TargetError>,
    pub(crate) elapsed: Duration,
}

impl Metrics {
    /// Counters at zero, shown under our names and, for dashboards that exist, under another program's as well.
    pub fn new(names: MetricNames) -> Self {
        Self::with(names, |_| {}).0
    }

    /// As [`new`](Self::new), shown together with what `more` registers and returns.
    pub(crate) fn with<T>(names: MetricNames, more: impl FnOnce(&mut Registry) -> T) -> (Self, T) {
        let mut registry = Registry::default();
        let more = more(&mut registry);
        (Self(Arc::new(Counts::new(registry, names))), more)
    }

    /// The text of `/metrics`, in the format of OpenMetrics 1.0:
    /// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.0.registry).expect("a string takes it");
        text
    }

    /// How a change ended. `since_seen`: from the first sign of it until the last target had taken it.
    pub(crate) fn ended(&self, outcome: &'static str, since_seen: Duration, unix_seconds: f64) {
        let counts = &self.0;
        counts.changes.count(outcome);
        let is_loaded = outcome == "loaded";
        if is_loaded {
            counts.told.observe(since_seen.as_secs_f64());
            counts.last_success.set(unix_seconds);
        }
        if outcome != "superseded" {
            counts.last_successful.set(i64::from(is_loaded));
        }
        if let Some(names) = &counts.prometheus_config_reloader {
            names.ended(outcome, unix_seconds);
        }
    }

    pub(crate) fn called(&self, call: Call<'_>) {
        let target = call.target.as_str();
        let (outcome, reason) = call.error.map_or(("ok", ""), |error| ("error", error.reason));
        self.0
            .calls
            .get_or_create(&CallLabels {
                target,
                outcome,
                reason,
            })
            .inc();
        self.0
            .call_time
            .get_or_create(&TargetLabels { target })
            .observe(call.elapsed.as_secs_f64());
        if let Some(names) = &self.0.configmap_reload {
            names.called(call);
        }
        if let Some(names) = &self.0.prometheus_config_reloader {
            names.called(call);
        }
    }

    pub(crate) fn checked(&self, failure: Option<&'static str>) {
        let outcome = if failure.is_some() { "failed" } else { "passed" };
        self.0
            .checks
            .get_or_create(&CheckLabels {
                outcome,
                reason: failure.unwrap_or_default(),
            })
            .inc();
    }

    /// How many paths are watched.
    pub fn watched(&self, paths: usize) {
        set(&self.0.watched, paths);
        if let Some(names) = &self.0.prometheus_config_reloader {
            names.watched(paths);
        }
    }

    /// Content has changed, or was found at the start.
    pub(crate) fn seen(&self) {
        if let Some(names) = &self.0.prometheus_config_reloader {
            names.seen();
        }
    }

    /// Whether changes may be missed from now on.
    pub fn deaf(&self, is_deaf: bool) {
        self.0.deaf.set(i64::from(is_deaf));
        if is_deaf {
            self.0.watch_errors.inc();
            if let Some(names) = &self.0.configmap_reload {
                names.watch_failed();
            }
            if let Some(names) = &self.0.prometheus_config_reloader {
                names.watch_failed();
            }
        }
    }

    /// What the process has loaded of each watched path: `hotmap_loaded_info`.
    pub fn loaded<'a>(&self, volumes: impl IntoIterator<Item = (&'a str, &'a Revision)>) {
        self.0.loaded.clear();
        for (volume, revision) in volumes {
            let labels = LoadedLabels {
                volume: volume.to_owned(),
                revision: revision.to_string(),
            };
            self.0.loaded.get_or_create(&labels).set(1);
        }
    }
}

impl Counts {
    fn new(mut registry: Registry, names: MetricNames) -> Self {
        let shown = &mut registry;
        let (configmap_reload, prometheus_config_reloader) = match names {
            MetricNames::Hotmap => (None, None),
            MetricNames::ConfigmapReload => (Some(ConfigmapReloadNames::register(shown)), None),
            MetricNames::PrometheusConfigReloader => {
                (None, Some(PrometheusConfigReloaderNames::register(shown)))
            }
        };
        Self {
            changes: Outcomes::register(
                shown,
                "hotmap_reload_changes",
                "Changes of watched content by how they ended",
            ),
            calls: shown.shown(
                "hotmap_reload_calls",
                "Calls of targets, repeated ones included, by outcome and reason",
            ),
            call_time: shown.shown_in_seconds(
                "hotmap_reload_call",
                "Time that one call of a target took",
                Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            ),
            checks: shown.shown("hotmap_reload_checks", "Runs of the check by outcome"),
            told: shown.shown_in_seconds(
                "hotmap_reload_told",
                "From the first sign of a change until the last target had taken it",
                Histogram::new(BUCKETS),
            ),
            last_success: shown.shown(
                "hotmap_reload_last_success_timestamp_seconds",
                "When all targets took a change last, in seconds since 1970",
            ),
            last_successful: shown.shown(
                "hotmap_reload_last_successful",
                "1 if the targets have taken the last change, 0 if it was held back or has failed",
            ),
            deaf: shown.shown(
                "hotmap_reload_deaf",
                "1 while changes may be missed because a watch has failed",
            ),
            watch_errors: shown.shown("hotmap_reload_watch_errors", "How often a watch has failed"),
            watched: shown.shown("hotmap_reload_watched_paths", "Watched paths"),
            loaded: shown.shown(
                "hotmap_loaded_info",
                "The revision of each watched path that the targets have taken; always 1",
            ),
            configmap_reload,
            prometheus_config_reloader,
            registry,
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::assert_shows;

    fn refused() -> TargetError {
        TargetError {
            message: "status 500".into(),
            reason: "status",
            is_temporary: true,
        }
    }

    /// Counts one of everything and returns what is shown.
    fn shown(names: MetricNames) -> String {
        let metrics = Metrics::new(names);
        let error = refused();
        let call = Call {
            target: TargetKind::Webhook,
            name: "POST http://127.0.0.1:9090/-/reload",
            status: Some(500),
            error: Some(&error),
            elapsed: Duration::from_millis(2),
        };
        metrics.watched(2);
        metrics.seen();
        metrics.checked(None);
        metrics.checked(Some("exit"));
        metrics.called(call);
        metrics.called(Call {
            status: Some(200),
            error: None,
            ..call
        });
        metrics.ended("loaded", Duration::from_millis(3), 1_700_000_000.5);
        metrics.ended("superseded", Duration::ZERO, 0.0);
        metrics.deaf(true);
        metrics.deaf(false);
        metrics.loaded([("/etc/app", &Revision::new("..2026_01_02"))]);
        metrics.encode()
    }

    #[test]
    fn what_is_counted_is_shown_under_its_name() {
        let table: [(MetricNames, &[&str]); 3] = [
            (
                MetricNames::Hotmap,
                &[
                    "hotmap_reload_changes_total{outcome=\"loaded\"} 1",
                    "hotmap_reload_changes_total{outcome=\"superseded\"} 1",
                    "hotmap_reload_calls_total{target=\"webhook\",outcome=\"error\",reason=\"status\"} 1",
                    "hotmap_reload_calls_total{target=\"webhook\",outcome=\"ok\",reason=\"\"} 1",
                    "hotmap_reload_call_seconds_count{target=\"webhook\"} 2",
                    "hotmap_reload_checks_total{outcome=\"failed\",reason=\"exit\"} 1",
                    "hotmap_reload_told_seconds_count 1",
                    "hotmap_reload_last_success_timestamp_seconds 1700000000.5",
                    "hotmap_reload_last_successful 1",
                    "hotmap_reload_deaf 0",
                    "hotmap_reload_watch_errors_total 1",
                    "hotmap_reload_watched_paths 2",
                    "hotmap_loaded_info{volume=\"/etc/app\",revision=\"..2026_01_02\"} 1",
                ],
            ),
            (
                MetricNames::ConfigmapReload,
                &[
                    "configmap_reload_last_reload_error{webhook=\"http://127.0.0.1:9090/-/reload\"} 0",
                    "configmap_reload_requests_total{webhook=\"http://127.0.0.1:9090/-/reload\",status_code=\"500\"} 1",
                    "configmap_reload_requests_total{webhook=\"http://127.0.0.1:9090/-/reload\",status_code=\"200\"} 1",
                    "configmap_reload_success_reloads_total{webhook=\"http://127.0.0.1:9090/-/reload\"} 1",
                    "configmap_reload_request_errors_total{webhook=\"http://127.0.0.1:9090/-/reload\",reason=\"client_response\"} 1",
                    "configmap_reload_last_request_duration_seconds{webhook=\"http://127.0.0.1:9090/-/reload\"} 0.002",
                    "configmap_reload_watcher_errors_total 1",
                ],
            ),
            (
                MetricNames::PrometheusConfigReloader,
                &[
                    "reloader_reloads_total 2",
                    "reloader_reloads_failed_total 1",
                    "reloader_last_reload_successful 1",
                    "reloader_last_reload_success_timestamp_seconds 1700000000.5",
                    "reloader_config_apply_operations_total 2",
                    "reloader_config_apply_operations_failed_total 0",
                    "reloader_watches 2",
                    "reloader_watch_events_total 1",
                    "reloader_watch_errors_total 1",
                ],
            ),
        ];
        for (names, lines) in table {
            assert_shows(&shown(names), lines);
        }
    }
}
