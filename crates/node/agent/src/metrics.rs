//! What the node counts, for whoever serves `/metrics`.
//!
//! Labels never hold names of objects or pods: their number is bounded by this file.

use std::{sync::Arc, time::Duration};

use hotmap_client::{FollowObserver, WatchEnd};
use hotmap_runtime::NetworkTrouble;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds in seconds, from a bare rename to a kubelet's worst case.
const DELIVERY_BUCKETS: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0, 30.0,
    90.0,
];

/// Everything one node counts. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    propagation: Histogram,
    projection: Histogram,
    writes: Family<OutcomeLabels, Counter>,
    failures: Family<ReasonLabels, Counter>,
    swaps: Family<OutcomeLabels, Counter>,
    swap_time: Histogram,
    volumes: Gauge,
    pods: Gauge,
    followed: Gauge,
    repairs: Counter,
    mended: Counter,
    streams: Gauge,
    reconnects: Family<ReasonLabels, Counter>,
    reports: Family<OutcomeLabels, Counter>,
    socket_messages: Family<OutcomeLabels, Counter>,
    network_troubles: Family<ReasonLabels, Gauge>,
    unenforced: Family<ControllerLabels, Gauge>,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            propagation: Histogram::new(DELIVERY_BUCKETS),
            projection: Histogram::new(DELIVERY_BUCKETS),
            writes: Family::default(),
            failures: Family::default(),
            swaps: Family::default(),
            swap_time: Histogram::new(DELIVERY_BUCKETS),
            volumes: Gauge::default(),
            pods: Gauge::default(),
            followed: Gauge::default(),
            repairs: Counter::default(),
            mended: Counter::default(),
            streams: Gauge::default(),
            reconnects: Family::default(),
            reports: Family::default(),
            socket_messages: Family::default(),
            network_troubles: Family::default(),
            unenforced: Family::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// What came of looking at one volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Readers see a new revision.
    Swapped,
    /// There was nothing to do.
    Unchanged,
    /// The last content stands.
    Failed(FailureReason),
}

/// Why a volume is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureReason {
    /// An object or one of its keys is not there.
    Missing,
    /// The API has not said yet what is there.
    Unheard,
    /// The payload breaks a rule of volumes.
    Payload,
    /// The file system refused.
    Write,
}

/// What came of bringing one live subPath mount up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwapOutcome {
    /// The container sees the new content, that long after its volume did.
    Swapped(Duration),
    /// It saw it already.
    Unchanged,
    /// It will be tried again.
    Failed,
    /// It is of no use to try again.
    Unavailable,
}

impl FailureReason {
    const ALL: [Self; 4] = [Self::Missing, Self::Unheard, Self::Payload, Self::Write];

    fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unheard => "unheard",
            Self::Payload => "payload",
            Self::Write => "write",
        }
    }
}

impl Counts {
    /// Shows what has never happened as zero: a rate that begins with the first failure would miss that one.
    fn begin_at_zero(&self) {
        for outcome in ["swapped", "unchanged", "failed"] {
            self.writes.get_or_create(&OutcomeLabels { outcome }).inc_by(0);
        }
        for outcome in ["swapped", "unchanged", "failed", "unavailable"] {
            self.swaps.get_or_create(&OutcomeLabels { outcome }).inc_by(0);
        }
        for outcome in ["written", "failed"] {
            self.reports.get_or_create(&OutcomeLabels { outcome }).inc_by(0);
        }
        for outcome in ["accepted", "refused"] {
            self.socket_messages
                .get_or_create(&OutcomeLabels { outcome })
                .inc_by(0);
        }
        for reason in NetworkTrouble::REASONS {
            self.network_troubles
                .get_or_create(&ReasonLabels { reason })
                .set(0);
        }
        for reason in FailureReason::ALL.map(FailureReason::as_str) {
            self.failures.get_or_create(&ReasonLabels { reason }).inc_by(0);
        }
        for reason in WatchEnd::REOPENED.map(WatchEnd::as_str) {
            self.reconnects.get_or_create(&ReasonLabels { reason }).inc_by(0);
        }
    }
}

impl Metrics {
    /// Puts everything under the names that `/metrics` shows.
    pub fn register(&self, registry: &mut Registry) {
        let counts = &*self.0;
        counts.begin_at_zero();
        let help =
            "From the commit of a change to its content in a volume, where the API tells when it committed";
        registry.register_with_unit(
            "hotmap_propagation",
            help,
            Unit::Seconds,
            counts.propagation.clone(),
        );
        let help = "From hearing of a change to its content in a volume";
        registry.register_with_unit(
            "hotmap_projection",
            help,
            Unit::Seconds,
            counts.projection.clone(),
        );
        registry.register(
            "hotmap_volume_writes",
            "Looks at a volume, by what came of them",
            counts.writes.clone(),
        );
        let help = "Failed attempts to bring a volume up to date, by why";
        registry.register("hotmap_volume_failures", help, counts.failures.clone());
        let help = "Looks at a live subPath mount, by what came of them";
        registry.register("hotmap_live_subpath_swaps", help, counts.swaps.clone());
        let help = "From new content in a volume to the same content at a live subPath mount of it";
        registry.register_with_unit(
            "hotmap_live_subpath_swap",
            help,
            Unit::Seconds,
            counts.swap_time.clone(),
        );
        registry.register(
            "hotmap_volumes",
            "Config volumes kept up to date",
            counts.volumes.clone(),
        );
        registry.register(
            "hotmap_pods",
            "Pods that the node attends to",
            counts.pods.clone(),
        );
        let help = "ConfigMaps and Secrets that pods of the node refer to";
        registry.register("hotmap_followed_objects", help, counts.followed.clone());
        let help =
            "Changes of objects that only the periodic comparison with the API found; each one is a defect";
        registry.register("hotmap_resync_repairs", help, counts.repairs.clone());
        let help = "Volumes whose files somebody changed, found and mended by the periodic comparison";
        registry.register("hotmap_volume_repairs", help, counts.mended.clone());
        registry.register(
            "hotmap_watch_streams",
            "Watches of the node that are open",
            counts.streams.clone(),
        );
        let help = "Watches of the node that ended and are opened again, by why";
        registry.register("hotmap_watch_reconnects", help, counts.reconnects.clone());
        let help = "Writes of the node's DeliveryReport, by what came of them";
        registry.register("hotmap_delivery_reports", help, counts.reports.clone());
        let help = "What programs of pods said on the agent's socket, by whether it was noted";
        registry.register(
            "hotmap_agent_socket_messages",
            help,
            counts.socket_messages.clone(),
        );
        let help = "Whether something on this host keeps pods from reaching what they might, by what it is";
        registry.register(
            "hotmap_pod_network_troubles",
            help,
            counts.network_troubles.clone(),
        );
        let help = "Whether limits that need this are not in force on the node, 0 or 1";
        registry.register("hotmap_limits_not_enforced", help, counts.unenforced.clone());
    }

    /// What keeps pods from reaching what they might.
    pub(crate) fn set_network_troubles(&self, troubles: &[NetworkTrouble]) {
        for reason in NetworkTrouble::REASONS {
            let holds = troubles.iter().any(|trouble| trouble.reason() == reason);
            let gauge = self.0.network_troubles.get_or_create(&ReasonLabels { reason });
            gauge.set(i64::from(holds));
        }
    }

    /// A change that was heard of `heard` ago, and committed `committed` ago, became visible in one volume.
    pub(crate) fn visible(&self, heard: Duration, committed: Option<Duration>) {
        self.0.projection.observe(heard.as_secs_f64());
        if let Some(committed) = committed {
            self.0.propagation.observe(committed.as_secs_f64());
        }
    }

    pub(crate) fn written(&self, outcome: WriteOutcome) {
        let name = match outcome {
            WriteOutcome::Swapped => "swapped",
            WriteOutcome::Unchanged => "unchanged",
            WriteOutcome::Failed(reason) => {
                let reason = reason.as_str();
                self.0.failures.get_or_create(&ReasonLabels { reason }).inc();
                "failed"
            }
        };
        self.0
            .writes
            .get_or_create(&OutcomeLabels { outcome: name })
            .inc();
    }

    /// A change was found that no watch has told of.
    pub(crate) fn repaired(&self) {
        self.0.repairs.inc();
    }

    /// Files of a volume were not as they were written.
    pub(crate) fn mended(&self) {
        self.0.mended.inc();
    }

    pub(crate) fn swapped(&self, outcome: SwapOutcome) {
        let name = match outcome {
            SwapOutcome::Swapped(elapsed) => {
                self.0.swap_time.observe(elapsed.as_secs_f64());
                "swapped"
            }
            SwapOutcome::Unchanged => "unchanged",
            SwapOutcome::Failed => "failed",
            SwapOutcome::Unavailable => "unavailable",
        };
        self.0.swaps.get_or_create(&OutcomeLabels { outcome: name }).inc();
    }

    /// The API took the node's report, or did not.
    pub(crate) fn reported(&self, is_written: bool) {
        let outcome = if is_written { "written" } else { "failed" };
        self.0.reports.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    /// A line on a pod's socket was noted, or refused.
    pub(crate) fn socket_message(&self, is_accepted: bool) {
        let outcome = if is_accepted { "accepted" } else { "refused" };
        self.0
            .socket_messages
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
    }

    /// What the machine does not give for limits; the rest it does.
    pub(crate) fn set_unenforced(&self, missing: impl Iterator<Item = &'static str> + Clone) {
        for controller in ["cpu", "memory", "pids", "oom_score_adj"] {
            let is_missing = missing.clone().any(|one| one == controller);
            let gauge = self.0.unenforced.get_or_create(&ControllerLabels { controller });
            gauge.set(is_missing.into());
        }
    }

    pub(crate) fn set_volumes(&self, number: usize) {
        self.0.volumes.set(gauge(number));
    }

    pub(crate) fn set_pods(&self, number: usize) {
        self.0.pods.set(gauge(number));
    }

    pub(crate) fn set_followed_objects(&self, number: usize) {
        self.0.followed.set(gauge(number));
    }
}

impl FollowObserver for Metrics {
    fn opened(&self) {
        self.0.streams.inc();
    }

    fn ended(&self, end: WatchEnd) {
        self.0.streams.dec();
        if end != WatchEnd::LetGo {
            let reason = end.as_str();
            self.0.reconnects.get_or_create(&ReasonLabels { reason }).inc();
        }
    }
}

fn gauge(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown_under_its_name() {
        let mut registry = Registry::default();
        let metrics = Metrics::default();
        metrics.register(&mut registry);
        metrics.visible(Duration::from_millis(2), Some(Duration::from_millis(3)));
        metrics.visible(Duration::from_millis(2), None);
        metrics.written(WriteOutcome::Swapped);
        metrics.written(WriteOutcome::Failed(FailureReason::Missing));
        metrics.swapped(SwapOutcome::Swapped(Duration::from_micros(300)));
        metrics.swapped(SwapOutcome::Unavailable);
        metrics.reported(true);
        metrics.socket_message(false);
        metrics.set_network_troubles(&[NetworkTrouble::NoForwarding]);
        metrics.set_volumes(3);
        metrics.set_unenforced(["memory"].into_iter());
        metrics.opened();
        metrics.opened();
        metrics.ended(WatchEnd::Silent);
        metrics.opened();
        metrics.ended(WatchEnd::LetGo);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string takes it");
        for line in [
            "hotmap_propagation_seconds_count 1",
            "hotmap_projection_seconds_count 2",
            "hotmap_projection_seconds_bucket{le=\"0.0025\"} 2",
            "hotmap_volume_writes_total{outcome=\"swapped\"} 1",
            "hotmap_volume_writes_total{outcome=\"failed\"} 1",
            "hotmap_volume_failures_total{reason=\"missing\"} 1",
            "hotmap_live_subpath_swaps_total{outcome=\"swapped\"} 1",
            "hotmap_live_subpath_swaps_total{outcome=\"unavailable\"} 1",
            "hotmap_live_subpath_swap_seconds_bucket{le=\"0.0005\"} 1",
            "hotmap_volumes 3",
            "hotmap_limits_not_enforced{controller=\"memory\"} 1",
            "hotmap_limits_not_enforced{controller=\"pids\"} 0",
            "hotmap_watch_streams 1",
            "hotmap_watch_reconnects_total{reason=\"silent\"} 1",
            "hotmap_resync_repairs_total 0",
            "hotmap_delivery_reports_total{outcome=\"written\"} 1",
            "hotmap_delivery_reports_total{outcome=\"failed\"} 0",
            "hotmap_agent_socket_messages_total{outcome=\"accepted\"} 0",
            "hotmap_agent_socket_messages_total{outcome=\"refused\"} 1",
            "hotmap_pod_network_troubles{reason=\"forwarding\"} 1",
            "hotmap_pod_network_troubles{reason=\"shared\"} 0",
        ] {
            assert!(
                text.lines().any(|shown| shown == line),
                "{line} is not in\n{text}"
            );
        }
    }
}
