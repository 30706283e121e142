//! `/metrics`: what the reloader counts, and what is counted here.

use std::sync::Arc;

use hyper::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::answer::{Answer, whole};
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::shown::{Outcomes, Shown};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The last line of a text in the format of OpenMetrics.
const END: &str = "# EOF\n";

/// Counts of the endpoint and of reports, shown behind those of the reloader. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct EndpointMetrics(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    reloader: Metrics,
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    connections: Gauge,
    refused: Counter,
    cut_off: Counter,
    acknowledgements: Outcomes,
    reports: Family<ReportLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    path: &'static str,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReportLabels {
    to: &'static str,
    outcome: &'static str,
}

/// Who is reported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiver {
    Agent,
    Url,
}

/// What came of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reported {
    Taken,
    /// An answer, and not the one that was hoped for.
    Refused,
    /// No answer.
    Unreachable,
}

impl EndpointMetrics {
    pub(crate) fn new(reloader: Metrics) -> Self {
        let mut registry = Registry::default();
        let shown = &mut registry;
        let counts = Counts {
            requests: shown.shown("hotmap_endpoint_requests", "Requests to the local endpoint"),
            connections: shown.shown("hotmap_endpoint_connections", "Open connections"),
            refused: shown.shown(
                "hotmap_endpoint_connections_refused",
                "Connections that were closed at once because there are too many",
            ),
            cut_off: shown.shown(
                "hotmap_endpoint_connections_cut_off",
                "Connections that were ended because the client took nothing, or was too far behind",
            ),
            acknowledgements: Outcomes::register(
                shown,
                "hotmap_endpoint_acknowledgements",
                "What programs said of a revision: loaded, or refused",
            ),
            reports: shown.shown(
                "hotmap_reports",
                "Reports of what is loaded, by receiver and what came of them",
            ),
            reloader,
            registry,
        };
        Self(Arc::new(counts))
    }

    /// The answer to a scrape.
    pub(crate) fn answer(&self, progress: &Progress) -> Answer {
        whole(OPEN_METRICS, self.text(progress))
    }

    /// The text of `/metrics`; what is loaded is what programs say it is.
    pub(crate) fn text(&self, progress: &Progress) -> String {
        let paths: Vec<_> = progress
            .volumes
            .iter()
            .filter_map(|volume| Some((volume.path.display().to_string(), volume.loaded.as_ref()?)))
            .collect();
        self.0
            .reloader
            .loaded(paths.iter().map(|(path, revision)| (path.as_str(), *revision)));
        let mut text = self.0.reloader.encode();
        text.truncate(text.strip_suffix(END).map_or(text.len(), str::len));
        encode(&mut text, &self.0.registry).expect("a string takes it");
        text
    }

    pub(crate) fn answered(&self, path: &'static str, status: StatusCode) {
        self.0
            .requests
            .get_or_create(&RequestLabels {
                path,
                code: status.as_u16(),
            })
            .inc();
    }

    pub(crate) fn connected(&self) {
        self.0.connections.inc();
    }

    pub(crate) fn disconnected(&self) {
        self.0.connections.dec();
    }

    pub(crate) fn refused(&self) {
        self.0.refused.inc();
    }

    pub(crate) fn cut_off(&self) {
        self.0.cut_off.inc();
    }

    pub(crate) fn acknowledged(&self, is_ok: bool) {
        let outcome = if is_ok { "loaded" } else { "refused" };
        self.0.acknowledgements.count(outcome);
    }

    pub(crate) fn reported(&self, to: Receiver, reported: Reported) {
        let to = match to {
            Receiver::Agent => "agent",
            Receiver::Url => "url",
        };
        let outcome = match reported {
            Reported::Taken => "ok",
            Reported::Refused => "refused",
            Reported::Unreachable => "unreachable",
        };
        self.0.reports.get_or_create(&ReportLabels { to, outcome }).inc();
    }
}
