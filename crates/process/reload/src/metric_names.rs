//! The names that dashboards of other programs look for.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::Call;
use crate::shown::{SecondsGauge, Shown, set};
use crate::target::TargetKind;

/// Under whose names metrics are shown, beside our own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MetricNames {
    /// Ours alone.
    #[default]
    Hotmap,
    /// Also those of configmap-reload 0.14: `configmap_reload_…`.
    ConfigmapReload,
    /// Also those of prometheus-config-reloader 0.80, which are those of Thanos' reloader: `reloader_…`.
    PrometheusConfigReloader,
}

/// `configmap_reload_…`, as configmap-reload.go registers them.
pub(crate) struct ConfigmapReloadNames {
    last_error: Family<WebhookLabels, Gauge>,
    duration: Family<WebhookLabels, SecondsGauge>,
    successes: Family<WebhookLabels, Counter>,
    errors: Family<WebhookErrorLabels, Counter>,
    watcher_errors: Counter,
    requests: Family<RequestLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabels {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookErrorLabels {
    webhook: String,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    webhook: String,
    status_code: u16,
}

impl ConfigmapReloadNames {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let shown = registry.sub_registry_with_prefix("configmap_reload");
        Self {
            last_error: shown.shown(
                "last_reload_error",
                "Whether the last call of the webhook failed: 1 if so",
            ),
            duration: shown.shown(
                "last_request_duration_seconds",
                "Time that the last successful call of the webhook took",
            ),
            successes: shown.shown("success_reloads", "Successful calls of the webhook"),
            errors: shown.shown("request_errors", "Failed calls of the webhook by reason"),
            watcher_errors: shown.shown("watcher_errors", "How often a watch has failed"),
            requests: shown.shown("requests", "Answers of the webhook by status"),
        }
    }

    pub(crate) fn called(&self, call: Call<'_>) {
        if call.target != TargetKind::Webhook {
            return;
        }
        // There the label is the address alone; a target's name has the method before it.
        let address = call.name.rsplit(' ').next().unwrap_or(call.name);
        let webhook = WebhookLabels {
            webhook: address.to_owned(),
        };
        if let Some(status_code) = call.status {
            let webhook = webhook.webhook.clone();
            self.requests
                .get_or_create(&RequestLabels { webhook, status_code })
                .inc();
        }
        self.last_error
            .get_or_create(&webhook)
            .set(i64::from(call.error.is_some()));
        if call.error.is_some() {
            let reason = if call.status.is_some() {
                "client_response"
            } else {
                "client_request_do"
            };
            self.errors
                .get_or_create(&WebhookErrorLabels {
                    webhook: webhook.webhook,
                    reason,
                })
                .inc();
        } else {
            self.duration.get_or_create(&webhook).set(rounded(call.elapsed));
            self.successes.get_or_create(&webhook).inc();
        }
    }

    pub(crate) fn watch_failed(&self) {
        self.watcher_errors.inc();
    }
}

/// `reloader_…`, as pkg/reloader/reloader.go of Thanos registers them.
pub(crate) struct PrometheusConfigReloaderNames {
    reloads: Counter,
    reload_errors: Counter,
    last_successful: Gauge,
    last_success: SecondsGauge,
    applies: Counter,
    apply_errors: Counter,
    watches: Gauge,
    watch_events: Counter,
    watch_errors: Counter,
}

impl PrometheusConfigReloaderNames {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let shown = registry.sub_registry_with_prefix("reloader");
        Self {
            reloads: shown.shown("reloads", "Calls that asked for a reload"),
            reload_errors: shown.shown("reloads_failed", "Calls that asked for a reload and failed"),
            last_successful: shown.shown(
                "last_reload_successful",
                "Whether the last reload succeeded: 1 if so",
            ),
            last_success: shown.shown(
                "last_reload_success_timestamp_seconds",
                "When a reload succeeded last, in seconds since 1970",
            ),
            applies: shown.shown(
                "config_apply_operations",
                "Changes that were brought on their way",
            ),
            apply_errors: shown.shown(
                "config_apply_operations_failed",
                "Changes that were held back or could not be rendered",
            ),
            watches: shown.shown("watches", "Watched paths"),
            watch_events: shown.shown("watch_events", "Changes that were seen"),
            watch_errors: shown.shown("watch_errors", "How often a watch has failed"),
        }
    }

    pub(crate) fn called(&self, call: Call<'_>) {
        if call.target == TargetKind::Render {
            return;
        }
        self.reloads.inc();
        if call.error.is_some() {
            self.reload_errors.inc();
            self.last_successful.set(0);
        }
    }

    pub(crate) fn ended(&self, outcome: &'static str, unix_seconds: f64) {
        self.applies.inc();
        match outcome {
            "loaded" => {
                self.last_successful.set(1);
                self.last_success.set(unix_seconds);
            }
            "held_back" => {
                self.apply_errors.inc();
                self.last_successful.set(0);
            }
            _ => {}
        }
    }

    pub(crate) fn seen(&self) {
        self.watch_events.inc();
    }

    pub(crate) fn watched(&self, paths: usize) {
        set(&self.watches, paths);
    }

    pub(crate) fn watch_failed(&self) {
        self.watch_errors.inc();
    }
}

/// Seconds without the digits below a microsecond, which only clutter a page.
fn rounded(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e6
}
