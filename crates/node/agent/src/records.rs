//! What the node remembers of a pod's containers between two looks.

use std::{collections::BTreeMap, time::Duration};

use hotmap_runtime::{ContainerState, Exit, Sandbox};
use jiff::Timestamp;

use crate::{backoff::BackOff, pod::Pod};

/// Every container of one pod, by name; init and main containers never share a name.
pub(crate) type Records = BTreeMap<String, ContainerRecord>;

/// One container as far as the node is concerned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ContainerRecord {
    /// The newest attempt that was started; `None` before the first. It is also the restart count.
    pub(crate) attempt: Option<u32>,
    pub(crate) state: RunState,
    /// How the attempt before the current state ended.
    pub(crate) last: Option<Ended>,
    /// Readiness, as the probe or the mere running says.
    pub(crate) ready: bool,
    pub(crate) back_off: BackOff,
    /// The next start is due then.
    pub(crate) not_before: Option<Timestamp>,
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

impl Ended {
    /// From what the runtime saw.
    pub(crate) fn from_exit(exit: &Exit) -> Self {
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
            exit_code: exit.exit_code,
            signal: exit.signal,
            reason,
            message,
            started_at: timestamp(exit.started_at),
            finished_at: timestamp(exit.finished_at),
        }
    }

    /// An attempt that nobody knows the end of.
    pub(crate) fn lost(started_at: Timestamp, now: Timestamp) -> Self {
        Self {
            exit_code: 137,
            signal: None,
            reason: "ContainerStatusUnknown",
            message: "the container could not be located any more".to_owned(),
            started_at,
            finished_at: now,
        }
    }

    fn ran(&self) -> Duration {
        Duration::try_from(self.finished_at.duration_since(self.started_at)).unwrap_or_default()
    }
}

impl ContainerRecord {
    /// Whether its process runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, RunState::Running { .. })
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

    /// Notes that an attempt runs.
    pub(crate) fn started(&mut self, attempt: u32, started_at: Timestamp) {
        if let RunState::Ended(ended) = std::mem::replace(&mut self.state, RunState::Running { started_at }) {
            self.last = Some(ended);
        }
        self.attempt = Some(attempt);
        self.not_before = None;
        self.ready = false;
    }

    /// Notes that the newest attempt ended.
    pub(crate) fn exited(&mut self, ended: Ended) {
        let wait = self.back_off.after_exit(ended.ran());
        self.not_before = Some(ended.finished_at + wait);
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
/// was started before.
///
/// A container that the API saw running and the runtime does not know is gone with the last boot.
pub(crate) fn recover(pod: &Pod, sandbox: Option<&Sandbox>) -> Records {
    let mut records = Records::new();
    for container in pod.all_containers() {
        let mut record = ContainerRecord::default();
        let mut attempts: Vec<_> = sandbox
            .iter()
            .flat_map(|sandbox| &sandbox.containers)
            .filter(|one| one.name == container.name)
            .collect();
        attempts.sort_by_key(|one| one.attempt);
        for one in attempts {
            match &one.state {
                ContainerState::Running { started_at, .. } => {
                    record.started(one.attempt, timestamp(*started_at))
                }
                ContainerState::Exited(exit) => {
                    record.started(one.attempt, timestamp(exit.started_at));
                    record.exited(Ended::from_exit(exit));
                }
            }
        }
        if record.attempt.is_none() {
            recover_from_api(&mut record, pod, &container.name);
        }
        records.insert(container.name.clone(), record);
    }
    records
}

fn recover_from_api(record: &mut ContainerRecord, pod: &Pod, name: &str) {
    let lists = ["initContainerStatuses", "containerStatuses"].map(|list| &pod.status[list]);
    let statuses = lists.into_iter().filter_map(|list| list.as_array()).flatten();
    let Some(status) = statuses.into_iter().find(|status| status["name"] == name) else {
        return;
    };
    let restarts = status["restartCount"]
        .as_u64()
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or_default();
    let parsed = |value: &serde_json::Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    if let Some(ended) = status["state"].get("terminated") {
        record.attempt = Some(restarts);
        record.state = RunState::Ended(Ended {
            exit_code: ended["exitCode"]
                .as_i64()
                .and_then(|code| i32::try_from(code).ok())
                .unwrap_or(137),
            signal: None,
            reason: if ended["reason"] == "Completed" {
                "Completed"
            } else {
                "Error"
            },
            message: ended["message"].as_str().unwrap_or_default().to_owned(),
            started_at: parsed(&ended["startedAt"]).unwrap_or(Timestamp::UNIX_EPOCH),
            finished_at: parsed(&ended["finishedAt"]).unwrap_or(Timestamp::UNIX_EPOCH),
        });
    } else if let Some(running) = status["state"].get("running") {
        let started_at = parsed(&running["startedAt"]).unwrap_or(Timestamp::UNIX_EPOCH);
        record.attempt = Some(restarts);
        record.state = RunState::Ended(Ended::lost(started_at, started_at));
    } else if restarts > 0 || status["lastState"].get("terminated").is_some() {
        record.attempt = Some(restarts);
    }
}

/// Wall-clock time as the API writes it; what no calendar holds becomes its beginning.
pub(crate) fn timestamp(at: std::time::SystemTime) -> Timestamp {
    Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH)
}
