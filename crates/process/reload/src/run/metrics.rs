//! What `run` counts of its program beside what every reloader counts.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::machine::NotRestarted;
use super::spawn::Ended;
use crate::shown::{Outcomes, SecondsGauge, Shown};

/// What the gauge of the last exit code shows as long as no program has ended; no exit code is below zero.
const NONE_HAS_ENDED: i64 = -1;

/// Counters of one program. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct ProgramMetrics(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    starts: Counter,
    start_failures: Counter,
    running: Gauge,
    exits: Family<ExitLabels, Counter>,
    last_exit_code: Gauge,
    crashes: Counter,
    backoff: SecondsGauge,
    restarts: Outcomes,
    never_accepted: Counter,
    orphans: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExitLabels {
    kind: &'static str,
}

impl ProgramMetrics {
    /// Counters that are part of what is shown.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let counts = Counts {
            starts: registry.shown("hotmap_run_starts", "Starts of the program"),
            start_failures: registry.shown(
                "hotmap_run_start_failures",
                "Starts that no process came of: no such program, no right, no memory",
            ),
            running: registry.shown(
                "hotmap_run_processes",
                "Processes of the program that run: 2 while a new one takes over, 0 while one waits to start",
            ),
            exits: registry.shown(
                "hotmap_run_exits",
                "Ends of the program: with exit code 0 (success), with another (failure), by a signal (signal)",
            ),
            last_exit_code: registry.shown(
                "hotmap_run_last_exit_code",
                "How the program has ended last, 128 and the number for a signal; -1 before the first end",
            ),
            crashes: registry.shown(
                "hotmap_run_crashes",
                "Ends of the program that nobody has asked for, exit code 0 excepted",
            ),
            backoff: registry.shown(
                "hotmap_run_backoff_seconds",
                "How long the next start waits because the program has ended by itself; 0 when none waits",
            ),
            restarts: Outcomes::register(
                registry,
                "hotmap_run_restarts",
                "Restarts for a change by outcome: done, and why not",
            ),
            never_accepted: registry.shown(
                "hotmap_run_accept_stalls",
                "How often the program has left connections of --listen waiting for 10 s after a start",
            ),
            orphans: registry.shown(
                "hotmap_run_orphans_reaped",
                "Ended processes that nobody else was there for to wait for",
            ),
        };
        counts.last_exit_code.set(NONE_HAS_ENDED);
        Self(Arc::new(counts))
    }

    pub(crate) fn started(&self) {
        self.0.starts.inc();
        self.0.running.inc();
        self.0.backoff.set(0.0);
    }

    pub(crate) fn not_started(&self, exit_code: u8) {
        self.0.start_failures.inc();
        self.0.last_exit_code.set(exit_code.into());
        self.0.backoff.set(0.0);
    }

    /// A process of the program has ended; `was_asked`: it was told to.
    pub(crate) fn ended(&self, ended: Ended, was_asked: bool) {
        let kind = match ended {
            Ended::Exited(0) => "success",
            Ended::Exited(_) => "failure",
            Ended::Signaled(_) => "signal",
        };
        self.0.running.dec();
        self.0.exits.get_or_create(&ExitLabels { kind }).inc();
        self.0.last_exit_code.set(ended.exit_code().into());
        if !was_asked && ended != Ended::Exited(0) {
            self.0.crashes.inc();
        }
    }

    /// The next start waits.
    pub(crate) fn backs_off(&self, pause: Duration) {
        self.0.backoff.set(pause.as_secs_f64());
    }

    /// A restart for a change is done, or not. `runs`: there is a new process.
    pub(crate) fn restarted(&self, failed: Option<NotRestarted>, runs: bool) {
        self.0.restarts.count(match failed {
            None if runs => "done",
            None => "not_started",
            Some(NotRestarted::EndedEarly(_)) => "ended_early",
            Some(NotRestarted::NotReady { .. }) => "not_ready",
            Some(NotRestarted::Overtaken) => "overtaken",
            Some(NotRestarted::Ending) => "ending",
        });
    }

    pub(crate) fn never_accepted(&self) {
        self.0.never_accepted.inc();
    }

    pub(crate) fn orphan_reaped(&self) {
        self.0.orphans.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::{assert_shows, text};

    #[test]
    fn what_is_counted_is_shown_under_its_name() {
        let mut registry = Registry::default();
        let metrics = ProgramMetrics::register(&mut registry);
        assert_shows(&text(&registry), &["hotmap_run_last_exit_code -1"]);
        metrics.started();
        metrics.ended(Ended::Exited(3), false);
        metrics.backs_off(Duration::from_millis(1_500));
        let waiting = ["hotmap_run_backoff_seconds 1.5", "hotmap_run_processes 0"];
        assert_shows(&text(&registry), &waiting);
        metrics.started();
        metrics.ended(Ended::Signaled(libc::SIGTERM), true);
        metrics.restarted(None, true);
        metrics.restarted(None, false);
        let within = Duration::ZERO;
        metrics.restarted(Some(NotRestarted::NotReady { within }), true);
        metrics.started();
        metrics.ended(Ended::Exited(0), false);
        metrics.not_started(127);
        metrics.started();
        metrics.never_accepted();
        metrics.orphan_reaped();
        let lines = [
            "hotmap_run_starts_total 4",
            "hotmap_run_start_failures_total 1",
            "hotmap_run_processes 1",
            "hotmap_run_exits_total{kind=\"success\"} 1",
            "hotmap_run_exits_total{kind=\"failure\"} 1",
            "hotmap_run_exits_total{kind=\"signal\"} 1",
            "hotmap_run_last_exit_code 127",
            "hotmap_run_crashes_total 1",
            "hotmap_run_backoff_seconds 0.0",
            "hotmap_run_restarts_total{outcome=\"done\"} 1",
            "hotmap_run_restarts_total{outcome=\"not_started\"} 1",
            "hotmap_run_restarts_total{outcome=\"not_ready\"} 1",
            "hotmap_run_accept_stalls_total 1",
            "hotmap_run_orphans_reaped_total 1",
        ];
        assert_shows(&text(&registry), &lines);
    }
}
