//! The node itself: takes over what runs, follows its pods, gives each a worker.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hotmap_client::{
    Backoff, Client, ClientError, ClientListWatch, FollowEvent, Follower, FollowerConfig, RawObject,
    ResourcePath,
};
use hotmap_runtime::{
    BootId, ConfigError, Event, HostImages, HostImagesError, OpenError, Runtime, RuntimeConfig,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    task::{JoinSet, spawn_blocking},
};
use tracing::{error, info, warn};

use crate::{
    access::Access,
    events::Recorder,
    node::{self, Machine},
    objects::ObjectCache,
    pod::Pod,
    references::ObjectRef,
    volumes::{Placement, PlacementError, VolumeManager},
    worker::{Shared, Wanted, Worker, printed, remove_volumes},
};

/// First and longest pause between two tries to register.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// What a node needs to know.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Name of the node.
    pub node_name: String,
    /// Everything the node keeps is below this directory: `pods/`, `volumes/`, `empty-dirs/`, `logs/`, and
    /// `host-images.yaml`, which is the user's.
    pub data_dir: PathBuf,
    /// Names every kernel object of the node: one to eight of `[a-z0-9]`.
    pub instance_id: String,
    /// The node's own address in its status.
    pub internal_ip: IpAddr,
    /// Whether privileged containers may run.
    pub allow_privileged: bool,
    /// The running boot; the kernel's own unless a test pretends a reboot.
    pub boot_id: Option<BootId>,
    /// Holds back every change that a watch of a ConfigMap or Secret brings, so that a test sees what else delivers it.
    pub hold_watches: bool,
}

/// Why a node does not start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The configuration breaks a rule.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The boot id cannot be read.
    #[error("cannot read the boot id of this machine")]
    BootId(#[source] std::io::Error),
    /// Containers cannot be run here.
    #[error(transparent)]
    Runtime(#[from] OpenError),
    /// The table of images is wrong.
    #[error(transparent)]
    Images(#[from] HostImagesError),
    /// Volumes have no place.
    #[error("volumes have no place: {0}")]
    Volumes(String),
    /// The API refuses this node.
    #[error("the API refuses to register node {node:?}")]
    Register {
        /// The node.
        node: String,
        /// What the API said.
        source: ClientError,
    },
    /// A task of the node ended, which none does on its own.
    #[error("a task of the node ended: {0}")]
    TaskEnded(String),
}

impl From<PlacementError> for AgentError {
    fn from(error: PlacementError) -> Self {
        Self::Volumes(error.to_string())
    }
}

/// A node that is ready to run pods.
pub struct Agent {
    shared: Arc<Shared>,
    nudges: Arc<Nudges>,
    tasks: JoinSet<&'static str>,
    known: Arc<Mutex<BTreeMap<String, Arc<Pod>>>>,
}

/// Wakes the worker of a pod by its uid.
#[derive(Default)]
struct Nudges(Mutex<BTreeMap<String, Arc<Notify>>>);

impl Nudges {
    fn nudge(&self, pod_uid: &str) {
        if let Some(nudge) = self.0.lock().get(pod_uid) {
            nudge.notify_one();
        }
    }

    fn all(&self) {
        self.0.lock().values().for_each(|nudge| nudge.notify_one());
    }
}

impl Agent {
    /// Attaches to the pods that run, prepares the volumes, registers the node. Pods are followed by [`Agent::run`].
    ///
    /// # Errors
    /// [`AgentError`]; pods that run are not touched.
    pub async fn start(config: AgentConfig, client: Client) -> Result<Self, AgentError> {
        let runtime = Runtime::open(runtime_config(&config)?).await?;
        let images = HostImages::load(&config.data_dir.join("host-images.yaml"))?;
        let nudges = Arc::new(Nudges::default());
        let data_dir = config.data_dir.clone();
        let on_attempt = {
            let nudges = Arc::clone(&nudges);
            Arc::new(move |pod_uid: &str| nudges.nudge(pod_uid))
        };
        let (placement, volumes) = spawn_blocking(move || -> Result<_, AgentError> {
            let placement = Placement::prepare(&data_dir)?;
            let volumes = VolumeManager::start(placement.volumes().to_owned(), on_attempt);
            Ok((
                placement,
                volumes.map_err(|error| AgentError::Volumes(error.to_string()))?,
            ))
        })
        .await
        .expect("preparing volumes does not panic")?;
        let mut tasks = JoinSet::new();
        let (recorder, recording) = Recorder::new(client.clone(), config.node_name.clone());
        tasks.spawn(async {
            recording.await;
            "event recorder"
        });
        let machine = Machine::read(
            &config.node_name,
            &config.internal_ip.to_string(),
            &config.data_dir,
        );
        register(&client, &machine).await?;
        let lease = node::keep_lease(client.clone(), machine.clone());
        tasks.spawn(async {
            lease.await;
            "node lease"
        });
        let shared = Arc::new_cyclic(|shared: &std::sync::Weak<Shared>| {
            let objects = ObjectCache::new(
                client.clone(),
                Arc::new(on_change(shared.clone(), Arc::clone(&nudges))),
                config.hold_watches,
            );
            volumes.look_up_in(Arc::clone(&objects));
            Shared {
                client,
                runtime,
                objects,
                volumes,
                placement,
                images,
                recorder,
                machine,
                log_root: config.data_dir.join("logs"),
                allow_privileged: config.allow_privileged,
            }
        });
        Ok(Self {
            shared,
            nudges,
            tasks,
            known: Arc::default(),
        })
    }

    /// Reaches the logs and processes of the pods on this node.
    pub fn access(&self) -> Access {
        Access::new(
            self.shared.runtime.clone(),
            self.shared.log_root.clone(),
            Arc::clone(&self.known),
        )
    }

    /// Runs the pods of this node until `shutdown`; then the pods go on without us.
    ///
    /// # Errors
    /// [`AgentError::TaskEnded`] if a part of the node breaks.
    pub async fn run(&mut self, shutdown: impl Future<Output = ()>) -> Result<(), AgentError> {
        let path = ResourcePath::new("", "v1", "pods");
        let selector = format!("spec.nodeName={}", self.shared.machine.name);
        let source = ClientListWatch::new(self.shared.client.clone(), path).with_field_selector(selector);
        let mut follower = Follower::new(source, FollowerConfig::NODE);
        let mut events = self.shared.runtime.events();
        let mut workers = Workers::default();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                event = follower.next() => self.pods_changed(&mut workers, event).await,
                event = events.next() => match event {
                    Some(Event::ContainerExited(exited)) => self.nudges.nudge(&exited.pod_uid),
                    Some(Event::SandboxLost { pod_uid }) => self.nudges.nudge(&pod_uid),
                    Some(Event::Resync) => self.nudges.all(),
                    None => return Err(AgentError::TaskEnded("the runtime's events".to_owned())),
                },
                Some(ended) = workers.tasks.join_next_with_id() => self.worker_ended(&mut workers, ended),
                Some(ended) = self.tasks.join_next() => {
                    return Err(AgentError::TaskEnded(ended.map_or_else(|error| error.to_string(), str::to_owned)));
                }
            }
        }
    }

    async fn pods_changed(&self, workers: &mut Workers, event: FollowEvent) {
        match event {
            FollowEvent::Initial(pods) => {
                let uids: Vec<&str> = pods.iter().map(RawObject::uid).collect();
                self.remove_strangers(&uids).await;
                pods.iter().for_each(|pod| self.pod_changed(workers, pod));
            }
            FollowEvent::Applied(pod) => self.pod_changed(workers, &pod),
            FollowEvent::Deleted(pod) => {
                if let Some(worker) = workers.by_pod.get(pod.uid()) {
                    let last = worker.wanted.borrow().pod();
                    worker.wanted.send_replace(Wanted::Gone(last));
                }
            }
            FollowEvent::Interrupted(error) => warn!(%error, "pods cannot be followed, those that run go on"),
            FollowEvent::Resumed => info!("pods are followed again"),
        }
    }

    fn pod_changed(&self, workers: &mut Workers, object: &RawObject) {
        let parsed = object.parse::<Value>().ok().and_then(|document| {
            let pod = Pod::from_document(&document).ok()?;
            Some((pod, document))
        });
        let Some((pod, mut document)) = parsed else {
            error!(
                namespace = object.namespace(),
                pod = object.name(),
                "pod cannot be read"
            );
            return;
        };
        let is_over = matches!(pod.status["phase"].as_str(), Some("Succeeded" | "Failed"));
        let uid = pod.metadata.uid.clone();
        if is_over
            && !pod.is_deleting()
            && !workers.by_pod.contains_key(&uid)
            && self.shared.runtime.sandbox(&uid).is_none()
        {
            self.known.lock().insert(uid, Arc::new(pod));
            return;
        }
        let pod = Arc::new(pod);
        self.known.lock().insert(uid.clone(), Arc::clone(&pod));
        let wanted = Wanted::Here {
            pod,
            spec: Arc::new(document["spec"].take()),
        };
        match workers.by_pod.get(&uid) {
            Some(worker) => drop(worker.wanted.send_replace(wanted)),
            None => {
                let (sender, receiver) = watch::channel(wanted);
                let nudge = Arc::new(Notify::new());
                self.nudges.0.lock().insert(uid.clone(), Arc::clone(&nudge));
                let worker = Worker::new(Arc::clone(&self.shared), receiver, nudge);
                let task = workers.tasks.spawn(worker.run()).id();
                workers.by_pod.insert(uid, Running { wanted: sender, task });
            }
        }
    }

    fn worker_ended(
        &self,
        workers: &mut Workers,
        ended: Result<(tokio::task::Id, ()), tokio::task::JoinError>,
    ) {
        let task = match &ended {
            Ok((task, ())) => *task,
            Err(error) => {
                error!(%error, "the worker of a pod broke; the pod runs on, unattended until its next change");
                error.id()
            }
        };
        let Some(uid) = workers
            .by_pod
            .iter()
            .find(|(_, worker)| worker.task == task)
            .map(|(uid, _)| uid.clone())
        else {
            return;
        };
        workers.by_pod.remove(&uid);
        self.nudges.0.lock().remove(&uid);
        if ended.is_ok() {
            self.known.lock().remove(&uid);
        }
    }

    /// Takes down what runs or lies here of pods that the API does not know: they were deleted while we were away.
    async fn remove_strangers(&self, known: &[&str]) {
        for sandbox in self.shared.runtime.sandboxes() {
            if known.contains(&sandbox.pod_uid.as_str()) {
                continue;
            }
            info!(namespace = %sandbox.namespace, pod = %sandbox.name, "pod is gone from the API, taking it down");
            if let Err(error) = self.shared.runtime.remove_sandbox(&sandbox.pod_uid).await {
                warn!(pod_uid = %sandbox.pod_uid, error = %printed(&error), "pod not taken down");
            }
        }
        let shared = Arc::clone(&self.shared);
        let found = spawn_blocking(move || shared.placement.pods())
            .await
            .expect("listing volumes does not panic");
        for uid in found.unwrap_or_default() {
            if !known.contains(&uid.as_str())
                && let Err(error) = remove_volumes(&self.shared, &uid).await
            {
                warn!(pod_uid = %uid, %error, "volumes of a deleted pod are still there");
            }
        }
    }
}

#[derive(Default)]
struct Workers {
    by_pod: BTreeMap<String, Running>,
    tasks: JoinSet<()>,
}

struct Running {
    wanted: watch::Sender<Wanted>,
    task: tokio::task::Id,
}

/// What a change of an object sets in motion: the volumes at once, then the pods, whose containers may wait for it.
fn on_change(
    shared: std::sync::Weak<Shared>,
    nudges: Arc<Nudges>,
) -> impl Fn(&ObjectRef, &[String]) + Send + Sync {
    move |reference, pods| {
        if let Some(shared) = shared.upgrade() {
            shared.volumes.object_changed(reference, pods);
        }
        pods.iter().for_each(|pod_uid| nudges.nudge(pod_uid));
    }
}

async fn register(client: &Client, machine: &Machine) -> Result<(), AgentError> {
    let mut retries = Backoff::seeded(RETRY_MIN, RETRY_MAX);
    loop {
        match node::register(client, machine).await {
            Ok(()) => return Ok(()),
            Err(error)
                if error
                    .status()
                    .is_some_and(|status| status.code < 500 && status.code != 429) =>
            {
                return Err(AgentError::Register {
                    node: machine.name.clone(),
                    source: error,
                });
            }
            Err(error) => {
                warn!(node = %machine.name, %error, "node not registered yet");
                tokio::time::sleep(retries.next_delay()).await;
            }
        }
    }
}

fn runtime_config(config: &AgentConfig) -> Result<RuntimeConfig, AgentError> {
    Ok(RuntimeConfig {
        state_dir: config.data_dir.join("pods"),
        instance_id: config.instance_id.parse()?,
        allow_privileged: config.allow_privileged,
        mask: vec![config.data_dir.clone()],
        self_exe: RuntimeConfig::self_exe(),
        boot_id: match &config.boot_id {
            Some(pretended) => pretended.clone(),
            None => BootId::current().map_err(AgentError::BootId)?,
        },
    })
}

/// Ends every pod of an instance and removes all the node made outside and inside its data directory, which stays. No agent
/// may run. Returns how many pods there were.
///
/// # Errors
/// [`AgentError`] says what is still there.
pub async fn down(data_dir: &Path, instance_id: &str) -> Result<(), AgentError> {
    let config = AgentConfig {
        node_name: String::new(),
        data_dir: data_dir.to_owned(),
        instance_id: instance_id.to_owned(),
        internal_ip: IpAddr::from([127, 0, 0, 1]),
        allow_privileged: false,
        boot_id: None,
        hold_watches: false,
    };
    let purged = Runtime::purge(runtime_config(&config)?).await;
    purged.map_err(|error| AgentError::TaskEnded(printed(&error)))?;
    let data_dir = data_dir.to_owned();
    spawn_blocking(move || Placement::purge(&data_dir))
        .await
        .expect("unmounting does not panic")?;
    Ok(())
}
