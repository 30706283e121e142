//! What to do next with a pod: decided from what is, never from which event came.
//!
//! ```text
//!   sandbox ─▶ volumes ─▶ init containers, one after the other ─▶ containers, but for hooks at once ─▶ restarts by policy
//!      └────────────────── deletion: stop within the grace period, then take everything down ──────────────┘
//! ```
//!
//! An init container with `restartPolicy: Always` is a sidecar: it has its place among the others, which wait until it has
//! started up and not until it ends, and it goes after the main containers, the last one first.
//!
//! An ephemeral container starts as soon as it is there, once, beside whatever else happens, and nobody waits for it.
//!
//! Order and policies follow `pkg/kubelet/kuberuntime` (`computePodActions`, `computeInitContainerActions`,
//! `terminationOrdering`), Kubernetes 1.36. No clock, no I/O.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    backoff::BACK_OFF_MAX,
    pod::{Container, Pod, RestartPolicy},
    records::{ContainerRecord, Records},
};

/// Grace period of a pod that names none, seconds (`pkg/apis/core/v1/defaults.go`).
pub(crate) const GRACE_DEFAULT_SECONDS: i64 = 30;
const SECOND: Duration = Duration::from_secs(1);

/// What is true of the pod outside its containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ground {
    /// Its namespaces and network stand.
    pub(crate) has_sandbox: bool,
    /// Every volume that a container mounts has been projected once.
    pub(crate) has_volumes: bool,
    /// The pod is no longer in the API at all.
    pub(crate) is_orphan: bool,
    /// Something of it is left in the runtime: a sandbox, ready or not.
    pub(crate) has_remains: bool,
    /// The API has the status as it is now.
    pub(crate) is_told: bool,
    /// The node has ended the pod: what runs is stopped, and nothing starts any more.
    pub(crate) has_failed: bool,
    /// What the containers have left then, if that is less than their pod gives them.
    pub(crate) failure_grace: Option<Duration>,
    /// Sandboxes failed: the next one is due then.
    pub(crate) sandbox_not_before: Option<Timestamp>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    MakeSandbox,
    Start {
        container: String,
        attempt: u32,
    },
    /// Says in the container's status how long it has to wait.
    BackOff {
        container: String,
        wait: Duration,
    },
    Stop {
        container: String,
        grace: Duration,
        /// Whoever goes before it has gone. Until then it has its preStop hook and no signal.
        is_due: bool,
    },
    /// Every container is down for good.
    StopSandbox,
    /// The API knows how it ended: sandbox and volumes go, status and logs stay for people to look at.
    Retire,
    /// Nothing of the pod may stay on this node.
    TakeDown,
}

/// Steps for now, and when to look again if nothing happens before.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Decision {
    pub(crate) steps: Vec<Step>,
    pub(crate) look_again: Option<Timestamp>,
}

/// Decides. The same worlds always give the same steps.
pub(crate) fn decide(pod: &Pod, records: &Records, ground: Ground, now: Timestamp) -> Decision {
    if pod.is_deleting() || ground.is_orphan {
        let stops = stop_running(pod, records, grace_left(pod, now));
        return stops.unwrap_or_else(|| only(Step::TakeDown));
    }
    match progress(pod, records, ground.has_failed) {
        Progress::Finished { .. } if ground.has_sandbox => {
            // Unless the node ended it, sidecars are what may still run: they do not keep a pod from its end.
            let grace = ground.failure_grace.unwrap_or_else(|| pod.grace_period());
            let stops = stop_running(pod, records, grace);
            stops.unwrap_or_else(|| only(Step::StopSandbox))
        }
        Progress::Finished { .. } if ground.has_remains && ground.is_told => only(Step::Retire),
        Progress::Finished { .. } => Decision::default(),
        _ if !ground.has_sandbox => match ground.sandbox_not_before.filter(|due| still_waits(*due, now)) {
            Some(due) => Decision::look_again_at(due),
            None => only(Step::MakeSandbox),
        },
        _ if !ground.has_volumes => Decision::default(),
        Progress::Init { index } => {
            let (next, before) = (
                &pod.spec.init_containers[index],
                &pod.spec.init_containers[..index],
            );
            let lasting = before.iter().filter(|one| one.is_lasting());
            let mut decision = start_in_order(pod, lasting.chain([next]), records, now);
            decision.join(start_ephemeral(pod, records, now));
            decision
        }
        Progress::Main => {
            let mut decision = start_in_order(pod, pod.lasting_containers(), records, now);
            decision.join(start_ephemeral(pod, records, now));
            decision
        }
    }
}

/// Starts the ephemeral containers that never were, in whatever sandbox: one that has ended, or could not be executed, stays so.
fn start_ephemeral(pod: &Pod, records: &Records, now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    for container in &pod.spec.ephemeral_containers {
        let has_begun = |record: &ContainerRecord| record.attempt.is_some();
        if !records.get(&container.name).is_some_and(has_begun) {
            decision.join(start_or_wait(pod, container, records, now));
        }
    }
    decision
}

/// Starts what does not run; a container waits for the hook of the one before it, as upstream: people count on that order.
fn start_in_order<'a>(
    pod: &Pod,
    containers: impl Iterator<Item = &'a Container>,
    records: &Records,
    now: Timestamp,
) -> Decision {
    let mut decision = Decision::default();
    for container in containers {
        let next = start_or_wait(pod, container, records, now);
        let starts = next.steps.iter().any(|step| matches!(step, Step::Start { .. }));
        let is_starting = records.get(&container.name).is_some_and(|one| one.is_starting);
        decision.join(next);
        if is_starting || (starts && container.lifecycle.post_start.is_some()) {
            break;
        }
    }
    decision
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// This init container is the one to run, or the sidecar that has to start up.
    Init {
        index: usize,
    },
    Main,
    /// Nothing will run any more.
    Finished {
        succeeded: bool,
    },
}

/// How far the pod has come. One that the node has ended gets no further, whatever its containers would do.
pub(crate) fn progress(pod: &Pod, records: &Records, has_failed: bool) -> Progress {
    match phase_of_containers(pod, records) {
        finished @ Progress::Finished { .. } => finished,
        _ if has_failed => Progress::Finished { succeeded: false },
        progress => progress,
    }
}

/// How far the containers have come, by themselves and by the restart policy.
///
/// A new sandbox has nothing of what the init containers did in the one before: they run again, as upstream.
fn phase_of_containers(pod: &Pod, records: &Records) -> Progress {
    let record = |container: &Container| records.get(&container.name);
    let ended = |container: &Container| record(container).and_then(ContainerRecord::ended);
    let is_here = |container: &Container| record(container).is_some_and(|one| one.in_sandbox);
    let runs = |container: &Container| record(container).is_some_and(ContainerRecord::is_running);
    let is_up = |container: &Container| record(container).is_some_and(ContainerRecord::is_up);
    let policy = pod.spec.restart_policy;
    let done = |container: &Container| {
        ended(container)
            .filter(|ended| !restarts(policy, ended.exit_code))
            .map(|ended| ended.exit_code == 0)
    };
    let (init, main) = (&pod.spec.init_containers, &pod.spec.containers);
    let outcomes: Option<Vec<bool>> = main.iter().map(done).collect();
    if let Some(outcomes) = outcomes {
        return Progress::Finished {
            succeeded: outcomes.into_iter().all(|succeeded| succeeded),
        };
    }
    // While no main container runs, they wait for the sidecar right before them.
    let awaits_sidecar = || init.last().is_some_and(|last| last.is_lasting() && !is_up(last));
    if main.iter().any(runs) || (main.iter().any(is_here) && !awaits_sidecar()) {
        return Progress::Main;
    }
    let begun = init.iter().rposition(is_here).unwrap_or_default();
    for (index, container) in init.iter().enumerate() {
        let is_through = if container.is_lasting() {
            // One that went down later is started again, and nobody waits for it twice.
            index < begun || is_up(container)
        } else {
            match ended(container) {
                Some(ended) if ended.exit_code == 0 => is_here(container),
                Some(_) if policy == RestartPolicy::Never => return Progress::Finished { succeeded: false },
                _ => false,
            }
        };
        if !is_through {
            return Progress::Init { index };
        }
    }
    Progress::Main
}

/// Whether a container that ended with this code starts again.
pub(crate) fn restarts(policy: RestartPolicy, exit_code: i32) -> bool {
    match policy {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => exit_code != 0,
        RestartPolicy::Never => false,
    }
}

fn start_or_wait(pod: &Pod, container: &Container, records: &Records, now: Timestamp) -> Decision {
    let fresh = ContainerRecord::default();
    let record = records.get(&container.name).unwrap_or(&fresh);
    let is_init = pod.is_init(&container.name);
    let policy = pod.restart_policy_of(&container.name);
    let is_done = record
        .ended()
        .is_some_and(|ended| !restarts(policy, ended.exit_code));
    // An init container that succeeded in an earlier sandbox has to succeed again.
    if record.is_running() || (is_done && (record.in_sandbox || !is_init)) {
        return Decision::default();
    }
    if let Some(until) = record.held_until.filter(|until| still_waits(*until, now)) {
        return Decision::look_again_at(until);
    }
    let name = container.name.clone();
    match record.not_before {
        Some(due) if still_waits(due, now) => {
            let since = record.ended().map_or(now, |ended| ended.finished_at);
            let wait = Duration::try_from(due.duration_since(since)).unwrap_or_default();
            Decision {
                steps: vec![Step::BackOff {
                    container: name,
                    wait,
                }],
                look_again: Some(due),
            }
        }
        _ => only(Step::Start {
            container: name,
            attempt: record.attempt.map_or(0, |attempt| attempt.saturating_add(1)),
        }),
    }
}

/// Whether it is too early. No wait is longer than the longest back-off: a due time beyond that comes from a clock that was set
/// back.
pub(crate) fn still_waits(due: Timestamp, now: Timestamp) -> bool {
    due > now && due <= now + BACK_OFF_MAX
}

/// Stops every container that runs; `None` if there is none. All but sidecars go first, then the sidecars one after the other
/// against the order of their start, all within the same grace period.
fn stop_running(pod: &Pod, records: &Records, grace: Duration) -> Option<Decision> {
    let runs = |container: &&Container| {
        records
            .get(&container.name)
            .is_some_and(ContainerRecord::is_running)
    };
    let stop = |container: &Container, is_due| Step::Stop {
        container: container.name.clone(),
        grace,
        is_due,
    };
    let init = pod.spec.init_containers.iter().filter(|one| !one.is_lasting());
    let ephemeral = &pod.spec.ephemeral_containers;
    let at_once = pod
        .spec
        .containers
        .iter()
        .chain(init)
        .chain(ephemeral)
        .filter(runs);
    let mut steps: Vec<Step> = at_once.map(|container| stop(container, true)).collect();
    let mut is_due = !pod.spec.containers.iter().any(|container| runs(&container));
    let sidecars = pod.sidecars().rev().filter(runs);
    steps.extend(sidecars.map(|container| stop(container, std::mem::take(&mut is_due))));
    (!steps.is_empty()).then_some(Decision {
        steps,
        look_again: None,
    })
}

/// `deletionTimestamp` is when the grace period ends, cut to the second: up to one more belongs to the pod. Without it the
/// pod's own period counts from now.
fn grace_left(pod: &Pod, now: Timestamp) -> Duration {
    let seconds = pod
        .metadata
        .deletion_grace_period_seconds
        .or(pod.spec.termination_grace_period_seconds)
        .unwrap_or(GRACE_DEFAULT_SECONDS);
    let whole = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let deadline = pod
        .metadata
        .deletion_timestamp
        .as_deref()
        .and_then(|at| at.parse::<Timestamp>().ok());
    match deadline {
        Some(deadline) => Duration::try_from((deadline + SECOND).duration_since(now))
            .unwrap_or_default()
            .min(whole),
        None => whole,
    }
}

fn only(step: Step) -> Decision {
    Decision {
        steps: vec![step],
        look_again: None,
    }
}

impl Decision {
    fn look_again_at(due: Timestamp) -> Self {
        Self {
            steps: Vec::new(),
            look_again: Some(due),
        }
    }

    fn join(&mut self, other: Decision) {
        self.steps.extend(other.steps);
        self.look_again = match (self.look_again, other.look_again) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }
}

#[cfg(test)]
mod tests;
