//! The names that dashboards of other programs look for.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::metrics::{Call, SecondsGauge};
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
#[derive(Default)]
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
        let names = Self::default();
        let registry = registry.sub_registry_with_prefix("configmap_reload");
        let error = "Whether the last call of the webhook failed: 1 if so";
        registry.register("last_reload_error", error, names.last_error.clone());
        let duration = "Time that the last successful call of the webhook took";
        registry.register("last_request_duration_seconds", duration, names.duration.clone());
        registry.register(
            "success_reloads",
            "Successful calls of the webhook",
            names.successes.clone(),
        );
        registry.register(
            "request_errors",
            "Failed calls of the webhook by reason",
            names.errors.clone(),
        );
        registry.register(
            "watcher_errors",
            "How often a watch has failed",
            names.watcher_errors.clone(),
        );
        registry.register(
            "requests",
            "Answers of the webhook by status",
            names.requests.clone(),
        );
        names
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
#[derive(Default)]
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
        let names = Self::default();
        let registry = registry.sub_registry_with_prefix("reloader");
        registry.register("reloads", "Calls that asked for a reload", names.reloads.clone());
        registry.register(
            "reloads_failed",
            "Calls that asked for a reload and failed",
            names.reload_errors.clone(),
        );
        let successful = "Whether the last reload succeeded: 1 if so";
        registry.register(
            "last_reload_successful",
            successful,
            names.last_successful.clone(),
        );
        let when = "When a reload succeeded last, in seconds since 1970";
        registry.register(
            "last_reload_success_timestamp_seconds",
            when,
            names.last_success.clone(),
        );
        registry.register(
            "config_apply_operations",
            "Changes that were brought on their way",
            names.applies.clone(),
        );
        let errors = "Changes that were held back or could not be rendered";
        registry.register(
            "config_apply_operations_failed",
            errors,
            names.apply_errors.clone(),
        );
        registry.register("watches", "Watched paths", names.watches.clone());
        registry.register(
            "watch_events",
            "Changes that were seen",
            names.watch_events.clone(),
        );
        registry.register(
            "watch_errors",
            "How often a watch has failed",
            names.watch_errors.clone(),
        );
        names
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

    pub(crate) fn watched(&self, paths: i64) {
        self.watches.set(paths);
    }

    pub(crate) fn watch_failed(&self) {
        self.watch_errors.inc();
    }
}

/// Seconds without the digits below a microsecond, which only clutter a page.
fn rounded(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e6
}
