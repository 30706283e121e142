//! Probes of running containers: asked on time, counted, and told to the pod's worker.
//!
//! Thresholds and texts follow `pkg/kubelet/prober`, Kubernetes 1.36.

mod ask;
mod grpc;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use hotmap_runtime::Runtime;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{task::AbortHandle, time::Instant};

pub(crate) use ask::Outcome;

use crate::{
    events::{Recorder, Subject},
    nudge::Nudge,
    pod::{Container, Pod, Probe},
};

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Startup,
    Readiness,
    Liveness,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// What the probes of one container have found so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// There is no startup probe, or it has succeeded: the other probes are asked.
    pub(crate) is_started: bool,
    /// The readiness probe has succeeded often enough in a row.
    pub(crate) is_ready: bool,
    /// The liveness probe, or the startup probe before it, has failed often enough in a row.
    pub(crate) is_dead: bool,
}

/// One attempt of a container, as far as its probes care.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) started_at: Timestamp,
    /// Its startup probe had succeeded when somebody last looked: it is not asked again.
    pub(crate) was_started: bool,
    /// It was ready when somebody last looked: a node that starts anew does not take that back before a probe fails.
    pub(crate) was_ready: bool,
}

/// The probes of one pod. Dropping it ends them.
pub(crate) struct Probes {
    runtime: Runtime,
    recorder: Recorder,
    /// Wakes the pod's worker after a change.
    nudge: Arc<Nudge>,
    findings: Arc<Mutex<BTreeMap<String, Findings>>>,
    running: BTreeMap<String, Asked>,
}

struct Asked {
    attempt: u32,
    /// Only the startup probe is asked yet.
    is_starting: bool,
    tasks: Vec<(Purpose, AbortHandle)>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.tasks.iter().for_each(|(_, task)| task.abort());
    }
}

impl Probes {
    pub(crate) fn new(runtime: Runtime, recorder: Recorder, nudge: Arc<Nudge>) -> Self {
        Self {
            runtime,
            recorder,
            nudge,
            findings: Arc::default(),
            running: BTreeMap::new(),
        }
    }

    /// Probes this attempt of the container, if it is not probed already: first whether it has started up, and once it has,
    /// everything else.
    pub(crate) fn begin(&mut self, pod: &Arc<Pod>, container: &Container, attempt: Attempt, pod_ip: &str) {
        let is_started = match self.running.get(&container.name) {
            Some(asked) if asked.attempt == attempt.number => {
                if !asked.is_starting || !self.findings(&container.name).is_started {
                    return;
                }
                true
            }
            _ => container.startup_probe.is_none() || attempt.was_started,
        };
        self.end(&container.name);
        let probes = if is_started {
            vec![
                (Purpose::Readiness, &container.readiness_probe),
                (Purpose::Liveness, &container.liveness_probe),
            ]
        } else {
            vec![(Purpose::Startup, &container.startup_probe)]
        };
        // Before the first answer can come.
        let findings = Findings {
            is_started,
            is_ready: is_started && (container.readiness_probe.is_none() || attempt.was_ready),
            is_dead: false,
        };
        self.findings.lock().insert(container.name.clone(), findings);
        let tasks = probes
            .into_iter()
            .filter_map(|(purpose, probe)| Some((purpose, probe.as_ref()?)));
        let tasks = tasks.map(|(purpose, probe)| {
            let series = Series {
                runtime: self.runtime.clone(),
                recorder: self.recorder.clone(),
                nudge: Arc::clone(&self.nudge),
                findings: Arc::clone(&self.findings),
                pod: Arc::clone(pod),
                container: container.clone(),
                pod_ip: pod_ip.to_owned(),
                purpose,
                started_at: attempt.started_at,
                probe: probe.clone(),
            };
            (purpose, tokio::spawn(series.run()).abort_handle())
        });
        let asked = Asked {
            attempt: attempt.number,
            is_starting: !is_started,
            tasks: tasks.collect(),
        };
        self.running.insert(container.name.clone(), asked);
    }

    /// Ends the probes of a container that no longer runs.
    pub(crate) fn end(&mut self, container: &str) {
        self.running.remove(container);
        self.findings.lock().remove(container);
    }

    /// Asks no more whether a container is alive, or starts up: it is being stopped.
    pub(crate) fn end_liveness(&mut self, container: &str) {
        if let Some(asked) = self.running.get_mut(container) {
            asked.tasks.retain(|(purpose, task)| {
                let stays = *purpose == Purpose::Readiness;
                if !stays {
                    task.abort();
                }
                stays
            });
        }
    }

    /// What is known about a container; nothing while it is not probed.
    pub(crate) fn findings(&self, container: &str) -> Findings {
        self.findings.lock().get(container).copied().unwrap_or_default()
    }
}

/// One probe of one container.
struct Series {
    runtime: Runtime,
    recorder: Recorder,
    nudge: Arc<Nudge>,
    findings: Arc<Mutex<BTreeMap<String, Findings>>>,
    pod: Arc<Pod>,
    container: Container,
    pod_ip: String,
    started_at: Timestamp,
    purpose: Purpose,
    probe: Probe,
}

impl Series {
    async fn run(self) {
        let period = Duration::from_secs(self.probe.period_seconds.max(1));
        let mut next = Instant::now() + first_delay(&self.probe, self.started_at, Timestamp::now());
        let mut streak = Streak::default();
        loop {
            tokio::time::sleep_until(next).await;
            let asked = ask::ask(
                &self.runtime,
                &self.pod,
                &self.container,
                &self.pod_ip,
                &self.probe,
            );
            // On the heap while it lasts: between two of them a series is small.
            let outcome = Box::pin(asked).await;
            if let Outcome::Failure(output) = &outcome {
                let subject = Subject::container(&self.pod, &self.container.name);
                self.recorder.warning(
                    subject,
                    "Unhealthy",
                    format!("{} probe failed: {output}", self.purpose.name()),
                );
            }
            if let Some(verdict) = streak.add(outcome == Outcome::Success, &self.probe) {
                self.conclude(verdict);
            }
            next = (next + period).max(Instant::now());
        }
    }

    fn conclude(&self, verdict: bool) {
        let mut findings = self.findings.lock();
        let Some(held) = findings.get_mut(&self.container.name) else {
            return;
        };
        let before = *held;
        match self.purpose {
            Purpose::Startup if verdict => held.is_started = true,
            Purpose::Startup => held.is_dead = true,
            Purpose::Readiness => held.is_ready = verdict,
            Purpose::Liveness => held.is_dead = !verdict,
        }
        if *held != before {
            self.nudge.wake();
        }
    }
}

/// The initial delay counts from the container's start, which may lie before ours.
fn first_delay(probe: &Probe, started_at: Timestamp, now: Timestamp) -> Duration {
    let ran = Duration::try_from(now.duration_since(started_at)).unwrap_or_default();
    Duration::from_secs(probe.initial_delay_seconds).saturating_sub(ran)
}

/// Equal outcomes in a row.
#[derive(Debug, Default)]
struct Streak {
    last: Option<bool>,
    length: u32,
}

impl Streak {
    /// Adds an outcome; says the verdict once enough of the same have come in a row.
    fn add(&mut self, success: bool, probe: &Probe) -> Option<bool> {
        if self.last != Some(success) {
            *self = Self {
                last: Some(success),
                length: 0,
            };
        }
        self.length = self.length.saturating_add(1);
        let threshold = if success {
            probe.success_threshold
        } else {
            probe.failure_threshold
        };
        (self.length >= threshold.max(1)).then_some(success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_count_equal_outcomes_in_a_row() {
        let probe = Probe {
            success_threshold: 2,
            failure_threshold: 3,
            ..Probe::default()
        };
        let mut streak = Streak::default();
        let verdicts: Vec<Option<bool>> = [true, true, false, false, true, false, false, false, false]
            .map(|outcome| streak.add(outcome, &probe))
            .into();
        let expected = [
            None,
            Some(true),
            None,
            None,
            None,
            None,
            None,
            Some(false),
            Some(false),
        ];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn the_initial_delay_is_the_containers_not_the_nodes() {
        let probe = Probe {
            initial_delay_seconds: 10,
            ..Probe::default()
        };
        let at = |second| Timestamp::from_second(second).expect("in range");
        for (started, now, delay) in [(100, 100, 10), (100, 104, 6), (100, 500, 0), (100, 90, 10)] {
            let found = first_delay(&probe, at(started), at(now)).as_secs();
            assert_eq!(found, delay, "{started} {now}");
        }
    }
}
