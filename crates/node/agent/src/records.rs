//! What the node remembers of a pod's containers between two looks.

use std::{collections::BTreeMap, time::Duration};

use hotmap_runtime::{ContainerState, ContainerStatus, ContainerUser, Exit, Sandbox};
use jiff::Timestamp;

use crate::{
    backoff::BackOff,
    pod::{Container, Pod},
};

/// Reasons of a terminated state; a status that is read back has one of them.
const REASONS: [&str; 5] = [
    "Completed",
    "Error",
    "OOMKilled",
    "StartError",
    "ContainerStatusUnknown",
];
/// What stands for the exit code of a container that nobody saw end: 128 + SIGKILL.
pub(crate) const EXIT_LOST: i32 = 137;

/// Every container of one pod, by name; no two of them share one.
pub(crate) type Records = BTreeMap<String, ContainerRecord>;

/// One container as far as the node is concerned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ContainerRecord {
    /// The newest attempt that was started; `None` before the first. It is also the restart count.
    pub(crate) attempt: Option<u32>,
    pub(crate) state: RunState,
    /// How the attempt before the current state ended.
    pub(crate) last: Option<Ended>,
    /// Its postStart hook has not ended: it runs, and for everybody else it does not yet.
    pub(crate) is_starting: bool,
    /// Why the postStart hook of the newest attempt failed; the container is stopped for it.
    pub(crate) hook_failure: Option<String>,
    /// Who the process of the newest attempt was when it began, where that is known.
    pub(crate) user: Option<ContainerUser>,
    /// Its startup probe, if it has one, has succeeded.
    pub(crate) started_up: bool,
    /// Readiness, as the probe or the mere running says.
    pub(crate) ready: bool,
    /// The attempt whose termination message was read.
    pub(crate) message_of: Option<u32>,
    /// We end it to start it anew: that counts as no crash.
    pub(crate) is_replaced: bool,
    pub(crate) back_off: BackOff,
    /// The next start is due then.
    pub(crate) not_before: Option<Timestamp>,
    /// The runtime could not start it: nothing is tried before then, whatever happens.
    pub(crate) held_until: Option<Timestamp>,
    /// The newest attempt was made in the sandbox that stands now; what ran in an earlier one has left nothing behind.
    pub(crate) in_sandbox: bool,
}

/// The three states of Kubernetes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunState {
    Waiting(Waiting),
    Running { started_at: Timestamp },
    Ended(Ended),
}

/// Why a container does not run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) attempt: u32,
    pub(crate) exit_code: i32,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Timestamp,
}

impl Default for RunState {
    fn default() -> Self {
        Self::Waiting(Waiting {
            reason: "ContainerCreating",
            message: String::new(),
        })
    }
}

impl RunState {
    fn into_ended(self) -> Option<Ended> {
        match self {
            Self::Ended(ended) => Some(ended),
            Self::Waiting(_) | Self::Running { .. } => None,
        }
    }
}

impl Ended {
    /// From what the runtime saw.
    pub(crate) fn from_exit(attempt: u32, exit: &Exit) -> Self {
        let (reason, message) = if exit.lost {
            (
                "ContainerStatusUnknown",
                "the container could not be located when its pod's shim had died".to_owned(),
            )
        } else if exit.oom_killed {
            ("OOMKilled", String::new())
        } else if exit.exit_code == 0 {
            ("Completed", String::new())
        } else {
            ("Error", String::new())
        };
        Self {
            attempt,
            exit_code: exit.exit_code,
            signal: exit.signal,
            reason,
            message,
            started_at: timestamp(exit.started_at),
            finished_at: timestamp(exit.finished_at),
        }
    }

    /// An attempt that nobody knows the end of.
    pub(crate) fn lost(attempt: u32, started_at: Timestamp, now: Timestamp) -> Self {
        Self {
            attempt,
            exit_code: EXIT_LOST,
            signal: None,
            reason: "ContainerStatusUnknown",
            message: "the container could not be located any more".to_owned(),
            started_at,
            finished_at: now,
        }
    }

    /// What was never executed has upstream's start time, the epoch, and ran for no time.
    fn ran(&self) -> Duration {
        if self.started_at == Timestamp::UNIX_EPOCH {
            return Duration::ZERO;
        }
        Duration::try_from(self.finished_at.duration_since(self.started_at)).unwrap_or_default()
    }
}

impl ContainerRecord {
    /// Whether its process runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, RunState::Running { .. })
    }

    /// Whether it has started up: it runs, its postStart hook has ended and its startup probe has succeeded.
    pub(crate) fn is_up(&self) -> bool {
        self.is_running() && self.started_up && !self.is_starting
    }

    /// The end of the newest attempt, if it has ended and nothing newer was started.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        match &self.state {
            RunState::Ended(ended) => Some(ended),
            // Waiting for the next start: the newest attempt is the one remembered.
            RunState::Waiting(_) => self.last.as_ref(),
            RunState::Running { .. } => None,
        }
    }

    /// The attempt that has ended and whose termination message nobody has read.
    pub(crate) fn unread(&self) -> Option<&Ended> {
        self.ended()
            .filter(|ended| self.in_sandbox && self.attempt == Some(ended.attempt))
            .filter(|ended| self.message_of != Some(ended.attempt))
    }

    /// Adds what the container said about its end to what the runtime did.
    pub(crate) fn said(&mut self, attempt: u32, message: &str) {
        self.message_of = Some(attempt);
        let ended = match &mut self.state {
            RunState::Ended(ended) => Some(ended),
            RunState::Waiting(_) => self.last.as_mut(),
            RunState::Running { .. } => None,
        };
        let Some(ended) = ended.filter(|ended| ended.attempt == attempt && !message.is_empty()) else {
            return;
        };
        if !ended.message.is_empty() {
            ended.message.push_str(": ");
        }
        ended.message.push_str(message);
    }

    /// Notes that an attempt runs.
    pub(crate) fn started(&mut self, attempt: u32, started_at: Timestamp) {
        if let RunState::Ended(ended) = std::mem::replace(&mut self.state, RunState::Running { started_at }) {
            self.last = Some(ended);
        }
        self.attempt = Some(attempt);
        self.not_before = None;
        self.held_until = None;
        self.in_sandbox = true;
        self.is_starting = false;
        self.is_replaced = false;
        self.started_up = false;
        self.hook_failure = None;
        self.user = None;
        self.ready = false;
    }

    /// Takes over an attempt that the runtime knows and nobody here does: we died, or lost the answer, after its start.
    /// True if there is one.
    pub(crate) fn adopt(&mut self, seen: &ContainerStatus) -> bool {
        let is_news = self.attempt.is_none_or(|known| seen.attempt > known);
        if is_news {
            match &seen.state {
                ContainerState::Running { started_at, .. } => {
                    self.started(seen.attempt, timestamp(*started_at))
                }
                ContainerState::Exited(exit) => {
                    self.started(seen.attempt, timestamp(exit.started_at));
                    self.exited(Ended::from_exit(seen.attempt, exit));
                }
            }
            self.user = seen.user.clone();
        }
        is_news
    }

    /// Notes that the newest attempt ended.
    pub(crate) fn exited(&mut self, ended: Ended) {
        self.not_before = if std::mem::take(&mut self.is_replaced) {
            None
        } else {
            Some(ended.finished_at + self.back_off.after_exit(ended.ran()))
        };
        self.is_starting = false;
        self.ready = false;
        self.state = RunState::Ended(ended);
    }

    /// Notes why it does not run; the last end is kept as the last state.
    pub(crate) fn waits(&mut self, reason: &'static str, message: String) {
        if let RunState::Ended(ended) =
            std::mem::replace(&mut self.state, RunState::Waiting(Waiting { reason, message }))
        {
            self.last = Some(ended);
        }
        self.ready = false;
    }
}

/// What is known after a start of the node: from the runtime what still runs or has just ended, from the API how often it
/// was started before and how that ended.
///
/// A container that the API saw running and the runtime does not know is gone with the last boot.
pub(crate) fn recover(pod: &Pod, sandbox: Option<&Sandbox>, now: Timestamp) -> Records {
    let record = |container: &Container| {
        let mut record = ContainerRecord::default();
        let attempts = sandbox.iter().flat_map(|sandbox| &sandbox.containers);
        let mut attempts: Vec<_> = attempts.filter(|one| one.name == container.name).collect();
        attempts.sort_by_key(|one| one.attempt);
        for one in attempts {
            record.adopt(one);
        }
        let told = from_api(pod, &container.name, now);
        if told.attempt > record.attempt {
            // An attempt whose program could not be executed is in the API alone.
            return (container.name.clone(), told);
        }
        if told.attempt == record.attempt {
            record.ready = record.is_running() && told.ready;
            record.started_up = record.is_running() && told.started_up;
        }
        if record.last.is_none() {
            let ends = [told.state.into_ended(), told.last].into_iter().flatten();
            let before = ends.filter(|end| Some(end.attempt) < record.attempt);
            record.last = before.max_by_key(|end| end.attempt);
        }
        (container.name.clone(), record)
    };
    pod.all_containers().map(record).collect()
}

/// The record of a container as its status in the API has it.
fn from_api(pod: &Pod, name: &str, now: Timestamp) -> ContainerRecord {
    let mut record = ContainerRecord::default();
    let lists = [
        "initContainerStatuses",
        "containerStatuses",
        "ephemeralContainerStatuses",
    ]
    .map(|list| &pod.status[list]);
    let statuses = lists.into_iter().filter_map(|list| list.as_array()).flatten();
    let Some(status) = statuses.into_iter().find(|status| status["name"] == name) else {
        return record;
    };
    let attempt = status["restartCount"]
        .as_u64()
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or_default();
    record.user = user_in(&status["user"]["linux"]);
    record.ready = status["ready"] == true;
    record.started_up = status["started"] == true;
    if let Some(running) = status["state"].get("running") {
        let started_at = time(&running["startedAt"]);
        record.attempt = Some(attempt);
        record.state = RunState::Ended(Ended::lost(attempt, started_at, now));
        record.last = ended_in(&status["lastState"], attempt.saturating_sub(1));
    } else if let Some(ended) = ended_in(&status["state"], attempt) {
        record.attempt = Some(attempt);
        record.state = RunState::Ended(ended);
        record.last = ended_in(&status["lastState"], attempt.saturating_sub(1));
    } else {
        record.last = ended_in(&status["lastState"], attempt);
        if attempt > 0 || record.last.is_some() {
            record.attempt = Some(attempt);
        }
    }
    record
}

fn user_in(linux: &serde_json::Value) -> Option<ContainerUser> {
    let number = |value: &serde_json::Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let groups = linux["supplementalGroups"].as_array().into_iter().flatten();
    Some(ContainerUser {
        uid: number(&linux["uid"])?,
        gid: number(&linux["gid"])?,
        groups: groups.filter_map(number).collect(),
    })
}

fn ended_in(state: &serde_json::Value, attempt: u32) -> Option<Ended> {
    let ended = state.get("terminated")?;
    let number = |value: &serde_json::Value| value.as_i64().and_then(|number| i32::try_from(number).ok());
    let reason = REASONS.into_iter().find(|reason| ended["reason"] == *reason);
    Some(Ended {
        attempt,
        exit_code: number(&ended["exitCode"]).unwrap_or(EXIT_LOST),
        signal: number(&ended["signal"]).filter(|signal| *signal != 0),
        reason: reason.unwrap_or("Error"),
        message: ended["message"].as_str().unwrap_or_default().to_owned(),
        started_at: time(&ended["startedAt"]),
        finished_at: time(&ended["finishedAt"]),
    })
}

/// What is no time becomes the beginning of it, as upstream writes a time that is not known.
fn time(value: &serde_json::Value) -> Timestamp {
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Wall-clock time as the API writes it; what no calendar holds becomes its beginning.
pub(crate) fn timestamp(at: std::time::SystemTime) -> Timestamp {
    Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        time::{Duration as Elapsed, SystemTime},
    };

    use hotmap_runtime::{IdRange, SandboxState};
    use serde_json::{Value, json};

    use super::*;

    fn second(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Elapsed::from_secs(second)
    }

    fn seen(attempt: u32, exit_code: Option<i32>) -> ContainerStatus {
        let state = match exit_code {
            None => ContainerState::Running {
                pid: 1,
                started_at: second(10),
            },
            Some(exit_code) => ContainerState::Exited(Exit {
                exit_code,
                signal: None,
                started_at: second(10),
                finished_at: second(12),
                oom_killed: false,
                lost: false,
            }),
        };
        ContainerStatus {
            name: "a".into(),
            attempt,
            user: None,
            state,
        }
    }

    fn sandbox(containers: Vec<ContainerStatus>) -> Sandbox {
        Sandbox {
            pod_uid: "u".into(),
            namespace: "n".into(),
            name: "p".into(),
            ip: Some(Ipv4Addr::LOCALHOST),
            ids: IdRange { base: 0 },
            created_at: second(9),
            state: SandboxState::Ready,
            has_limits: true,
            containers,
        }
    }

    fn recovered(status: Value, containers: Option<Vec<ContainerStatus>>) -> String {
        let document = json!({"metadata": {"uid": "u"}, "spec": {"containers": [{"name": "a"}]},
            "status": {"containerStatuses": [status]}});
        let pod = Pod::from_document(&document).expect("a pod");
        let sandbox = containers.map(sandbox);
        let record = recover(&pod, sandbox.as_ref(), Timestamp::UNIX_EPOCH)
            .remove("a")
            .expect("a record");
        let end = |ended: &Ended| format!("{} {}", ended.reason, ended.exit_code);
        let state = match &record.state {
            RunState::Waiting(_) => "waiting".to_owned(),
            RunState::Running { .. } if record.ready => "ready".to_owned(),
            RunState::Running { .. } => "running".to_owned(),
            RunState::Ended(ended) => end(ended),
        };
        let attempt = record
            .attempt
            .map_or("-".to_owned(), |attempt| attempt.to_string());
        let last = record.last.as_ref().map_or("-".to_owned(), end);
        format!("{attempt}: {state}, last {last}")
    }

    #[test]
    fn a_restarted_node_knows_what_it_knew() {
        let terminated = |reason: &str, code: i32| {
            json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": "1970-01-01T00:00:10Z",
                "finishedAt": "1970-01-01T00:00:12Z"}})
        };
        let running = json!({"running": {"startedAt": "1970-01-01T00:00:10Z"}});
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        for (state, last, count, containers, expected) in [
            // Nothing was ever started.
            (
                json!({"waiting": {"reason": "ContainerCreating"}}),
                json!({}),
                0,
                None,
                "-: waiting, last -",
            ),
            // It still runs, as the API saw it.
            (
                running.clone(),
                terminated("OOMKilled", 137),
                2,
                Some(vec![seen(2, None)]),
                "2: ready, last OOMKilled 137",
            ),
            // It ended while nobody looked.
            (
                running.clone(),
                json!({}),
                0,
                Some(vec![seen(0, Some(3))]),
                "0: Error 3, last -",
            ),
            // It was started and we died before we could say so.
            (
                terminated("Error", 1),
                json!({}),
                0,
                Some(vec![seen(1, None)]),
                "1: running, last Error 1",
            ),
            // The machine was started anew.
            (
                running,
                terminated("Error", 1),
                3,
                None,
                "3: ContainerStatusUnknown 137, last Error 1",
            ),
            (
                waiting.clone(),
                terminated("Error", 1),
                4,
                None,
                "4: waiting, last Error 1",
            ),
            (
                waiting,
                terminated("StartError", 128),
                0,
                None,
                "0: waiting, last StartError 128",
            ),
            (
                terminated("Completed", 0),
                json!({}),
                0,
                None,
                "0: Completed 0, last -",
            ),
            // The newest attempt could not be executed: the runtime has nothing of it.
            (
                terminated("StartError", 128),
                terminated("Error", 3),
                1,
                Some(vec![seen(0, Some(3))]),
                "1: StartError 128, last Error 3",
            ),
        ] {
            let status =
                json!({"name": "a", "ready": true, "restartCount": count, "state": state, "lastState": last});
            assert_eq!(recovered(status.clone(), containers), expected, "{status}");
        }
    }

    #[test]
    fn an_attempt_that_nobody_noted_is_taken_over_once() {
        let mut record = ContainerRecord::default();
        assert!(record.adopt(&seen(0, None)) && record.is_running() && record.in_sandbox);
        assert!(
            !record.adopt(&seen(0, Some(1))),
            "its end is told, not taken over"
        );
        assert!(record.adopt(&seen(1, Some(1))) && record.attempt == Some(1));
    }

    #[test]
    fn who_a_process_was_is_known_after_a_restart_of_the_node() {
        let user = |uid: u32, groups: &[u32]| ContainerUser {
            uid,
            gid: 3,
            groups: groups.to_vec(),
        };
        let state = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
        let status = |linux: Value| json!({"name": "a", "restartCount": 1, "state": state.clone(), "user": {"linux": linux}});
        let told = json!({"uid": 7, "gid": 3, "supplementalGroups": [3, 9]});
        let seen = |attempt, user| ContainerStatus {
            user,
            ..seen(attempt, None)
        };
        for (status, containers, expected) in [
            // It is finished, and the runtime has forgotten it.
            (status(told.clone()), None, Some(user(7, &[3, 9]))),
            (status(json!({"uid": 7, "gid": 3})), None, Some(user(7, &[]))),
            (status(json!({"uid": -1, "gid": 3})), None, None),
            // The next attempt is another process.
            (
                status(told.clone()),
                Some(seen(2, Some(user(8, &[3])))),
                Some(user(8, &[3])),
            ),
            // Its shim is of an earlier release.
            (status(told), Some(seen(2, None)), None),
        ] {
            let document = json!({"metadata": {"uid": "u"}, "spec": {"containers": [{"name": "a"}]},
                "status": {"containerStatuses": [status]}});
            let pod = Pod::from_document(&document).expect("a pod");
            let sandbox = containers.map(|one| sandbox(vec![one]));
            let mut records = recover(&pod, sandbox.as_ref(), Timestamp::UNIX_EPOCH);
            let record = records.remove("a").expect("a record");
            assert_eq!(record.user, expected, "{document}");
        }
    }

    #[test]
    fn what_never_ran_backs_off_like_what_failed_at_once() {
        let mut record = ContainerRecord::default();
        let waits: Vec<i64> = (0..4)
            .map(|attempt| {
                record.started(attempt, Timestamp::UNIX_EPOCH);
                let finished_at = Timestamp::from_second(1_800_000_000).expect("in range");
                let never = Ended {
                    attempt,
                    exit_code: 128,
                    signal: None,
                    reason: "StartError",
                    message: String::new(),
                    started_at: Timestamp::UNIX_EPOCH,
                    finished_at,
                };
                record.exited(never);
                let due = record.not_before.expect("an end sets it");
                due.as_second() - finished_at.as_second()
            })
            .collect();
        assert_eq!(waits, [0, 10, 20, 40]);
    }

    #[test]
    fn what_we_end_to_start_it_anew_does_not_back_off() {
        let mut record = ContainerRecord::default();
        let finished_at = Timestamp::from_second(1_800_000_000).expect("in range");
        let ended = |attempt| Ended {
            attempt,
            exit_code: 137,
            signal: Some(9),
            reason: "Error",
            message: String::new(),
            started_at: finished_at,
            finished_at,
        };
        for attempt in 0..3 {
            record.started(attempt, finished_at);
            record.is_replaced = true;
            record.exited(ended(attempt));
            assert_eq!(record.not_before, None);
        }
        record.started(3, finished_at);
        record.exited(ended(3));
        assert_eq!(record.not_before, Some(finished_at), "its first crash");
    }
}
