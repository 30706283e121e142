//! What the agent knows of each pod, and who is told when that changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::config::IdRange;
use crate::events::{ContainerExited, EVENT_LAG_MAX, Event, Events};
use crate::protocol::{RECORD_FILE, STATE_FILE};
use crate::status::{ContainerState, ContainerStatus, Exit, PodState, Sandbox, SandboxRecord, SandboxState};

/// A pod's ids alone, before it has a sandbox.
pub(crate) const IDS_FILE: &str = "ids.json";

/// One pod: from its reservation of ids to its removal.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) ids: IdRange,
    pub(crate) record: Option<SandboxRecord>,
    pub(crate) state: Option<PodState>,
    /// Whether its shim is there.
    pub(crate) attached: bool,
    /// The task that follows the shim.
    pub(crate) follower: Option<AbortHandle>,
    /// Held by who takes away what a sandbox was made of: nobody kills or writes off the sandbox that comes next.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
}

impl Pod {
    /// A pod that has ids and nothing else.
    pub(crate) fn reserved(ids: IdRange) -> Self {
        Self {
            ids,
            record: None,
            state: None,
            attached: false,
            follower: None,
            turn: Arc::default(),
        }
    }

    /// What the pod's directory says, or `None` when it says nothing.
    pub(crate) fn read(dir: &Path) -> Option<Self> {
        let record: Option<SandboxRecord> = read_json(&dir.join(RECORD_FILE));
        let ids = record
            .as_ref()
            .map(|record| record.ids)
            .or_else(|| read_json(&dir.join(IDS_FILE)))?;
        let state = record
            .is_some()
            .then(|| read_json(&dir.join(STATE_FILE)))
            .flatten();
        Some(Self {
            record,
            state,
            ..Self::reserved(ids)
        })
    }

    /// Its address on the bridge.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        Some(self.record.as_ref()?.network.as_ref()?.address)
    }

    fn sandbox(&self) -> Option<Sandbox> {
        let record = self.record.as_ref()?;
        let ready = self.attached && self.state.as_ref().is_some_and(|state| !state.stopped);
        let mut containers = self
            .state
            .as_ref()
            .map_or(Vec::new(), |state| state.containers.clone());
        containers.sort_by(|left, right| (&left.name, left.attempt).cmp(&(&right.name, right.attempt)));
        Some(Sandbox {
            pod_uid: record.config.pod_uid.clone(),
            namespace: record.config.namespace.clone(),
            name: record.config.name.clone(),
            ip: self.address(),
            ids: record.ids,
            created_at: self
                .state
                .as_ref()
                .map_or(SystemTime::UNIX_EPOCH, |state| state.created_at),
            state: if ready {
                SandboxState::Ready
            } else {
                SandboxState::NotReady
            },
            has_limits: self.state.as_ref().is_some_and(|state| state.has_limits),
            containers,
        })
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// All pods.
#[derive(Debug)]
pub(crate) struct Pods {
    table: Mutex<BTreeMap<String, Pod>>,
    events: broadcast::Sender<Event>,
    changes: watch::Sender<()>,
}

impl Pods {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::new(BTreeMap::new()),
            events: broadcast::channel(EVENT_LAG_MAX).0,
            changes: watch::channel(()).0,
        })
    }

    /// Looks at, or changes, the table.
    pub(crate) fn with<T>(&self, action: impl FnOnce(&mut BTreeMap<String, Pod>) -> T) -> T {
        action(&mut self.table.lock())
    }

    /// The same for one pod.
    pub(crate) fn with_pod<T>(&self, pod_uid: &str, action: impl FnOnce(&mut Pod) -> T) -> Option<T> {
        self.table.lock().get_mut(pod_uid).map(action)
    }

    pub(crate) fn sandboxes(&self) -> Vec<Sandbox> {
        self.table.lock().values().filter_map(Pod::sandbox).collect()
    }

    pub(crate) fn sandbox(&self, pod_uid: &str) -> Option<Sandbox> {
        self.table.lock().get(pod_uid)?.sandbox()
    }

    /// Takes the shim's word, and tells what is new in it.
    pub(crate) fn update(&self, pod_uid: &str, state: PodState) {
        let ended = self.with_pod(pod_uid, |pod| {
            let known: Vec<ContainerStatus> = pod.state.take().map_or(Vec::new(), |state| state.containers);
            let news = newly_ended(&known, &state.containers);
            pod.attached = true;
            pod.state = Some(state);
            news
        });
        self.tell(pod_uid, ended.into_iter().flatten());
    }

    /// The shim is gone, and with it every process of the pod. `keep` writes that down before anybody is told.
    pub(crate) fn lost(
        &self,
        pod_uid: &str,
        keep: impl FnOnce(&PodState) -> io::Result<()>,
    ) -> io::Result<()> {
        let found = self.with_pod(pod_uid, |pod| {
            pod.attached = false;
            let mut state = pod.state.clone()?;
            state.containers.iter_mut().for_each(end_unknown);
            Some(state)
        });
        let kept = match found.flatten() {
            Some(state) => {
                let kept = keep(&state);
                let news = self.with_pod(pod_uid, |pod| {
                    let known = pod.state.take().map_or(Vec::new(), |state| state.containers);
                    let news = newly_ended(&known, &state.containers);
                    pod.state = Some(state);
                    news
                });
                self.tell(pod_uid, news.into_iter().flatten());
                kept
            }
            None => Ok(()),
        };
        let _ = self.events.send(Event::SandboxLost {
            pod_uid: pod_uid.to_owned(),
        });
        kept
    }

    fn tell(&self, pod_uid: &str, ended: impl IntoIterator<Item = ContainerStatus>) {
        for event in ended
            .into_iter()
            .filter_map(|container| exited(pod_uid, container))
        {
            // Nobody listens yet: whoever subscribes is told first what is on record.
            let _ = self.events.send(event);
        }
        self.changes.send_replace(());
    }

    /// Every exit on record, then what comes.
    pub(crate) fn events(&self) -> Events {
        let table = self.table.lock();
        // Under the lock: what changes from here on reaches the receiver.
        let receiver = self.events.subscribe();
        let mut already = std::collections::VecDeque::new();
        for (pod_uid, pod) in table.iter() {
            let containers = pod
                .state
                .iter()
                .flat_map(|state| state.containers.iter().cloned());
            already.extend(containers.filter_map(|container| exited(pod_uid, container)));
            if pod.record.is_some() && !pod.attached {
                already.push_back(Event::SandboxLost {
                    pod_uid: pod_uid.clone(),
                });
            }
        }
        Events { already, receiver }
    }

    /// Waits until the table says so.
    pub(crate) async fn wait_for(&self, condition: impl Fn(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !condition(self) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether a container runs, as far as is known here.
    pub(crate) fn is_running(&self, pod_uid: &str, name: &str) -> bool {
        let runs = |container: &ContainerStatus| {
            container.name == name && matches!(container.state, ContainerState::Running { .. })
        };
        self.with_pod(pod_uid, |pod| {
            pod.state
                .as_ref()
                .is_some_and(|state| state.containers.iter().any(runs))
        })
        .unwrap_or(false)
    }

    /// Where the range of each pod begins.
    pub(crate) fn ids_in_use(&self) -> BTreeSet<u32> {
        self.table.lock().values().map(|pod| pod.ids.base).collect()
    }

    /// Every address that a pod has.
    pub(crate) fn addresses(&self) -> BTreeSet<Ipv4Addr> {
        self.table.lock().values().filter_map(Pod::address).collect()
    }
}

fn newly_ended(known: &[ContainerStatus], now: &[ContainerStatus]) -> Vec<ContainerStatus> {
    let was_told = |container: &ContainerStatus| {
        known.iter().any(|other| {
            (&other.name, other.attempt) == (&container.name, container.attempt)
                && matches!(other.state, ContainerState::Exited(_))
        })
    };
    now.iter()
        .filter(|container| matches!(container.state, ContainerState::Exited(_)) && !was_told(container))
        .cloned()
        .collect()
}

fn exited(pod_uid: &str, container: ContainerStatus) -> Option<Event> {
    let ContainerState::Exited(exit) = container.state else {
        return None;
    };
    let (container, attempt) = (container.name, container.attempt);
    Some(Event::ContainerExited(ContainerExited {
        pod_uid: pod_uid.to_owned(),
        container,
        attempt,
        exit,
    }))
}

/// Nobody saw how it ended: the kernel killed it with its shim.
fn end_unknown(container: &mut ContainerStatus) {
    if let ContainerState::Running { started_at, .. } = container.state {
        container.state = ContainerState::Exited(Exit {
            exit_code: 128 + libc::SIGKILL,
            signal: Some(libc::SIGKILL),
            started_at,
            finished_at: SystemTime::now(),
            oom_killed: false,
            lost: true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(containers: &[(&str, u32, bool)]) -> PodState {
        let container = |(name, attempt, runs): &(&str, u32, bool)| {
            let started_at = SystemTime::UNIX_EPOCH;
            let mut status = ContainerStatus {
                name: (*name).to_owned(),
                attempt: *attempt,
                user: None,
                state: ContainerState::Running { pid: 1, started_at },
            };
            if !runs {
                end_unknown(&mut status);
            }
            status
        };
        PodState {
            version: 1,
            shim_pid: 1,
            shim_start_ticks: 1,
            created_at: SystemTime::UNIX_EPOCH,
            stopped: false,
            has_limits: true,
            containers: containers.iter().map(container).collect(),
        }
    }

    fn told(events: &mut Events) -> Vec<String> {
        let mut seen: Vec<Event> = events.already.drain(..).collect();
        while let Ok(event) = events.receiver.try_recv() {
            seen.push(event);
        }
        let name = |event: &Event| match event {
            Event::ContainerExited(exited) => format!("{}/{}", exited.container, exited.attempt),
            Event::SandboxLost { .. } => "lost".to_owned(),
            Event::Resync => "resync".to_owned(),
        };
        seen.iter().map(name).collect()
    }

    #[test]
    fn every_exit_is_told_once_and_again_to_who_comes_later() {
        let pods = Pods::new();
        let pod = Pod::reserved(IdRange { base: 0 });
        pods.with(|table| table.insert("p".to_owned(), pod));
        let mut events = pods.events();
        pods.update("p", state(&[("web", 0, true)]));
        assert_eq!(told(&mut events), [""; 0]);
        pods.update("p", state(&[("web", 0, false), ("web", 1, true)]));
        pods.update("p", state(&[("web", 0, false), ("web", 1, true)]));
        assert_eq!(told(&mut events), ["web/0"]);
        let mut later = pods.events();
        assert_eq!(told(&mut later), ["web/0"]);
        pods.lost("p", |_| Ok(())).expect("kept");
        assert_eq!(told(&mut events), ["web/1", "lost"]);
        assert_eq!(told(&mut later), ["web/1", "lost"]);
        assert!(!pods.is_running("p", "web"));
    }
}
