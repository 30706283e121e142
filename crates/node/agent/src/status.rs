//! The status of a pod as the API shows it, computed from what the node knows.
//!
//! Phases and conditions follow `pkg/kubelet/kubelet_pods.go` (`getPhase`) and `pkg/kubelet/status/generate.go`,
//! Kubernetes 1.36.

use std::{borrow::Cow, time::Duration};

use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    lifecycle::{Progress, progress},
    pod::{Container, Pod, ReadinessGate, Resources, VolumeMount},
    records::{ContainerRecord, EXIT_LOST, Ended, Records, RunState, Waiting},
    termination_message,
};

/// The conditions that a node sets and nobody else.
const OWN_CONDITIONS: [&str; 6] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    LIVE_SUBPATH,
];

/// Of a container that had not run when its pod was ended (`pkg/kubelet/status/status_manager.go`, Kubernetes 1.36).
const NEVER_STARTED: &str = "The container could not be located when the pod was terminated";

/// The condition that says whether subPath mounts follow their volumes, on pods that ask for it.
const LIVE_SUBPATH: &str = "hotmap.dev/LiveSubPath";

/// What is true of the pod outside its containers.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodGround {
    pub(crate) host_ip: String,
    /// Empty until the sandbox stands.
    pub(crate) pod_ip: String,
    pub(crate) start_time: Option<Timestamp>,
    /// Conditions that others set.
    pub(crate) foreign_conditions: Vec<Value>,
    /// The pod is deleted and nothing of it will run again: how it ended is its last phase.
    pub(crate) is_over: bool,
    /// Why the node refuses the pod altogether.
    pub(crate) refusal: Option<Refusal>,
    /// Why the node has ended the pod.
    pub(crate) failure: Option<Failure>,
    /// The controllers that this machine, or the pod's shim, does not put limits into force with.
    pub(crate) unenforced: Vec<&'static str>,
    /// How the subPath mounts stand, if they shall follow their volumes or did.
    pub(crate) live_subpath: Option<LiveSubPaths>,
}

/// How the subPath mounts of a pod stand; what is wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LiveSubPaths {
    /// The pod does not ask any more.
    NotAsked,
    Follow,
    Behind(String),
    Unavailable(String),
}

impl LiveSubPaths {
    fn condition(&self) -> Condition {
        let (status, reason, message) = match self {
            Self::NotAsked => (false, "NotAsked", String::new()),
            Self::Follow => (true, "Following", String::new()),
            Self::Behind(why) => (false, "Behind", why.clone()),
            Self::Unavailable(why) => (false, "Unavailable", why.clone()),
        };
        Condition {
            kind: LIVE_SUBPATH,
            status,
            reason,
            message,
        }
    }
}

/// A pod that this node will never run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Why a pod that could run shall not run any longer, in the words of its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: Cow<'static, str>,
    /// What its containers have left, if that is less than the pod gives them.
    pub(crate) grace: Option<Duration>,
}

impl Failure {
    /// Of a pod that the API has as failed: it stays so, whatever its containers would do by themselves. One that was refused
    /// has no containers there; it is judged anew.
    pub(crate) fn in_status(status: &Value) -> Option<Self> {
        let text = |field: &str| Cow::Owned(status[field].as_str().unwrap_or_default().to_owned());
        let has_containers = status["containerStatuses"].is_array();
        (status["phase"] == "Failed" && has_containers).then(|| Self {
            reason: text("reason"),
            message: text("message"),
            grace: None,
        })
    }
}

/// Computes `status`. Conditions keep their transition time from `pod.status` as long as they do not change.
pub(crate) fn pod_status(pod: &Pod, records: &Records, ground: &PodGround, now: Timestamp) -> Value {
    let mut status = Map::new();
    let phase = if ground.refusal.is_some() {
        "Failed"
    } else {
        phase(pod, records, ground)
    };
    status.insert("phase".into(), phase.into());
    status.insert("observedGeneration".into(), pod.metadata.generation.into());
    if let Some(refusal) = &ground.refusal {
        status.insert("reason".into(), refusal.reason.into());
        status.insert("message".into(), refusal.message.clone().into());
    }
    if let Some(failure) = ground.failure.as_ref().filter(|_| phase == "Failed") {
        for (field, text) in [("reason", &failure.reason), ("message", &failure.message)] {
            if !text.is_empty() {
                status.insert(field.into(), text.as_ref().into());
            }
        }
    }
    status.insert("hostIP".into(), ground.host_ip.clone().into());
    status.insert("hostIPs".into(), json!([{"ip": ground.host_ip}]));
    if !ground.pod_ip.is_empty() {
        status.insert("podIP".into(), ground.pod_ip.clone().into());
        status.insert("podIPs".into(), json!([{"ip": ground.pod_ip}]));
    }
    if let Some(start_time) = ground.start_time {
        status.insert("startTime".into(), timestamp::seconds(start_time).into());
    }
    status.insert("conditions".into(), conditions(pod, records, ground, phase, now));
    if ground.refusal.is_none() {
        // Of a pod that has got as far as its main containers.
        let is_lost =
            ground.failure.is_some() && phase == "Failed" && incomplete(pod, records, ground).is_empty();
        let statuses = |containers: &[Container], role: Role| -> Value {
            let is_lost = is_lost && role != Role::Init;
            containers
                .iter()
                .map(|container| {
                    let mut status = container_status(pod, container, records, role, is_lost);
                    if let Some(record) = records.get(&container.name) {
                        add_what_it_has(&mut status, container, record, &ground.unenforced);
                    }
                    status
                })
                .collect()
        };
        let spec = &pod.spec;
        status.insert("containerStatuses".into(), statuses(&spec.containers, Role::Main));
        for (field, containers, role) in [
            ("initContainerStatuses", &spec.init_containers, Role::Init),
            (
                "ephemeralContainerStatuses",
                &spec.ephemeral_containers,
                Role::Ephemeral,
            ),
        ] {
            if !containers.is_empty() {
                status.insert(field.into(), statuses(containers, role));
            }
        }
    }
    status.into()
}

fn phase(pod: &Pod, records: &Records, ground: &PodGround) -> &'static str {
    let record = |container: &Container| records.get(&container.name);
    let runs = |container: &Container| record(container).is_some_and(ContainerRecord::is_running);
    // One that is waiting for its first hook has not begun for anybody else.
    let has_begun = |container: &Container| {
        record(container).is_some_and(|one| one.attempt.is_some() && (!one.is_starting || one.last.is_some()))
    };
    let is_here = |container: &Container| record(container).is_some_and(|one| one.in_sandbox);
    let main = &pod.spec.containers;
    match progress(pod, records, ground.failure.is_some()) {
        // How it ended is said once nothing of it runs.
        Progress::Finished { .. } if pod.all_containers().any(runs) => {
            if main.iter().all(has_begun) {
                "Running"
            } else {
                "Pending"
            }
        }
        Progress::Finished { succeeded: true } => "Succeeded",
        Progress::Finished { succeeded: false } => "Failed",
        // A sidecar that is started again takes nobody back to the beginning.
        Progress::Init { .. } if !main.iter().any(is_here) => "Pending",
        Progress::Init { .. } | Progress::Main if !main.iter().all(has_begun) => "Pending",
        Progress::Init { .. } | Progress::Main => {
            let ends: Option<Vec<&Ended>> = main.iter().map(|container| record(container)?.ended()).collect();
            match ends.filter(|_| ground.is_over) {
                None => "Running",
                Some(ends) if ends.iter().all(|ended| ended.exit_code == 0) => "Succeeded",
                Some(_) => "Failed",
            }
        }
    }
}

/// The init containers that have not done their part, in their order; none once a main container has started.
fn incomplete<'a>(pod: &'a Pod, records: &Records, ground: &PodGround) -> Vec<&'a str> {
    let record = |container: &Container| records.get(&container.name);
    let mut main = pod.spec.containers.iter();
    let has_started = match progress(pod, records, ground.failure.is_some()) {
        Progress::Init { .. } => main.any(|one| record(one).is_some_and(|one| one.in_sandbox)),
        Progress::Main => true,
        Progress::Finished { .. } => main.any(|one| record(one).is_some_and(|one| one.attempt.is_some())),
    };
    let is_complete = |container: &Container| match record(container) {
        Some(record) if container.is_lasting() => record.is_up(),
        Some(record) => record.ended().is_some_and(|ended| ended.exit_code == 0),
        None => false,
    };
    let init = pod.spec.init_containers.iter();
    init.filter(|container| !has_started && !is_complete(container))
        .map(|container| container.name.as_str())
        .collect()
}

fn conditions(pod: &Pod, records: &Records, ground: &PodGround, phase: &str, now: Timestamp) -> Value {
    let finished = match phase {
        "Succeeded" => Some("PodCompleted"),
        "Failed" => Some("PodFailed"),
        _ => None,
    };
    let has_network = !ground.pod_ip.is_empty() && finished.is_none();
    // Nobody sends requests to a pod that is being ended.
    let finished = finished.or(ground.failure.as_ref().map(|_| "PodFailed"));
    let unready: Vec<&str> = pod
        .lasting_containers()
        .map(|one| one.name.as_str())
        .filter(|name| !is_ready(records, name))
        .collect();
    let incomplete = incomplete(pod, records, ground);
    let listed = |what: &str, names: &[&str]| format!("containers with {what} status: [{}]", names.join(" "));
    let readiness = |kind: &'static str| match (finished, unready.as_slice()) {
        (Some(reason), _) => Condition {
            kind,
            status: false,
            reason,
            message: String::new(),
        },
        (None, []) => Condition {
            kind,
            status: true,
            reason: "",
            message: String::new(),
        },
        (None, names) => Condition {
            kind,
            status: false,
            reason: "ContainersNotReady",
            message: listed("unready", names),
        },
    };
    let initialized = match incomplete.as_slice() {
        [] => Condition {
            kind: "Initialized",
            status: true,
            reason: finished.filter(|one| *one == "PodCompleted").unwrap_or_default(),
            message: String::new(),
        },
        names => Condition {
            kind: "Initialized",
            status: false,
            reason: "ContainersNotInitialized",
            message: listed("incomplete", names),
        },
    };
    let computed = [
        Condition {
            kind: "PodReadyToStartContainers",
            status: has_network,
            reason: "",
            message: String::new(),
        },
        initialized,
        ready(readiness("Ready"), pod, &ground.foreign_conditions),
        readiness("ContainersReady"),
        Condition {
            kind: "PodScheduled",
            status: true,
            reason: "",
            message: String::new(),
        },
    ];
    let live_subpath = ground.live_subpath.as_ref().map(LiveSubPaths::condition);
    computed
        .iter()
        .chain(&live_subpath)
        .map(|condition| condition.document(pod, now))
        .collect()
}

/// A pod whose containers are ready is so once its readiness gates are open too.
fn ready(containers: Condition, pod: &Pod, foreign: &[Value]) -> Condition {
    if !containers.status {
        return containers;
    }
    let closed = |gate: &ReadinessGate| {
        let kind = &gate.condition_type;
        let Some(condition) = foreign.iter().find(|one| one["type"] == kind.as_str()) else {
            return Some(format!(
                "corresponding condition of pod readiness gate {kind:?} does not exist."
            ));
        };
        let status = condition["status"].as_str().unwrap_or_default();
        (status != "True")
            .then(|| format!(r#"the status of pod readiness gate {kind:?} is not "True", but {status}"#))
    };
    let closed: Vec<String> = pod.spec.readiness_gates.iter().filter_map(closed).collect();
    if closed.is_empty() {
        return containers;
    }
    Condition {
        status: false,
        reason: "ReadinessGatesNotReady",
        message: closed.join(", "),
        ..containers
    }
}

/// The conditions in a pod's status that are not the node's.
pub(crate) fn foreign_conditions(status: &Value) -> Vec<Value> {
    let held = status["conditions"].as_array().into_iter().flatten();
    held.filter(|one| !OWN_CONDITIONS.iter().any(|own| one["type"] == *own))
        .cloned()
        .collect()
}

fn is_ready(records: &Records, name: &str) -> bool {
    records
        .get(name)
        .is_some_and(|record| record.is_running() && record.ready && !record.is_starting)
}

struct Condition {
    kind: &'static str,
    status: bool,
    reason: &'static str,
    message: String,
}

impl Condition {
    fn document(&self, pod: &Pod, now: Timestamp) -> Value {
        let status = if self.status { "True" } else { "False" };
        let held = pod.status["conditions"].as_array().into_iter().flatten();
        let mut same = held.filter(|one| one["type"] == self.kind && one["status"] == status);
        let since = same.find_map(|one| one["lastTransitionTime"].as_str().map(str::to_owned));
        let mut document = json!({
            "type": self.kind, "status": status, "lastProbeTime": null,
            "lastTransitionTime": since.unwrap_or_else(|| timestamp::seconds(now)),
            "observedGeneration": pod.metadata.generation,
        });
        if !self.reason.is_empty() {
            document["reason"] = self.reason.into();
        }
        if !self.message.is_empty() {
            document["message"] = self.message.clone().into();
        }
        document
    }
}

/// Which list of the pod a container is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Init,
    Main,
    Ephemeral,
}

/// `is_lost`: it will never run again, so that it waits for nothing.
fn container_status(pod: &Pod, container: &Container, records: &Records, role: Role, is_lost: bool) -> Value {
    let fresh = ContainerRecord::default();
    let record = records.get(&container.name).unwrap_or(&fresh);
    // An init container that has to end is ready once it has, and has no startup probe to wait for.
    let ends = role == Role::Init && !container.is_lasting();
    let ready = match role {
        // Nobody asks one that only looks at others.
        Role::Ephemeral => false,
        Role::Init if ends => record.ended().is_some_and(|ended| ended.exit_code == 0),
        Role::Init | Role::Main => is_ready(records, &container.name),
    };
    let mut status = json!({
        "name": container.name, "image": container.image, "imageID": image_id(container, record), "ready": ready,
        "restartCount": record.attempt.unwrap_or_default(), "state": state(pod, record), "lastState": {},
    });
    if role != Role::Ephemeral {
        let started = record.is_running() && !record.is_starting && (ends || record.started_up);
        status["started"] = started.into();
    }
    if !container.volume_mounts.is_empty() {
        let mounts = container.volume_mounts.iter().map(mount_status);
        status["volumeMounts"] = mounts.collect();
    }
    if let Some(attempt) = record.attempt {
        status["containerID"] = container_id(pod, container, attempt).into();
    }
    if let Some(last) = &record.last {
        status["lastState"] = json!({"terminated": ended(pod, container, last)});
    }
    match &record.state {
        RunState::Ended(one) => status["state"] = json!({"terminated": ended(pod, container, one)}),
        RunState::Waiting(_) if is_lost => {
            status["state"] = match &record.last {
                Some(last) => json!({"terminated": ended(pod, container, last)}),
                None => json!({"terminated": {"exitCode": EXIT_LOST, "reason": "ContainerStatusUnknown",
                    "message": NEVER_STARTED, "startedAt": null, "finishedAt": null}}),
            };
            status["lastState"] = json!({});
        }
        RunState::Waiting(_) | RunState::Running { .. } => {}
    }
    status
}

/// Who the process of the newest attempt is, and what of the machine it was given; nothing before the first attempt
/// (`convertToAPIContainerStatuses` in `pkg/kubelet/kubelet_pods.go`, Kubernetes 1.36).
fn add_what_it_has(status: &mut Value, container: &Container, record: &ContainerRecord, unenforced: &[&str]) {
    if record.attempt.is_none() {
        return;
    }
    if let Some(user) = &record.user {
        status["user"] =
            json!({"linux": {"uid": user.uid, "gid": user.gid, "supplementalGroups": user.groups}});
    }
    // Of a container that does not run this is what it would have.
    let unenforced = if record.is_running() { unenforced } else { &[] };
    let Resources { limits, requests } = &container.resources;
    status["resources"] = json!({});
    // Memory that is asked for is no limit; it counts when the machine has none left.
    for (field, amounts, always) in [("limits", limits, ""), ("requests", requests, "memory")] {
        let in_force = |name: &str| name == always || !unenforced.contains(&name);
        let enacted: Map<String, Value> = amounts
            .iter()
            .filter(|(name, _)| in_force(name))
            .map(|(name, amount)| (name.clone(), amount.clone().into()))
            .collect();
        if !enacted.is_empty() {
            status["resources"][field] = enacted.into();
        }
    }
    if !requests.is_empty() {
        status["allocatedResources"] = json!(requests);
    }
}

/// A read-only mount is so with everything mounted in it.
fn mount_status(mount: &VolumeMount) -> Value {
    let mut status = json!({"name": mount.name, "mountPath": mount.mount_path});
    if mount.read_only {
        status["readOnly"] = true.into();
        status["recursiveReadOnly"] = "Enabled".into();
    }
    status
}

fn state(pod: &Pod, record: &ContainerRecord) -> Value {
    let creating = Waiting {
        reason: "ContainerCreating",
        message: String::new(),
    };
    match &record.state {
        RunState::Running { started_at } if !record.is_starting => {
            json!({"running": {"startedAt": timestamp::seconds(*started_at)}})
        }
        RunState::Ended(_) => json!({}),
        state => {
            let waiting = match state {
                RunState::Waiting(waiting) => waiting,
                _ => &creating,
            };
            // Upstream's word in a pod with init containers, for these too.
            let has_init = !pod.spec.init_containers.is_empty();
            let reason = if waiting.reason == "ContainerCreating" && has_init {
                "PodInitializing"
            } else {
                waiting.reason
            };
            let mut document = json!({"waiting": {"reason": reason}});
            if !waiting.message.is_empty() {
                document["waiting"]["message"] = waiting.message.clone().into();
            }
            document
        }
    }
}

fn ended(pod: &Pod, container: &Container, ended: &Ended) -> Value {
    let mut document = json!({
        "exitCode": ended.exit_code, "reason": ended.reason,
        "startedAt": timestamp::seconds(ended.started_at), "finishedAt": timestamp::seconds(ended.finished_at),
        "containerID": container_id(pod, container, ended.attempt),
    });
    let message = termination_message::share(&ended.message, pod.all_containers().count());
    if !message.is_empty() {
        document["message"] = message.into();
    }
    if let Some(signal) = ended.signal {
        document["signal"] = signal.into();
    }
    document
}

/// A URI as the field asks for; there is no image store to look it up in.
fn container_id(pod: &Pod, container: &Container, attempt: u32) -> String {
    format!("hotmap://{}/{}/{attempt}", pod.metadata.uid, container.name)
}

fn image_id(container: &Container, record: &ContainerRecord) -> String {
    if record.attempt.is_some() {
        format!("host://{}", container.image)
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests;
