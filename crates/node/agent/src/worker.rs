//! One pod on this node: looks, decides, acts, reports; for as long as the pod is here.
//!
//! Whatever happens (an edit, an exit, a probe, a volume) only wakes the worker. What it does follows from what it then sees.

mod end;
mod env;
mod hooks;
mod judge;
mod live;
mod mounts;
mod publish;
mod sandbox;
mod start;
mod status_writer;
mod stop;
mod storage;
mod termination;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use hotmap_client::{Client, ResourcePath};
use hotmap_clock::ActiveTime;
use hotmap_runtime::{ContainerState, Runtime, Sandbox, SandboxState};
use jiff::Timestamp;
use tokio::sync::watch;
use tracing::info;

use crate::{
    active_deadline, backoff,
    environment::Environment,
    events::{Recorder, Subject},
    fields::PodFacts,
    host_ports::HostPorts,
    images::Images,
    lifecycle::{self, Decision, Ground, Progress, Step},
    node::Machine,
    nudge::Nudge,
    objects::{self, ObjectCache},
    pod::{Pod, Volume},
    pod_files::Standing,
    pod_socket::PodSockets,
    probes::{Attempt, Probes},
    records::{Ended, Records, RunState, recover},
    references,
    report::{Reports, Snapshots},
    status::{Failure, PodGround, Refusal, foreign_conditions, pod_status},
    tokens::TokenCache,
    volumes::{Placement, VolumeManager},
};
pub(crate) use end::{remove_logs, remove_volumes};
use env::EnvRestarts;
use hooks::PostStarts;
use live::Live;
use publish::Published;
use sandbox::SandboxTries;
use start::ToldFailure;
use status_writer::StatusWriter;
use stop::Stops;
use storage::StorageWatch;

/// Pause before something that failed without telling when it will be better is tried again (kubelet: 10 s and jitter).
const RETRY: Duration = Duration::from_secs(10);

/// What all workers of a node share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    pub(crate) objects: Arc<ObjectCache>,
    pub(crate) tokens: Arc<TokenCache>,
    pub(crate) volumes: VolumeManager,
    pub(crate) placement: Placement,
    pub(crate) reports: Reports,
    pub(crate) sockets: PodSockets,
    pub(crate) snapshots: Snapshots,
    pub(crate) images: Images,
    pub(crate) recorder: Recorder,
    pub(crate) machine: Machine,
    pub(crate) log_root: PathBuf,
    pub(crate) allow_privileged: bool,
    /// Processes that the containers of one pod may have together.
    pub(crate) pod_max_pids: Option<u64>,
    /// One pod of the node is measured at a time.
    pub(crate) measuring: tokio::sync::Semaphore,
    /// Where pods find the API, as variables of every container.
    pub(crate) service_environment: ServiceEnvironment,
    /// What pods that share the host's network say about its ports.
    pub(crate) host_ports: HostPorts,
    /// The file that says how names are resolved, if it is not the host's own.
    pub(crate) resolv_conf: Option<PathBuf>,
    /// That there is no cluster DNS is told once.
    pub(crate) told_of_cluster_dns: AtomicBool,
}

/// Where pods find the API.
#[derive(Debug)]
pub(crate) struct ServiceEnvironment {
    /// Those with a network of their own.
    pub(crate) on_the_bridge: Environment,
    /// Those that share the host's.
    pub(crate) on_the_host: Environment,
}

impl ServiceEnvironment {
    fn of(&self, standing: &Standing) -> &Environment {
        match standing.shares_network {
            true => &self.on_the_host,
            false => &self.on_the_bridge,
        }
    }
}

/// What the API says about the pod.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    Here {
        pod: Arc<Pod>,
        spec: Arc<serde_json::Value>,
    },
    /// The object is gone; `Arc<Pod>` is its last state.
    Gone(Arc<Pod>),
}

/// One pod's worker.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    wanted: watch::Receiver<Wanted>,
    nudge: Arc<Nudge>,
    uid: String,
    records: Records,
    probes: Probes,
    status: StatusWriter,
    start_time: Timestamp,
    /// Conditions of the pod that others set: readiness may wait for them.
    foreign_conditions: Vec<serde_json::Value>,
    /// The pod is deleted and nothing of it runs any more.
    is_over: bool,
    refusal: Option<Refusal>,
    /// Why the node has ended the pod.
    failure: Option<Failure>,
    active: ActiveTime,
    /// When the pod's time is up.
    deadline: Option<tokio::time::Instant>,
    /// What was handed to the volumes, so that an unchanged pod hands nothing over.
    published: Option<Published>,
    /// Failed attempts of volumes that an event has told of.
    told_failures: BTreeMap<String, u64>,
    /// Hidden keys that an event has told of, by volume.
    told_shadowed: BTreeMap<String, Vec<String>>,
    /// Failed starts that an event has told of, by container.
    told_starts: BTreeMap<String, ToldFailure>,
    sandboxes: SandboxTries,
    stops: Stops,
    hooks: PostStarts,
    live: Live,
    env: EnvRestarts,
    /// Nothing of it is left here, and the API was asked to delete it: only its word is waited for.
    is_taken_down: bool,
    storage: StorageWatch,
    retry_at: Option<Timestamp>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, wanted: watch::Receiver<Wanted>, nudge: Arc<Nudge>) -> Self {
        let pod = wanted.borrow().pod();
        let sandbox = shared.runtime.sandbox(&pod.metadata.uid);
        let started = pod.status["startTime"]
            .as_str()
            .and_then(|text| text.parse().ok());
        let now = Timestamp::now();
        let start_time = started.unwrap_or(now);
        Self {
            uid: pod.metadata.uid.clone(),
            records: recover(&pod, sandbox.as_ref(), now),
            probes: Probes::new(
                shared.runtime.clone(),
                shared.recorder.clone(),
                Arc::clone(&nudge),
            ),
            status: StatusWriter::start(shared.client.clone(), &pod, Arc::clone(&nudge)),
            start_time,
            foreign_conditions: Vec::new(),
            is_over: false,
            refusal: None,
            failure: Failure::in_status(&pod.status),
            active: ActiveTime::new(start_time, now, tokio::time::Instant::now()),
            deadline: None,
            published: None,
            told_failures: BTreeMap::new(),
            told_shadowed: BTreeMap::new(),
            told_starts: BTreeMap::new(),
            sandboxes: SandboxTries::default(),
            stops: Stops::default(),
            hooks: PostStarts::default(),
            live: Live::default(),
            env: EnvRestarts::default(),
            is_taken_down: false,
            storage: StorageWatch::default(),
            retry_at: None,
            shared,
            wanted,
            nudge,
        }
    }

    /// Runs until nothing of the pod is left on this node.
    pub(crate) async fn run(mut self) {
        self.judge();
        let mut sync_at = self.next_sync();
        // A look and its deeds are on the heap while they last: a worker that waits is small.
        while Box::pin(self.reconcile()).await {
            let until = self.retry_at.take().map(|at| {
                let wait = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
                tokio::time::Instant::now() + wait
            });
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() { return },
                () = self.nudge.woken() => {}
                () = self.stops.next_ended() => {}
                () = self.hooks.next_ended() => {}
                message = self.storage.exceeded() => self.evict(message),
                () = sleep_until(until) => {}
                () = sleep_until(self.deadline) => {}
                () = tokio::time::sleep_until(sync_at) => {
                    self.sync();
                    sync_at = self.next_sync();
                }
            }
        }
    }

    /// The net: what is on disk is compared, and where nobody tells of changes it is asked for them.
    fn sync(&self) {
        if self.published.is_some() && !self.is_taken_down {
            self.shared.volumes.verify(&self.uid);
            self.shared
                .objects
                .look_soon(references::of_pod(&self.wanted.borrow().pod()));
        }
    }

    fn next_sync(&self) -> tokio::time::Instant {
        let frequency = self.shared.objects.sync_frequency();
        tokio::time::Instant::now() + objects::sync_period(frequency, objects::random_fraction())
    }

    /// One look and what follows from it; false once the pod is gone from here.
    async fn reconcile(&mut self) -> bool {
        let wanted = self.wanted.borrow_and_update().clone();
        let mut pod = wanted.pod();
        self.foreign_conditions = foreign_conditions(&pod.status);
        if let Some(written) = self.status.last() {
            // What we wrote is newer than what the watch has brought.
            Arc::make_mut(&mut pod).set_status(written);
        }
        let is_orphan = matches!(wanted, Wanted::Gone(_));
        if is_orphan {
            self.status.end();
        }
        if self.is_taken_down {
            return !is_orphan;
        }
        if self.refusal.is_some() {
            return self.reconcile_refused(&pod, &wanted).await;
        }
        self.conclude_hooks(&pod);
        for container in &pod.spec.ephemeral_containers {
            // They come while the pod runs.
            self.records.entry(container.name.clone()).or_default();
        }
        let (sandbox, has_remains) = self.look(&pod).await;
        if !is_orphan {
            self.keep_deadline(&pod);
        }
        let is_finished = self.is_finished(&pod);
        if is_finished {
            // Whether the API knows is asked of the status as it is now.
            self.report(&pod, sandbox.as_ref());
        } else if !is_orphan && !pod.is_deleting() {
            self.publish_volumes(&pod).await;
        }
        let now = Timestamp::now();
        let ground = Ground {
            has_sandbox: sandbox.is_some(),
            has_volumes: self.has_volumes(&pod),
            is_orphan,
            has_remains,
            is_told: self.status.is_settled(),
            has_failed: self.failure.is_some(),
            failure_grace: self.failure.as_ref().and_then(|failure| failure.grace),
            sandbox_not_before: self.sandboxes.not_before(sandbox.is_some(), now),
        };
        let decision = lifecycle::decide(&pod, &self.records, ground, now);
        self.retry_at = min(self.retry_at, decision.look_again);
        if decision.steps == [Step::TakeDown] {
            self.is_over = true;
            self.report(&pod, sandbox.as_ref());
            return !self.take_down(&pod, &wanted).await;
        }
        self.nudge.wait_for_objects(false);
        let acted = self.act(&pod, sandbox.is_some(), decision).await;
        // Each step makes a new state, and the next one follows from that.
        let sandbox = if acted { self.look(&pod).await.0 } else { sandbox };
        self.follow_sub_paths(&pod);
        self.restart_for_environment(&pod).await;
        self.watch_storage(&pod, sandbox.is_some());
        self.report(&pod, sandbox.as_ref());
        if acted {
            self.nudge.wake();
        }
        true
    }

    async fn reconcile_refused(&mut self, pod: &Arc<Pod>, wanted: &Wanted) -> bool {
        self.report(pod, None);
        if self.shared.runtime.sandbox(&self.uid).is_some() {
            // It ran under other flags; what has failed must not go on running.
            self.retire(pod).await;
        }
        if pod.is_deleting() || matches!(wanted, Wanted::Gone(_)) {
            !self.take_down(pod, wanted).await
        } else {
            true
        }
    }

    /// The sandbox, if it can run containers, and whether there is any; takes over what runtime and probes know.
    async fn look(&mut self, pod: &Arc<Pod>) -> (Option<Sandbox>, bool) {
        let sandbox = self.shared.runtime.sandbox(&self.uid);
        self.observe(pod, sandbox.as_ref());
        self.read_messages(pod).await;
        self.note_host_ports(pod, sandbox.as_ref());
        let has_remains = sandbox.is_some();
        (
            sandbox.filter(|sandbox| sandbox.state == SandboxState::Ready),
            has_remains,
        )
    }

    fn observe(&mut self, pod: &Arc<Pod>, sandbox: Option<&Sandbox>) {
        let is_ready = sandbox.is_some_and(|sandbox| sandbox.state == SandboxState::Ready);
        let ip = self.standing(sandbox).ip;
        for container in pod.all_containers() {
            let Some(record) = self.records.get_mut(&container.name) else {
                continue;
            };
            let seen = sandbox.and_then(|sandbox| sandbox.container(&container.name));
            if let Some(seen) = seen
                && is_ready
                && record.adopt(seen)
            {
                info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, container = %container.name,
                    attempt = seen.attempt, "container was started although nobody heard of it");
            }
            let RunState::Running { started_at } = record.state else {
                continue;
            };
            let attempt = record.attempt.unwrap_or_default();
            let exit = match seen {
                Some(seen) if seen.attempt == attempt => match &seen.state {
                    ContainerState::Running { .. } if is_ready => None,
                    ContainerState::Running { .. } => {
                        Some(Ended::lost(attempt, started_at, Timestamp::now()))
                    }
                    ContainerState::Exited(exit) => Some(Ended::from_exit(attempt, exit)),
                },
                Some(_) if is_ready => None,
                _ => Some(Ended::lost(attempt, started_at, Timestamp::now())),
            };
            match exit {
                Some(ended) => {
                    info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, container = %container.name,
                        exit_code = ended.exit_code, reason = ended.reason, "container ended");
                    self.probes.end(&container.name);
                    let (uid, name) = (&self.uid, &container.name);
                    self.shared.reports.note(|ledger, _| ledger.stopped(uid, name));
                    self.stops.ended(&container.name);
                    self.hooks.cancel(&container.name);
                    let policy = pod.restart_policy_of(&container.name);
                    let starts_again = lifecycle::restarts(policy, ended.exit_code);
                    record.exited(ended);
                    if let Some(message) = record.hook_failure.take().filter(|_| starts_again) {
                        record.waits("PostStartHookError", message);
                    }
                }
                // Nobody asks a container anything before its hook has ended.
                None if record.is_starting => {
                    record.ready = false;
                }
                None => {
                    let attempt = Attempt {
                        number: attempt,
                        started_at,
                        was_started: record.started_up,
                        was_ready: record.ready,
                    };
                    self.probes.begin(pod, container, attempt, &ip);
                    let findings = self.probes.findings(&container.name);
                    record.started_up = findings.is_started;
                    record.ready = findings.is_ready;
                }
            }
        }
    }

    async fn act(&mut self, pod: &Arc<Pod>, has_sandbox: bool, decision: Decision) -> bool {
        let mut acted = false;
        for step in decision.steps {
            match step {
                Step::MakeSandbox => acted |= self.make_sandbox(pod).await,
                Step::Start { container, attempt } => {
                    acted |= self.start_container(pod, &container, attempt).await
                }
                Step::BackOff { container, wait } => self.back_off(pod, &container, wait),
                Step::Stop {
                    container,
                    grace,
                    is_due,
                } => self.stop(pod, container, grace, is_due),
                Step::StopSandbox => acted |= self.stop_sandbox(pod).await,
                Step::Retire => acted |= self.retire(pod).await,
                Step::TakeDown => {}
            }
        }
        if has_sandbox && !pod.is_deleting() {
            self.stop_dead(pod);
        }
        acted
    }

    fn back_off(&mut self, pod: &Arc<Pod>, container: &str, wait: Duration) {
        let Some(record) = self.records.get_mut(container) else {
            return;
        };
        if matches!(&record.state, RunState::Waiting(waiting) if waiting.reason == "CrashLoopBackOff") {
            return;
        }
        let metadata = &pod.metadata;
        let pod_shown = format!("{}_{}({})", metadata.name, metadata.namespace, metadata.uid);
        let shown = backoff::shown(wait);
        record.waits(
            "CrashLoopBackOff",
            format!("back-off {shown} restarting failed container={container} pod={pod_shown}"),
        );
        let message = format!("Back-off restarting failed container {container} in pod {pod_shown}");
        self.shared
            .recorder
            .warning(Subject::container(pod, container), "BackOff", message);
    }

    fn facts(&self, sandbox: Option<&Sandbox>) -> PodFacts {
        PodFacts {
            node_name: self.shared.machine.name.clone(),
            host_ip: self.shared.machine.internal_ip.clone(),
            pod_ip: self.standing(sandbox).ip,
            allocatable: self.shared.machine.allocatable(),
        }
    }

    fn pod_ip(&self) -> String {
        self.standing(self.shared.runtime.sandbox(&self.uid).as_ref()).ip
    }

    /// A pod that shares the host's network has the node's address.
    fn standing(&self, sandbox: Option<&Sandbox>) -> Standing {
        let own = sandbox.and_then(|sandbox| sandbox.ip);
        let shares_network = sandbox.is_some() && own.is_none();
        Standing {
            ip: match own {
                Some(ip) => ip.to_string(),
                None if shares_network => self.shared.machine.internal_ip.clone(),
                None => String::new(),
            },
            shares_network,
        }
    }

    /// Two pods that want the same port of the host are told so; which of them has it shows in their logs.
    fn note_host_ports(&self, pod: &Pod, sandbox: Option<&Sandbox>) {
        if !self.standing(sandbox).shares_network {
            return self.shared.host_ports.release(&self.uid);
        }
        for conflict in self.shared.host_ports.claim(pod) {
            let recorder = &self.shared.recorder;
            recorder.warning(Subject::pod(pod), "HostPortConflict", conflict);
        }
    }

    fn report(&self, pod: &Pod, sandbox: Option<&Sandbox>) {
        let ground = PodGround {
            host_ip: self.shared.machine.internal_ip.clone(),
            pod_ip: self.standing(sandbox).ip,
            start_time: Some(self.start_time),
            foreign_conditions: self.foreign_conditions.clone(),
            is_over: self.is_over,
            refusal: self.refusal.clone(),
            failure: self.failure.clone(),
            unenforced: self.unenforced(sandbox),
            live_subpath: self.live_sub_paths(pod),
        };
        self.status
            .write(pod_status(pod, &self.records, &ground, Timestamp::now()));
    }

    /// Nothing of the pod shall run any more.
    fn is_finished(&self, pod: &Pod) -> bool {
        let progress = lifecycle::progress(pod, &self.records, self.failure.is_some());
        matches!(progress, Progress::Finished { .. })
    }

    /// Ends a pod that has been active for too long; else sees to it that the worker wakes in time.
    fn keep_deadline(&mut self, pod: &Pod) {
        let limit = pod.spec.active_deadline_seconds;
        let limit = limit.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
        self.deadline = limit.and_then(|limit| self.active.due(limit));
        let Some(due) = self
            .deadline
            .filter(|_| !pod.is_deleting() && !self.is_finished(pod))
        else {
            self.deadline = None;
            return;
        };
        if tokio::time::Instant::now() >= due {
            self.deadline = None;
            let (reason, message) = (active_deadline::REASON, active_deadline::MESSAGE);
            self.shared.recorder.normal(Subject::pod(pod), reason, message);
            self.failure = Some(Failure {
                reason: reason.into(),
                message: message.into(),
                grace: None,
            });
        }
    }

    fn retry_later(&mut self) {
        self.retry_after(RETRY);
    }

    fn retry_after(&mut self, pause: Duration) {
        let due = Timestamp::now() + pause;
        self.retry_at = min(self.retry_at, Some(due));
    }
}

impl Wanted {
    pub(crate) fn pod(&self) -> Arc<Pod> {
        match self {
            Self::Here { pod, .. } | Self::Gone(pod) => Arc::clone(pod),
        }
    }

    fn is_end(&self) -> bool {
        match self {
            Self::Here { pod, .. } => pod.is_deleting(),
            Self::Gone(_) => true,
        }
    }
}

/// Where the logs of a pod are: one directory per container in it, one file per attempt in that.
pub(crate) fn log_directory(root: &std::path::Path, pod: &Pod) -> PathBuf {
    let metadata = &pod.metadata;
    root.join(format!(
        "{}_{}_{}",
        metadata.namespace, metadata.name, metadata.uid
    ))
}

/// The pod's own URL.
pub(crate) fn object_path(pod: &Pod) -> ResourcePath {
    ResourcePath::new("", "v1", "pods")
        .in_namespace(pod.metadata.namespace.as_str())
        .name(pod.metadata.name.as_str())
}

/// An error and everything behind it, in one line.
pub(crate) fn printed(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Never without a time.
async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn min(one: Option<Timestamp>, two: Option<Timestamp>) -> Option<Timestamp> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.min(two)),
        (one, two) => one.or(two),
    }
}

impl Pod {
    /// Whether a container mounts the volume: one that nobody mounts is not set up, as upstream.
    fn mounts(&self, volume: &str) -> bool {
        self.all_containers()
            .any(|container| container.volume_mounts.iter().any(|mount| mount.name == volume))
    }
}

impl Volume {
    /// One of the four kinds that are written from objects.
    pub(crate) fn is_projected(&self) -> bool {
        self.config_map.is_some()
            || self.secret.is_some()
            || self.downward_api.is_some()
            || self.projected.is_some()
    }
}
