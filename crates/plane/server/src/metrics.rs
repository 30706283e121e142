//! `/metrics`: counts and times in the text format of OpenMetrics.
//!
//! Where Kubernetes dashboards expect a name, this is it; the rest begins with `hotmap_`. Labels never hold names of
//! objects.

use std::{
    sync::atomic::{AtomicI64, AtomicU64},
    time::Duration,
};

use hotmap_object::Revision;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// The `Content-Type` of the answer.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds in seconds; the design's targets lie between them.
const DURATION_BUCKETS: [f64; 14] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0,
];

/// What a request was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Labels {
    pub(crate) verb: &'static str,
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) subresource: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CountLabels {
    verb: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    code: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    request_kind: &'static str,
}

/// Everything the front counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<CountLabels, Counter>,
    durations: Family<Labels, Histogram>,
    in_flight: Family<KindLabels, Gauge>,
    long_running: Gauge,
    panics: Counter,
    audit: AuditCounts,
    revision: Gauge<i64, AtomicI64>,
    process: ProcessMetrics,
}

impl Metrics {
    /// `registry` holds what others of this process count; it is shown beside what the server counts.
    pub(crate) fn new(mut registry: Registry) -> Self {
        let requests = Family::default();
        registry.register(
            "apiserver_request",
            "Answers by request and code",
            requests.clone(),
        );
        let durations: Family<Labels, Histogram> =
            Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS));
        let help = "Time to the head of the answer, watches and streams left out";
        registry.register_with_unit(
            "apiserver_request_duration",
            help,
            Unit::Seconds,
            durations.clone(),
        );
        let in_flight = Family::default();
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests being answered",
            in_flight.clone(),
        );
        let long_running = Gauge::default();
        registry.register(
            "apiserver_longrunning_requests",
            "Watches and streams open",
            long_running.clone(),
        );
        let panics = Counter::<u64, AtomicU64>::default();
        registry.register(
            "hotmap_request_panics",
            "Requests that ended in a panic",
            panics.clone(),
        );
        let audit = AuditCounts::default();
        audit.lost(0);
        registry.register(
            "apiserver_audit_event",
            "Audit records written",
            audit.written.clone(),
        );
        registry.register("apiserver_audit_error", "Audit records lost", audit.lost.clone());
        let revision = Gauge::<i64, AtomicI64>::default();
        registry.register(
            "hotmap_store_revision",
            "Newest revision of the store",
            revision.clone(),
        );
        Self {
            process: ProcessMetrics::new(registry),
            requests,
            durations,
            in_flight,
            long_running,
            panics,
            audit,
            revision,
        }
    }

    /// Counts one answer. `took` is left out for watches and streams.
    pub(crate) fn record(&self, labels: Labels, code: u16, took: Option<Duration>) {
        let Labels {
            verb,
            group,
            version,
            resource,
            subresource,
        } = labels;
        let counted = CountLabels {
            verb,
            group,
            version,
            resource,
            subresource,
            code: code.into(),
        };
        self.requests.get_or_create(&counted).inc();
        if let Some(took) = took {
            self.durations.get_or_create(&labels).observe(took.as_secs_f64());
        }
    }

    /// For the audit log to count with.
    pub(crate) fn audit(&self) -> AuditCounts {
        self.audit.clone()
    }

    pub(crate) fn record_panic(&self) {
        self.panics.inc();
    }

    /// Counts a request as being answered until the guard is dropped.
    pub(crate) fn answering(&self, mutates: bool) -> Counted {
        let request_kind = if mutates { "mutating" } else { "readOnly" };
        Counted::new(&self.in_flight.get_or_create(&KindLabels { request_kind }))
    }

    /// Counts a watch or a stream as open until the guard is dropped.
    pub(crate) fn long_running(&self) -> Counted {
        Counted::new(&self.long_running)
    }

    /// Counts a connection as open until the guard is dropped.
    pub(crate) fn connection(&self) -> Counted {
        self.process.connection()
    }

    /// The whole text; `revision` is the newest of the store.
    pub(crate) fn render(&self, revision: Revision) -> String {
        self.revision.set(i64::try_from(revision.0).unwrap_or(i64::MAX));
        self.process.render()
    }
}

/// What every process of ours that serves shows, beside what others put into its registry.
#[derive(Debug)]
pub(crate) struct ProcessMetrics {
    registry: Registry,
    connections: Gauge,
    resident: Gauge<i64, AtomicI64>,
}

impl ProcessMetrics {
    pub(crate) fn new(mut registry: Registry) -> Self {
        let connections = Gauge::default();
        registry.register("hotmap_connections", "TLS connections open", connections.clone());
        let resident = Gauge::<i64, AtomicI64>::default();
        let help = "Resident memory";
        registry.register_with_unit("process_resident_memory", help, Unit::Bytes, resident.clone());
        Self {
            registry,
            connections,
            resident,
        }
    }

    /// Counts a connection as open until the guard is dropped.
    pub(crate) fn connection(&self) -> Counted {
        Counted::new(&self.connections)
    }

    /// The whole text.
    pub(crate) fn render(&self) -> String {
        self.resident.set(resident_bytes().unwrap_or_default());
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    plugin: &'static str,
}

/// What became of audit records.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditCounts {
    written: Counter,
    lost: Family<PluginLabels, Counter>,
}

impl AuditCounts {
    pub(crate) fn written(&self, records: usize) {
        self.written.inc_by(records as u64);
    }

    pub(crate) fn lost(&self, records: usize) {
        self.lost
            .get_or_create(&PluginLabels { plugin: "log" })
            .inc_by(records as u64);
    }
}

/// A gauge that is one higher as long as this lives.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The second number of `/proc/self/statm` is resident pages; reading it costs microseconds and no disk.
fn resident_bytes() -> Option<i64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * i64::try_from(rustix::param::page_size()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_dashboards_ask_for() {
        let metrics = Metrics::new(Registry::default());
        let labels = Labels {
            verb: "GET",
            group: "",
            version: "v1",
            resource: "configmaps",
            subresource: "",
        };
        metrics.record(labels, 200, Some(Duration::from_millis(2)));
        let watch = metrics.long_running();
        let text = metrics.render(Revision(7));
        for line in [
            "apiserver_request_total{verb=\"GET\",group=\"\",version=\"v1\",resource=\"configmaps\",subresource=\"\",code=\"200\"} 1",
            "apiserver_request_duration_seconds_count{",
            "apiserver_longrunning_requests 1",
            "hotmap_store_revision 7",
            "process_resident_memory_bytes ",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        drop(watch);
        assert!(
            metrics
                .render(Revision(7))
                .contains("apiserver_longrunning_requests 0")
        );
    }
}
