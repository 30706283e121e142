//! The node itself: takes over what runs, follows its pods, gives each a worker.

mod strangers;
mod workers;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use hotmap_client::{Backoff, Client, ClientError, ClientListWatch, FollowEvent, RawObject, ResourcePath};
use hotmap_clock::ClockJumps;
use hotmap_runtime::{
    BootId, ConfigError, Event, HostImagesError, OpenError, PodCidr, PodNetwork, PodNetworkConfig, Prepared,
    PurgeError, Runtime, RuntimeConfig, SandboxState, Unenforced,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::{JoinSet, spawn_blocking};
use tracing::{error, info, warn};

use crate::{
    access::Access,
    api_clock::ApiClock,
    clock::SystemClock,
    configuration_events::ConfigurationEvents,
    environment::{self, ApiForPods},
    events::{Recorder, Subject},
    host_ports::HostPorts,
    images::Images,
    metrics::Metrics,
    node::{self, HeldByAnother, LeaseError, Machine, NodeLease},
    objects::{self, ChangeDetection, Following, ObjectCache, ServerKind},
    pod::Pod,
    pod_socket::PodSockets,
    references::ObjectRef,
    report::{DigestKeyError, Reports, Snapshots},
    tokens::TokenCache,
    volumes::{Placement, PlacementError, VolumeManager},
    worker::{ServiceEnvironment, Shared, Wanted},
};
use workers::{Nudges, Workers};

/// First and longest pause between two tries to register.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// What a node needs to know.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Name of the node.
    pub node_name: String,
    /// Everything the node keeps is below this directory: `pods/`, `volumes/`, `empty-dirs/`, `logs/`, and
    /// `host-images.yaml`, which is the user's. With a [`DigestKey`](crate::DigestKey) in `digest.key` reports have digests of
    /// Secrets.
    pub data_dir: PathBuf,
    /// Names every kernel object of the node: one to eight of `[a-z0-9]`.
    pub instance_id: String,
    /// The node's own address in its status.
    pub internal_ip: IpAddr,
    /// The port of that address where logs and commands of its pods are served, in its status; `None` for a node in the
    /// process of the API server.
    pub port: Option<u16>,
    /// Whether privileged containers may run.
    pub allow_privileged: bool,
    /// Processes and threads that the containers of one pod may have together (a kubelet's `podPidsLimit`); `None`: as many as
    /// there are.
    pub pod_max_pids: Option<u64>,
    /// Whether pods are told, by an event, of each change that became visible in their volumes.
    pub configuration_events: bool,
    /// Where pods find the API; without it they are not told.
    pub api_for_pods: Option<ApiForPods>,
    /// Where pods that share the host's network find it.
    pub api_for_host: Option<SocketAddr>,
    /// What pods are connected to.
    pub pod_network: PodNetworkConfig,
    /// A `resolv.conf` other than the host's, for pods that have its name servers.
    pub resolv_conf: Option<PathBuf>,
    /// The running boot; the kernel's own unless a test pretends a reboot.
    pub boot_id: Option<BootId>,
    /// How changes of ConfigMaps and Secrets are found.
    pub change_detection: ChangeDetection,
    /// How often pods and their objects are looked at although nothing was heard: after this time to half as much again.
    pub sync_frequency: Duration,
    /// Follows each object by itself, although the server has one watch for the node, so that a test sees that too.
    pub avoid_node_selector: bool,
    /// Holds back every change that a watch of a ConfigMap or Secret brings, so that a test sees what else delivers it.
    pub hold_watches: bool,
    /// By which tokens are judged; the heartbeat keeps it true.
    pub api_clock: ApiClock,
    /// Counts what the node does.
    pub metrics: Metrics,
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
    /// The key of Secrets' digests is wrong.
    #[error(transparent)]
    DigestKey(#[from] DigestKeyError),
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
    /// Another agent acts for the node of this name: at the start it was there first; later it took over while we could
    /// not renew the node's Lease.
    #[error(transparent)]
    Fenced(#[from] HeldByAnother),
    /// Something of the node is still there.
    #[error(transparent)]
    Purge(#[from] PurgeError),
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
    metrics: Metrics,
    shared: Arc<Shared>,
    nudges: Arc<Nudges>,
    tasks: JoinSet<AgentError>,
    known: Arc<Mutex<BTreeMap<String, Arc<Pod>>>>,
    server: ServerKind,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.objects.end();
        self.shared.tokens.end();
    }
}

/// A node whose bridge is up and that has not asked the API for anything yet.
pub struct PreparedAgent {
    config: AgentConfig,
    runtime: Prepared,
}

impl PreparedAgent {
    /// What pods are connected to.
    pub fn network(&self) -> &PodNetwork {
        self.runtime.network()
    }

    /// The bridge's name on the host, if pods have a network of their own.
    pub fn bridge(&self) -> Option<String> {
        self.runtime.bridge()
    }

    /// From now on pods are told that the API is here, and those that share the host's network that it is there.
    pub fn tell_pods(&mut self, api: ApiForPods, on_the_host: SocketAddr) {
        self.config.api_for_pods = Some(api);
        self.config.api_for_host = Some(on_the_host);
    }

    /// Attaches to the pods that run, prepares the volumes, registers the node. Pods are followed by [`Agent::run`].
    ///
    /// # Errors
    /// [`AgentError`]; pods that run are not touched.
    pub async fn start(self, client: Client) -> Result<Agent, AgentError> {
        Agent::start_prepared(self, client).await
    }
}

impl Agent {
    /// Sees to the bridge of the pods, so that the API can listen there before the node asks it for anything.
    ///
    /// # Errors
    /// [`AgentError`]; pods that run are not touched.
    pub async fn prepare(config: AgentConfig) -> Result<PreparedAgent, AgentError> {
        let runtime = Runtime::prepare(runtime_config(&config)?).await?;
        Ok(PreparedAgent { config, runtime })
    }

    async fn start_prepared(prepared: PreparedAgent, client: Client) -> Result<Self, AgentError> {
        let PreparedAgent { config, runtime } = prepared;
        let runtime = runtime.open().await;
        let nudges = Arc::new(Nudges::default());
        let on_attempt = {
            let nudges = Arc::clone(&nudges);
            Arc::new(move |pod_uid: &str| nudges.nudge(pod_uid))
        };
        let at = config.clone();
        let (images, placement, volumes, machine, reports) =
            spawn_blocking(move || -> Result<_, AgentError> {
                let images = Images::open(at.data_dir.join("host-images.yaml"))?;
                let placement = Placement::prepare(&at.data_dir)?;
                let volumes =
                    VolumeManager::start(placement.volumes().to_owned(), on_attempt, at.metrics.clone())
                        .map_err(|error| AgentError::Volumes(error.to_string()))?;
                let machine =
                    Machine::read(&at.node_name, &at.internal_ip.to_string(), at.port, &at.data_dir);
                let reports = Reports::open(&at.data_dir.join("digest.key"))?;
                Ok((images, placement, volumes, machine, reports))
            })
            .await
            .expect("preparing volumes does not panic")?;
        let mut tasks = JoinSet::new();
        let (recorder, recording) = Recorder::new(client.clone(), config.node_name.clone());
        tasks.spawn(async {
            recording.await;
            AgentError::TaskEnded("event recorder".to_owned())
        });
        tell_network_troubles(&config.metrics, &recorder, &machine.name, runtime.network());
        let server = objects::probe(&client, &machine.name).await;
        let lease = register(&client, &machine, &config.instance_id, server).await?;
        tell_unenforced(runtime.unenforced(), &machine.name, &recorder, &config.metrics);
        let held = node::keep_alive(
            client.clone(),
            machine.clone(),
            lease,
            server,
            config.api_clock.clone(),
        );
        tasks.spawn(async { AgentError::Fenced(held.await) });
        let telling =
            reports
                .clone()
                .tell_for_ever(client.clone(), machine.name.clone(), config.metrics.clone());
        tasks.spawn(async {
            telling.await;
            AgentError::TaskEnded("delivery report".to_owned())
        });
        let events = config.configuration_events.then(ConfigurationEvents::default);
        if let Some(events) = events.clone() {
            let runtime = runtime.clone();
            let is_running = move |pod_uid: &str| {
                runtime
                    .sandbox(pod_uid)
                    .is_some_and(|sandbox| sandbox.state == SandboxState::Ready)
            };
            let telling = events.tell_for_ever(recorder.clone(), SystemClock, is_running);
            tasks.spawn(async {
                telling.await;
                AgentError::TaskEnded("configuration events".to_owned())
            });
        }
        let shared = Arc::new_cyclic(|shared: &std::sync::Weak<Shared>| {
            let following = Following {
                node_name: machine.name.clone(),
                detection: config.change_detection,
                sync_frequency: config.sync_frequency,
                server,
                avoid_node_selector: config.avoid_node_selector,
                hold_watches: config.hold_watches,
            };
            let on_change = Arc::new(on_change(shared.clone(), Arc::clone(&nudges)));
            let objects = ObjectCache::start(client.clone(), following, on_change, config.metrics.clone());
            let on_token = Arc::new(on_token(shared.clone()));
            let api_clock = config.api_clock;
            let clock_jumps = api_clock.jumps();
            let tokens = TokenCache::new(client.clone(), api_clock, clock_jumps, on_token);
            volumes.look_up_in(Arc::clone(&objects), Arc::clone(&tokens), reports.clone(), events);
            Shared {
                client,
                service_environment: ServiceEnvironment {
                    on_the_bridge: environment::of_api(
                        config.api_for_pods,
                        runtime.network().cidr.map(PodCidr::gateway),
                    ),
                    on_the_host: environment::of_api(config.api_for_host.map(ApiForPods::Address), None),
                },
                host_ports: HostPorts::default(),
                resolv_conf: config.resolv_conf,
                told_of_cluster_dns: AtomicBool::new(false),
                runtime,
                objects,
                tokens,
                volumes,
                sockets: PodSockets::new(
                    placement.volumes().to_owned(),
                    reports.clone(),
                    config.metrics.clone(),
                ),
                snapshots: Snapshots::new(placement.volumes().to_owned()),
                placement,
                reports,
                images,
                recorder,
                machine,
                log_root: config.data_dir.join("logs"),
                allow_privileged: config.allow_privileged,
                pod_max_pids: config.pod_max_pids,
                measuring: tokio::sync::Semaphore::new(1),
            }
        });
        Ok(Self {
            metrics: config.metrics,
            shared,
            nudges,
            tasks,
            known: Arc::default(),
            server,
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
        let mut follower = self.server.follow(source, &self.metrics);
        let mut events = self.shared.runtime.events();
        let mut workers = Workers::default();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            self.metrics.set_pods(workers.attended());
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
                    return Err(ended.unwrap_or_else(|error| AgentError::TaskEnded(error.to_string())));
                }
            }
        }
    }

    async fn pods_changed(&self, workers: &mut Workers, event: FollowEvent) {
        match event {
            FollowEvent::Initial(pods) => {
                let uids: Vec<&str> = pods.iter().map(RawObject::uid).collect();
                // Before the first pod of ours leaves traces that look like those of a stranger.
                let strangers = strangers::find(&self.shared, &uids).await;
                for stranger in strangers {
                    workers.run_beside(stranger.remove(Arc::clone(&self.shared)));
                }
                pods.iter().for_each(|pod| self.pod_changed(workers, pod));
            }
            FollowEvent::Applied(pod) => self.pod_changed(workers, &pod),
            FollowEvent::Deleted(pod) => {
                let is_attended = workers.pod_is_gone(pod.uid());
                let known = self.known.lock().get(pod.uid()).cloned();
                if !is_attended && let Some(pod) = known {
                    self.known.lock().remove(&pod.metadata.uid);
                    // It was finished long ago and deleted by force: its logs are all there is.
                    let stranger = strangers::Stranger::of_pod(&self.shared, &pod);
                    workers.run_beside(stranger.remove(Arc::clone(&self.shared)));
                }
            }
            FollowEvent::Interrupted(error) => warn!(%error, "pods cannot be followed, those that run go on"),
            FollowEvent::Resumed => info!("pods are followed again"),
        }
    }

    fn pod_changed(&self, workers: &mut Workers, object: &RawObject) {
        let parsed = object.parse::<Value>().ok();
        let read = parsed.and_then(|document| Some((Pod::from_any_document(&document)?, document)));
        let Some((pod, mut document)) = read else {
            error!(
                namespace = object.namespace(),
                pod = object.name(),
                "pod has no metadata that can be read"
            );
            return;
        };
        let is_over = matches!(pod.status["phase"].as_str(), Some("Succeeded" | "Failed"));
        let uid = pod.metadata.uid.clone();
        let is_left_alone = is_over
            && !pod.is_deleting()
            && !workers.attends(&uid)
            && self.shared.runtime.sandbox(&uid).is_none();
        let pod = Arc::new(pod);
        self.known.lock().insert(uid, Arc::clone(&pod));
        if is_left_alone {
            return;
        }
        let spec = Arc::new(document["spec"].take());
        workers.pod_is_wanted(&self.shared, &self.nudges, Wanted::Here { pod, spec });
    }

    fn worker_ended(
        &self,
        workers: &mut Workers,
        ended: Result<(tokio::task::Id, ()), tokio::task::JoinError>,
    ) {
        if let Some(uid) = workers.ended(&self.shared, &self.nudges, ended) {
            self.known.lock().remove(&uid);
        }
    }
}

/// What pods cannot reach is one matter, told once in each place where somebody looks.
fn tell_network_troubles(metrics: &Metrics, recorder: &Recorder, node: &str, network: &PodNetwork) {
    metrics.set_network_troubles(&network.troubles);
    let Some(message) = network.warning() else { return };
    warn!(node, troubles = %message, "the pods' network is not whole");
    recorder.warning(Subject::node(node), "PodNetworkDegraded", message);
}

/// What a change of an object sets in motion: the volumes at once, then the pods, whose containers may wait for it.
fn on_change(
    shared: std::sync::Weak<Shared>,
    nudges: Arc<Nudges>,
) -> impl Fn(&ObjectRef, &[String]) + Send + Sync {
    move |reference, pods| {
        if let Some(shared) = shared.upgrade() {
            shared.volumes.object_changed(reference, pods);
            shared.reports.heard(reference, &shared.objects.get(reference));
        }
        nudges.object_changed(pods);
    }
}

/// What a token that came, or did not, sets in motion.
fn on_token(shared: std::sync::Weak<Shared>) -> impl Fn(&str) + Send + Sync {
    move |pod_uid| {
        if let Some(shared) = shared.upgrade() {
            shared.volumes.token_changed(pod_uid);
        }
    }
}

/// What this machine does not give is said once for the node, not for each pod.
fn tell_unenforced(unenforced: &[Unenforced], node: &str, recorder: &Recorder, metrics: &Metrics) {
    metrics.set_unenforced(unenforced.iter().map(|one| one.controller));
    if unenforced.is_empty() {
        return;
    }
    let said = unenforced
        .iter()
        .map(|one| format!("{}: {}", one.controller, one.reason));
    let message = format!(
        "limits of pods that need these are not in force: {}",
        said.collect::<Vec<_>>().join("; ")
    );
    warn!(node, "{message}");
    recorder.warning(Subject::node(node), "LimitsNotEnforced", message);
}

/// Takes the lease first: a second agent of the name must not touch the node of the first.
async fn register(
    client: &Client,
    machine: &Machine,
    instance_id: &str,
    server: ServerKind,
) -> Result<NodeLease, AgentError> {
    let mut lease = NodeLease::new(&machine.name, instance_id);
    let mut retries = Backoff::seeded(RETRY_MIN, RETRY_MAX);
    loop {
        let registered = async {
            lease.renew(client).await?;
            Ok(node::register(client, machine, server).await?)
        };
        match registered.await {
            Ok(()) => return Ok(lease),
            Err(LeaseError::Held(by)) => return Err(AgentError::Fenced(by)),
            Err(LeaseError::Client(error))
                if error
                    .status()
                    .is_some_and(|status| status.code < 500 && status.code != 429) =>
            {
                return Err(AgentError::Register {
                    node: machine.name.clone(),
                    source: error,
                });
            }
            Err(LeaseError::Client(error)) => {
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
        pod_network: config.pod_network,
        boot_id: match &config.boot_id {
            Some(pretended) => pretended.clone(),
            None => BootId::current().map_err(AgentError::BootId)?,
        },
    })
}

/// Ends every pod of an instance and removes all the node made outside and inside its data directory, which stays. No agent
/// may run. With a grace, containers are asked first: SIGTERM to all at once, and SIGKILL to those that are there after it.
///
/// # Errors
/// [`AgentError`] says what is still there.
pub async fn down(data_dir: &Path, instance_id: &str, grace: Option<Duration>) -> Result<(), AgentError> {
    let config = AgentConfig {
        node_name: String::new(),
        data_dir: data_dir.to_owned(),
        instance_id: instance_id.to_owned(),
        internal_ip: IpAddr::from([127, 0, 0, 1]),
        port: None,
        allow_privileged: false,
        pod_max_pids: None,
        configuration_events: false,
        api_for_pods: None,
        api_for_host: None,
        pod_network: PodNetworkConfig::default(),
        resolv_conf: None,
        boot_id: None,
        change_detection: ChangeDetection::default(),
        sync_frequency: Duration::from_secs(60),
        avoid_node_selector: false,
        hold_watches: false,
        api_clock: ApiClock::new(ClockJumps::never()),
        metrics: Metrics::default(),
    };
    let runtime = runtime_config(&config)?;
    if let Some(grace) = grace {
        Runtime::end_containers(&runtime, grace).await;
    }
    Runtime::purge(runtime).await?;
    let data_dir = data_dir.to_owned();
    spawn_blocking(move || Placement::purge(&data_dir))
        .await
        .expect("unmounting does not panic")?;
    Ok(())
}
