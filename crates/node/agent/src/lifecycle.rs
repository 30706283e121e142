//! What to do next with a pod: decided from what is, never from which event came.
//!
//! ```text
//!   sandbox ─▶ volumes ─▶ init containers, one after the other ─▶ containers, but for hooks at once ─▶ restarts by policy
//!      └────────────────── deletion: stop within the grace period, then take everything down ──────────────┘
//! ```
//!
//! Order and policies follow `pkg/kubelet/kuberuntime` (`computePodActions`), Kubernetes 1.36. No clock, no I/O.

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
        return end(pod, records, now);
    }
    match phase_of_containers(pod, records) {
        Progress::Finished { .. } if ground.has_sandbox => only(Step::StopSandbox),
        Progress::Finished { .. } if ground.has_remains && ground.is_told => only(Step::Retire),
        Progress::Finished { .. } => Decision::default(),
        _ if !ground.has_sandbox => match ground.sandbox_not_before.filter(|due| *due > now) {
            Some(due) => Decision::look_again_at(due),
            None => only(Step::MakeSandbox),
        },
        _ if !ground.has_volumes => Decision::default(),
        Progress::Init { index } => start_or_wait(pod, &pod.spec.init_containers[index], records, now),
        Progress::Main => {
            let mut decision = Decision::default();
            for container in &pod.spec.containers {
                let next = start_or_wait(pod, container, records, now);
                let starts = next.steps.iter().any(|step| matches!(step, Step::Start { .. }));
                let is_starting = records.get(&container.name).is_some_and(|one| one.is_starting);
                decision.join(next);
                // A container waits for the hook of the one before it, as upstream: people count on that order.
                if is_starting || (starts && container.lifecycle.post_start.is_some()) {
                    break;
                }
            }
            decision
        }
    }
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// This init container is the one to run.
    Init {
        index: usize,
    },
    Main,
    /// Nothing will run any more.
    Finished {
        succeeded: bool,
    },
}

/// How far the containers have come, by themselves and by the restart policy.
///
/// A new sandbox has nothing of what the init containers did in the one before: they run again, as upstream.
pub(crate) fn phase_of_containers(pod: &Pod, records: &Records) -> Progress {
    let policy = pod.spec.restart_policy;
    let record = |container: &Container| records.get(&container.name);
    let ended = |container: &Container| record(container).and_then(ContainerRecord::ended);
    let is_here = |container: &Container| record(container).is_some_and(|one| one.in_sandbox);
    let done = |container: &Container| {
        ended(container)
            .filter(|ended| !restarts(policy, ended.exit_code))
            .map(|ended| ended.exit_code == 0)
    };
    let outcomes: Option<Vec<bool>> = pod.spec.containers.iter().map(done).collect();
    if let Some(outcomes) = outcomes {
        return Progress::Finished {
            succeeded: outcomes.into_iter().all(|succeeded| succeeded),
        };
    }
    if pod.spec.containers.iter().any(is_here) {
        return Progress::Main;
    }
    for (index, container) in pod.spec.init_containers.iter().enumerate() {
        match ended(container) {
            Some(ended) if ended.exit_code == 0 && is_here(container) => {}
            Some(ended) if ended.exit_code != 0 && policy == RestartPolicy::Never => {
                return Progress::Finished { succeeded: false };
            }
            _ => return Progress::Init { index },
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
    let is_init = pod
        .spec
        .init_containers
        .iter()
        .any(|one| one.name == container.name);
    let policy = match pod.spec.restart_policy {
        // An init container has to succeed once, not to run for ever.
        RestartPolicy::Always if is_init => RestartPolicy::OnFailure,
        policy => policy,
    };
    let is_done = record
        .ended()
        .is_some_and(|ended| !restarts(policy, ended.exit_code));
    // An init container that succeeded in an earlier sandbox has to succeed again.
    if record.is_running() || (is_done && (record.in_sandbox || !is_init)) {
        return Decision::default();
    }
    if let Some(until) = record.held_until.filter(|until| *until > now) {
        return Decision::look_again_at(until);
    }
    let name = container.name.clone();
    match record.not_before {
        // No wait is longer: a due time beyond it comes from a clock that was set back.
        Some(due) if due > now && due <= now + BACK_OFF_MAX => {
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

/// The end of a pod: every running container gets what is left of the grace period.
fn end(pod: &Pod, records: &Records, now: Timestamp) -> Decision {
    let running: Vec<&String> = records
        .iter()
        .filter(|(_, record)| record.is_running())
        .map(|(name, _)| name)
        .collect();
    if running.is_empty() {
        return only(Step::TakeDown);
    }
    let grace = grace_left(pod, now);
    let steps = running.into_iter().map(|name| Step::Stop {
        container: name.clone(),
        grace,
    });
    Decision {
        steps: steps.collect(),
        look_again: None,
    }
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::records::{Ended, RunState};

    const READY: Ground = Ground {
        has_sandbox: true,
        has_volumes: true,
        is_orphan: false,
        has_remains: true,
        is_told: false,
        sandbox_not_before: None,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn pod(policy: &str) -> Pod {
        Pod::from_document(&json!({"metadata": {"name": "p"}, "spec": {"restartPolicy": policy,
            "initContainers": [{"name": "i1"}, {"name": "i2"}], "containers": [{"name": "a"}, {"name": "b"}]}}))
        .expect("a pod")
    }

    fn running() -> ContainerRecord {
        ContainerRecord {
            attempt: Some(0),
            state: RunState::Running { started_at: at(0) },
            in_sandbox: true,
            ..Default::default()
        }
    }

    fn exited(exit_code: i32) -> ContainerRecord {
        let mut record = running();
        record.exited(Ended {
            attempt: 0,
            exit_code,
            signal: None,
            reason: "",
            message: String::new(),
            started_at: at(0),
            finished_at: at(1),
        });
        record
    }

    fn records(entries: &[(&str, ContainerRecord)]) -> Records {
        entries
            .iter()
            .map(|(name, record)| ((*name).to_owned(), record.clone()))
            .collect()
    }

    fn shown(decision: &Decision) -> Vec<String> {
        let step = |step: &Step| match step {
            Step::Start { container, attempt } => format!("start {container} {attempt}"),
            Step::BackOff { container, wait, .. } => format!("wait {container} {}", wait.as_secs()),
            Step::Stop { container, grace } => format!("stop {container} {}", grace.as_secs()),
            Step::MakeSandbox => "sandbox".to_owned(),
            Step::StopSandbox => "stop sandbox".to_owned(),
            Step::Retire => "retire".to_owned(),
            Step::TakeDown => "take down".to_owned(),
        };
        decision.steps.iter().map(step).collect()
    }

    #[test]
    fn a_pod_goes_from_sandbox_to_containers_in_order() {
        let none = Ground {
            has_sandbox: false,
            has_volumes: false,
            has_remains: false,
            ..READY
        };
        let dry = Ground {
            has_volumes: false,
            ..READY
        };
        let both = [("i1", exited(0)), ("i2", exited(0))];
        for (ground, entries, steps) in [
            (none, &[][..], &["sandbox"][..]),
            (dry, &[], &[]),
            (READY, &[], &["start i1 0"]),
            (READY, &[("i1", running())], &[]),
            (READY, &[("i1", exited(0))], &["start i2 0"]),
            (READY, &[("i1", exited(1))], &["start i1 1"]),
            (READY, &both, &["start a 0", "start b 0"]),
            (
                READY,
                &[("i1", exited(0)), ("i2", exited(0)), ("a", running())],
                &["start b 0"],
            ),
            // What an init container was is of no interest once a main container has started.
            (READY, &[("a", running()), ("b", running())], &[]),
        ] {
            let decision = decide(&pod("Always"), &records(entries), ground, at(1));
            assert_eq!(shown(&decision), steps, "{entries:?}");
        }
    }

    #[test]
    fn a_container_waits_for_the_hook_of_the_one_before() {
        let pod = Pod::from_document(&json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "a"}, {"name": "b", "lifecycle": {"postStart": {"sleep": {"seconds": 1}}}}, {"name": "c"}]}}))
        .expect("a pod");
        let starting = || ContainerRecord {
            is_starting: true,
            ..running()
        };
        for (entries, steps) in [
            (&[][..], &["start a 0", "start b 0"][..]),
            (&[("a", running()), ("b", starting())], &[]),
            (&[("a", exited(1)), ("b", starting())], &["start a 1"]),
            (&[("a", running()), ("b", running())], &["start c 0"]),
            (
                &[("a", running()), ("b", exited(1)), ("c", running())],
                &["start b 1"],
            ),
        ] {
            let decision = decide(&pod, &records(entries), READY, at(1));
            assert_eq!(shown(&decision), steps, "{entries:?}");
        }
    }

    #[test]
    fn restarts_follow_the_policy() {
        for (policy, code, steps) in [
            ("Always", 0, &["start a 1"][..]),
            ("Always", 1, &["start a 1"]),
            ("OnFailure", 0, &[]),
            ("OnFailure", 1, &["start a 1"]),
            ("Never", 1, &[]),
        ] {
            let world = records(&[("a", exited(code)), ("b", running())]);
            assert_eq!(
                shown(&decide(&pod(policy), &world, READY, at(1))),
                steps,
                "{policy} {code}"
            );
        }
        for (policy, codes, finished) in [
            ("Never", [0, 0], Some(true)),
            ("Never", [0, 1], Some(false)),
            ("OnFailure", [0, 0], Some(true)),
            ("OnFailure", [0, 1], None),
            ("Always", [0, 0], None),
        ] {
            let world = records(&[("a", exited(codes[0])), ("b", exited(codes[1]))]);
            let found = match phase_of_containers(&pod(policy), &world) {
                Progress::Finished { succeeded } => Some(succeeded),
                _ => None,
            };
            assert_eq!(found, finished, "{policy} {codes:?}");
        }
        let failed_init = records(&[("i1", exited(2))]);
        assert_eq!(
            phase_of_containers(&pod("Never"), &failed_init),
            Progress::Finished { succeeded: false }
        );
        assert_eq!(
            shown(&decide(&pod("Never"), &failed_init, READY, at(1))),
            ["stop sandbox"]
        );
    }

    #[test]
    fn the_second_restart_waits_and_says_until_when() {
        let mut record = exited(1);
        record.started(1, at(2));
        record.exited(Ended {
            attempt: 0,
            exit_code: 1,
            signal: None,
            reason: "",
            message: String::new(),
            started_at: at(2),
            finished_at: at(3),
        });
        let decision = decide(
            &pod("Always"),
            &records(&[("a", record.clone()), ("b", running())]),
            READY,
            at(4),
        );
        assert_eq!(
            (shown(&decision), decision.look_again),
            (vec!["wait a 10".to_owned()], Some(at(13)))
        );
        let decision = decide(
            &pod("Always"),
            &records(&[("a", record), ("b", running())]),
            READY,
            at(13),
        );
        assert_eq!(shown(&decision), ["start a 2"]);
    }

    #[test]
    fn a_deleted_pod_stops_within_what_is_left_of_its_grace() {
        let mut doomed = pod("Always");
        doomed.metadata.deletion_timestamp = Some("1970-01-01T00:00:40Z".into());
        doomed.metadata.deletion_grace_period_seconds = Some(30);
        let world = records(&[("a", running()), ("b", exited(0))]);
        assert_eq!(shown(&decide(&doomed, &world, READY, at(10))), ["stop a 30"]);
        assert_eq!(shown(&decide(&doomed, &world, READY, at(35))), ["stop a 6"]);
        assert_eq!(shown(&decide(&doomed, &world, READY, at(99))), ["stop a 0"]);
        assert_eq!(
            shown(&decide(&doomed, &records(&[("b", exited(0))]), READY, at(10))),
            ["take down"]
        );
        let orphan = Ground {
            is_orphan: true,
            ..READY
        };
        assert_eq!(
            shown(&decide(&pod("Always"), &world, orphan, at(10))),
            ["stop a 30"]
        );
    }

    #[test]
    fn a_new_sandbox_begins_with_the_init_containers_again() {
        let elsewhere = |mut record: ContainerRecord| {
            record.in_sandbox = false;
            record
        };
        for (policy, entries, steps) in [
            (
                "Always",
                &[
                    ("i1", elsewhere(exited(0))),
                    ("i2", elsewhere(exited(0))),
                    ("a", elsewhere(exited(137))),
                ][..],
                &["start i1 1"][..],
            ),
            (
                "OnFailure",
                &[
                    ("i1", exited(0)),
                    ("i2", elsewhere(exited(0))),
                    ("a", elsewhere(exited(0))),
                ],
                &["start i2 1"],
            ),
            (
                "OnFailure",
                &[("i1", exited(0)), ("i2", exited(0)), ("a", elsewhere(exited(0)))],
                &["start b 0"],
            ),
            // What is over stays over.
            (
                "Never",
                &[
                    ("i1", elsewhere(exited(0))),
                    ("a", elsewhere(exited(137))),
                    ("b", elsewhere(exited(0))),
                ],
                &["stop sandbox"],
            ),
            ("Never", &[("i1", elsewhere(exited(1)))], &["stop sandbox"]),
        ] {
            let decision = decide(&pod(policy), &records(entries), READY, at(5));
            assert_eq!(shown(&decision), steps, "{policy} {entries:?}");
        }
    }

    #[test]
    fn a_finished_pod_goes_once_the_api_knows_its_end() {
        let world = records(&[("a", exited(0)), ("b", exited(1))]);
        for (has_sandbox, has_remains, is_told, steps) in [
            (true, true, true, &["stop sandbox"][..]),
            (false, true, false, &[]),
            (false, true, true, &["retire"]),
            (false, false, true, &[]),
        ] {
            let ground = Ground {
                has_sandbox,
                has_remains,
                is_told,
                ..READY
            };
            let decision = decide(&pod("Never"), &world, ground, at(5));
            assert_eq!(shown(&decision), steps, "{ground:?}");
        }
    }

    #[test]
    fn what_keeps_failing_is_tried_at_its_time_only() {
        let ground = Ground {
            has_sandbox: false,
            sandbox_not_before: Some(at(10)),
            ..READY
        };
        let early = decide(&pod("Always"), &Records::new(), ground, at(9));
        assert_eq!((shown(&early), early.look_again), (vec![], Some(at(10))));
        assert_eq!(
            shown(&decide(&pod("Always"), &Records::new(), ground, at(10))),
            ["sandbox"]
        );

        let held = ContainerRecord {
            held_until: Some(at(10)),
            ..ContainerRecord::default()
        };
        let world = records(&[
            ("i1", exited(0)),
            ("i2", exited(0)),
            ("a", held),
            ("b", running()),
        ]);
        let early = decide(&pod("Always"), &world, READY, at(9));
        assert_eq!((shown(&early), early.look_again), (vec![], Some(at(10))));
        assert_eq!(
            shown(&decide(&pod("Always"), &world, READY, at(10))),
            ["start a 0"]
        );
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nobody_up() {
        let mut ended = exited(1);
        ended.not_before = Some(at(100_000));
        let world = records(&[("a", ended), ("b", running())]);
        assert_eq!(
            shown(&decide(&pod("Always"), &world, READY, at(50))),
            ["start a 1"]
        );
    }
}
