//! One pod on this node: looks, decides, acts, reports; for as long as the pod is here.
//!
//! Whatever happens (an edit, an exit, a probe, a volume) only wakes the worker. What it does follows from what it then sees.

mod mounts;
mod start;
mod status_writer;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use hotmap_client::{Client, DeleteParams, ResourcePath};
use hotmap_runtime::{ContainerState, HostImages, Runtime, Sandbox, SandboxConfig, SandboxState};
use hotmap_volume::Ownership;
use jiff::Timestamp;
use tokio::{
    sync::{Notify, watch},
    task::{JoinSet, spawn_blocking},
};
use tracing::{info, warn};

use crate::{
    backoff,
    events::{Recorder, Subject},
    fields::PodFacts,
    lifecycle::{self, Decision, Ground, Step},
    node::Machine,
    objects::ObjectCache,
    pod::{Pod, Volume},
    probes::Probes,
    records::{Ended, Records, RunState, recover},
    references,
    status::{PodGround, Refusal, pod_status},
    support,
    volumes::{DesiredVolume, Placement, PlacementError, VolumeManager},
};
use status_writer::StatusWriter;

/// Pause before something that failed without telling when it will be better is tried again (kubelet: 10 s and jitter).
const RETRY: Duration = Duration::from_secs(10);

/// What all workers of a node share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    pub(crate) objects: Arc<ObjectCache>,
    pub(crate) volumes: VolumeManager,
    pub(crate) placement: Placement,
    pub(crate) images: HostImages,
    pub(crate) recorder: Recorder,
    pub(crate) machine: Machine,
    pub(crate) log_root: PathBuf,
    pub(crate) allow_privileged: bool,
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
    nudge: Arc<Notify>,
    uid: String,
    records: Records,
    probes: Probes,
    status: StatusWriter,
    start_time: Timestamp,
    refusal: Option<Refusal>,
    /// Configuration that was published to the volumes, so that an unchanged pod publishes nothing.
    published: Option<Arc<Pod>>,
    /// Failed attempts of volumes that an event has told of.
    told_failures: BTreeMap<String, u64>,
    /// Containers that are being stopped, with the grace given.
    stopping: BTreeMap<String, Duration>,
    stops: JoinSet<String>,
    retry_at: Option<Timestamp>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, wanted: watch::Receiver<Wanted>, nudge: Arc<Notify>) -> Self {
        let pod = wanted.borrow().pod();
        let sandbox = shared.runtime.sandbox(&pod.metadata.uid);
        let started = pod.status["startTime"]
            .as_str()
            .and_then(|text| text.parse().ok());
        Self {
            uid: pod.metadata.uid.clone(),
            records: recover(&pod, sandbox.as_ref()),
            probes: Probes::new(
                shared.runtime.clone(),
                shared.recorder.clone(),
                Arc::clone(&nudge),
            ),
            status: StatusWriter::start(shared.client.clone(), &pod),
            start_time: started.unwrap_or_else(Timestamp::now),
            refusal: None,
            published: None,
            told_failures: BTreeMap::new(),
            stopping: BTreeMap::new(),
            stops: JoinSet::new(),
            retry_at: None,
            shared,
            wanted,
            nudge,
        }
    }

    /// Runs until nothing of the pod is left on this node.
    pub(crate) async fn run(mut self) {
        self.judge();
        while self.reconcile().await {
            let until = self.retry_at.take().map(|at| {
                let wait = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
                tokio::time::Instant::now() + wait
            });
            let retry = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.wanted.changed() => if changed.is_err() { return },
                () = self.nudge.notified() => {}
                Some(stopped) = self.stops.join_next() => {
                    if let Ok(container) = stopped {
                        self.stopping.remove(&container);
                    }
                }
                () = retry => {}
            }
        }
    }

    /// One look and what follows from it; false once the pod is gone from here.
    async fn reconcile(&mut self) -> bool {
        let wanted = self.wanted.borrow_and_update().clone();
        let mut pod = wanted.pod();
        if let Some(written) = self.status.last() {
            // What we wrote is newer than what the watch has brought.
            Arc::make_mut(&mut pod).status = written;
        }
        if self.refusal.is_some() {
            return self.reconcile_refused(&pod, &wanted).await;
        }
        let sandbox = self
            .shared
            .runtime
            .sandbox(&self.uid)
            .filter(|sandbox| sandbox.state == SandboxState::Ready);
        self.observe(&pod, sandbox.as_ref());
        self.publish_volumes(&pod).await;
        let ground = Ground {
            has_sandbox: sandbox.is_some(),
            has_volumes: self.has_volumes(&pod),
            is_orphan: matches!(wanted, Wanted::Gone(_)),
        };
        let decision = lifecycle::decide(&pod, &self.records, ground, Timestamp::now());
        self.retry_at = min(self.retry_at, decision.look_again);
        if decision.steps == [Step::TakeDown] {
            self.report(&pod, sandbox.as_ref());
            return !self.take_down(&pod, &wanted).await;
        }
        let acted = self.act(&pod, sandbox, decision).await;
        let sandbox = self
            .shared
            .runtime
            .sandbox(&self.uid)
            .filter(|sandbox| sandbox.state == SandboxState::Ready);
        self.observe(&pod, sandbox.as_ref());
        self.report(&pod, sandbox.as_ref());
        if acted {
            // Each step makes a new state, and the next one follows from that.
            self.nudge.notify_one();
        }
        true
    }

    /// Refuses the pod if its spec asks for what this node cannot give, and says what it leaves aside.
    fn judge(&mut self) {
        let Wanted::Here { pod, spec } = self.wanted.borrow().clone() else {
            return;
        };
        let verdict = support::judge(&spec);
        let privileged =
            |container: &&crate::pod::Container| container.security_context.privileged == Some(true);
        let mut refused = verdict.refused;
        if !self.shared.allow_privileged {
            let named = pod
                .all_containers()
                .filter(privileged)
                .map(|container| container.name.clone());
            refused.extend(named.map(|name| {
                format!("container {name} is privileged: this node was started without --allow-privileged")
            }));
        }
        if !refused.is_empty() {
            let message = refused.join("; ");
            self.shared
                .recorder
                .warning(Subject::pod(&pod), "Unsupported", message.clone());
            self.refusal = Some(Refusal {
                reason: "Unsupported",
                message,
            });
        } else if self.records.values().all(|record| record.attempt.is_none()) {
            for note in verdict.noted {
                self.shared.recorder.warning(Subject::pod(&pod), "Ignored", note);
            }
        }
    }

    async fn reconcile_refused(&mut self, pod: &Arc<Pod>, wanted: &Wanted) -> bool {
        self.report(pod, None);
        if pod.is_deleting() || matches!(wanted, Wanted::Gone(_)) {
            !self.take_down(pod, wanted).await
        } else {
            true
        }
    }

    /// Takes over what runtime and probes know.
    fn observe(&mut self, pod: &Arc<Pod>, sandbox: Option<&Sandbox>) {
        for container in pod.all_containers() {
            let Some(record) = self.records.get_mut(&container.name) else {
                continue;
            };
            let seen = sandbox.and_then(|sandbox| sandbox.container(&container.name));
            let RunState::Running { started_at } = record.state else {
                continue;
            };
            let exit = match seen {
                Some(seen) if record.attempt == Some(seen.attempt) => match &seen.state {
                    ContainerState::Running { .. } => None,
                    ContainerState::Exited(exit) => Some(Ended::from_exit(exit)),
                },
                Some(_) => None,
                None => Some(Ended::lost(started_at, Timestamp::now())),
            };
            match exit {
                Some(ended) => {
                    info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, container = %container.name,
                        exit_code = ended.exit_code, reason = ended.reason, "container ended");
                    self.probes.end(&container.name);
                    record.exited(ended);
                }
                None => {
                    let ip = sandbox.map(|sandbox| sandbox.ip.to_string()).unwrap_or_default();
                    self.probes
                        .begin(pod, container, record.attempt.unwrap_or_default(), &ip);
                    record.ready = self.probes.findings(&container.name).is_ready;
                }
            }
        }
    }

    async fn act(&mut self, pod: &Arc<Pod>, sandbox: Option<Sandbox>, decision: Decision) -> bool {
        let mut acted = false;
        for step in decision.steps {
            match step {
                Step::MakeSandbox => acted |= self.make_sandbox(pod).await,
                Step::Start { container, attempt } => {
                    acted |= self.start_container(pod, &container, attempt).await
                }
                Step::BackOff { container, wait, .. } => self.back_off(pod, &container, wait),
                Step::Stop { container, grace } => self.stop(pod, container, grace),
                Step::StopSandbox => acted |= self.stop_sandbox(pod).await,
                Step::TakeDown => {}
            }
        }
        if sandbox.is_some() && !pod.is_deleting() {
            self.stop_dead(pod);
        }
        acted
    }

    async fn make_sandbox(&mut self, pod: &Arc<Pod>) -> bool {
        // One that is not ready any more is in the way of its successor.
        let cleared = self.shared.runtime.remove_sandbox(&self.uid).await;
        let hostname = if pod.spec.hostname.is_empty() {
            &pod.metadata.name
        } else {
            &pod.spec.hostname
        };
        let config = SandboxConfig {
            pod_uid: self.uid.clone(),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            hostname: hostname
                .chars()
                .take(63)
                .collect::<String>()
                .trim_end_matches(['-', '.'])
                .to_owned(),
        };
        let made = match cleared {
            Ok(()) => self.shared.runtime.run_sandbox(config).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(sandbox) => {
                info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, ip = %sandbox.ip, "sandbox made");
                true
            }
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {}", printed(&error));
                self.shared
                    .recorder
                    .warning(Subject::pod(pod), "FailedCreatePodSandBox", message);
                self.retry_later();
                false
            }
        }
    }

    async fn stop_sandbox(&mut self, pod: &Arc<Pod>) -> bool {
        match self.shared.runtime.stop_sandbox(&self.uid).await {
            Ok(()) => true,
            Err(error) => {
                self.shared.recorder.warning(
                    Subject::pod(pod),
                    "FailedKillPod",
                    format!("error killing pod: {}", printed(&error)),
                );
                self.retry_later();
                false
            }
        }
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

    /// Stops containers whose liveness probe has given up on them.
    fn stop_dead(&mut self, pod: &Arc<Pod>) {
        let dead: Vec<String> = pod
            .spec
            .containers
            .iter()
            .map(|container| container.name.clone())
            .filter(|name| self.probes.findings(name).is_dead && !self.stopping.contains_key(name))
            .collect();
        for name in dead {
            let message = format!("Container {name} failed liveness probe, will be restarted");
            self.shared
                .recorder
                .normal(Subject::container(pod, &name), "Killing", message);
            self.signal_stop(
                name,
                Duration::from_secs(pod.spec.termination_grace_period_seconds.unwrap_or(30)),
            );
        }
    }

    fn stop(&mut self, pod: &Arc<Pod>, container: String, grace: Duration) {
        match self.stopping.get(&container) {
            // The same wish again, a moment later: the shim keeps the time.
            Some(given)
                if *given <= grace + Duration::from_secs(1)
                    || pod
                        .metadata
                        .deletion_grace_period_seconds
                        .is_none_or(|held| Duration::from_secs(held) >= *given) =>
            {
                return;
            }
            Some(_) => {}
            None => {
                let message = format!("Stopping container {container}");
                self.shared
                    .recorder
                    .normal(Subject::container(pod, &container), "Killing", message);
            }
        }
        self.signal_stop(container, grace);
    }

    fn signal_stop(&mut self, container: String, grace: Duration) {
        self.stopping.insert(container.clone(), grace);
        let (runtime, uid) = (self.shared.runtime.clone(), self.uid.clone());
        self.stops.spawn(async move {
            if let Err(error) = runtime.stop_container(&uid, &container, None, grace).await {
                warn!(pod_uid = %uid, %container, error = %printed(&error), "container not stopped");
            }
            container
        });
    }

    /// Removes everything of the pod from this node, then the object itself. True once all of it is gone.
    async fn take_down(&mut self, pod: &Arc<Pod>, wanted: &Wanted) -> bool {
        if let Err(error) = self.shared.runtime.remove_sandbox(&self.uid).await {
            self.shared.recorder.warning(
                Subject::pod(pod),
                "FailedKillPod",
                format!("error killing pod: {}", printed(&error)),
            );
            self.retry_later();
            return false;
        }
        if let Err(error) = remove_volumes(&self.shared, &self.uid).await {
            warn!(pod_uid = %self.uid, %error, "volumes of a deleted pod are still there");
            self.retry_later();
            return false;
        }
        self.shared.objects.set_references(&self.uid, &BTreeSet::new());
        if let Wanted::Here { .. } = wanted {
            self.status.settle().await;
            if !self.delete_object(pod).await {
                return false;
            }
        }
        let logs = log_directory(&self.shared.log_root, pod);
        let removed = spawn_blocking({
            let logs = logs.clone();
            move || std::fs::remove_dir_all(logs)
        });
        if let Err(error) = removed.await.expect("removing logs does not panic")
            && error.kind() != std::io::ErrorKind::NotFound
        {
            warn!(path = %logs.display(), %error, "logs of a deleted pod are still there");
        }
        true
    }

    async fn delete_object(&mut self, pod: &Arc<Pod>) -> bool {
        let params = DeleteParams {
            grace_period: Some(Duration::ZERO),
            uid: self.uid.clone(),
            ..DeleteParams::default()
        };
        match self.shared.client.delete(&object_path(pod), &params).await {
            Ok(_) => true,
            Err(error) if error.is_not_found() || error.is_conflict() => true,
            Err(error) => {
                warn!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %error, "pod not deleted from the API");
                self.retry_later();
                false
            }
        }
    }

    /// Hands the pod's volumes to the writers when the pod is new here or was edited.
    async fn publish_volumes(&mut self, pod: &Arc<Pod>) {
        let same = self
            .published
            .as_ref()
            .is_some_and(|held| held.metadata.resource_version == pod.metadata.resource_version);
        if same || pod.is_deleting() {
            return;
        }
        let is_edit = self.published.is_some();
        let ids = match self.shared.runtime.reserve_ids(&self.uid).await {
            Ok(ids) => ids,
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {}", printed(&error));
                self.shared
                    .recorder
                    .warning(Subject::pod(pod), "FailedCreatePodSandBox", message);
                return self.retry_later();
            }
        };
        let references = references::of_pod(pod);
        self.shared.objects.set_references(&self.uid, &references);
        if is_edit {
            // As a kubelet's Cache strategy is described: an edited pod sees the newest objects at once, whatever the
            // watches say.
            self.shared.objects.refresh(&references);
        }
        let owner = Ownership {
            uid: ids.base,
            gid: ids.base,
        };
        let fs_group = pod
            .spec
            .security_context
            .fs_group
            .and_then(|group| ids.host_id(group));
        let desired = pod
            .spec
            .volumes
            .iter()
            .filter(|volume| volume.is_projected() && pod.mounts(&volume.name));
        let desired = desired.map(|volume| DesiredVolume {
            pod: Arc::clone(pod),
            facts: self.facts(None),
            volume: volume.clone(),
            owner,
            fs_group,
        });
        self.shared.volumes.publish(&self.uid, desired.collect());
        self.published = Some(Arc::clone(pod));
    }

    /// Whether every volume has been projected once; tells of each failed attempt.
    fn has_volumes(&mut self, pod: &Arc<Pod>) -> bool {
        let states = self.shared.volumes.states(&self.uid);
        for (volume, state) in &states {
            let told = self.told_failures.entry(volume.clone()).or_default();
            if let Some(failure) = state.failure.as_ref().filter(|_| state.failures > *told) {
                *told = state.failures;
                let message = format!("MountVolume.SetUp failed for volume {volume:?} : {failure}");
                self.shared
                    .recorder
                    .warning(Subject::pod(pod), "FailedMount", message);
            }
        }
        states.values().all(|state| state.is_mounted) && self.published.is_some()
    }

    fn facts(&self, sandbox: Option<&Sandbox>) -> PodFacts {
        PodFacts {
            node_name: self.shared.machine.name.clone(),
            host_ip: self.shared.machine.internal_ip.clone(),
            pod_ip: sandbox.map(|sandbox| sandbox.ip.to_string()).unwrap_or_default(),
            allocatable: self.shared.machine.allocatable(),
        }
    }

    fn report(&self, pod: &Pod, sandbox: Option<&Sandbox>) {
        let ground = PodGround {
            host_ip: self.shared.machine.internal_ip.clone(),
            pod_ip: sandbox.map(|sandbox| sandbox.ip.to_string()).unwrap_or_default(),
            start_time: Some(self.start_time),
            refusal: self.refusal.clone(),
        };
        self.status
            .write(pod_status(pod, &self.records, &ground, Timestamp::now()));
    }

    fn retry_later(&mut self) {
        let due = Timestamp::now() + RETRY;
        self.retry_at = min(self.retry_at, Some(due));
    }
}

impl Wanted {
    pub(crate) fn pod(&self) -> Arc<Pod> {
        match self {
            Self::Here { pod, .. } | Self::Gone(pod) => Arc::clone(pod),
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

/// Takes the volumes of a pod away: first from the writers, then from the disk.
pub(crate) async fn remove_volumes(shared: &Arc<Shared>, pod_uid: &str) -> Result<(), PlacementError> {
    let (shared, uid) = (Arc::clone(shared), pod_uid.to_owned());
    let removed = spawn_blocking(move || {
        shared.volumes.forget(&uid);
        shared.placement.remove(&uid)
    });
    removed.await.expect("removing volumes does not panic")
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
