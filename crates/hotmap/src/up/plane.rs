//! Everything that `up` runs, started in order and stopped in the reverse.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context, anyhow};
use hotmap_agent::{Access, Agent, AgentConfig, ApiClock, ApiForPods, DigestKey, Metrics, PreparedAgent};
use hotmap_client::{Client, ClientConfig, Server, Timeouts};
use hotmap_clock::ClockJumps;
use hotmap_runtime::{BootId, PodNetwork};
use hotmap_server::{
    NodeAccess, ServerConfig,
    credentials::{Credentials, Identity},
};
use hotmap_store::{Embedded, SystemClock};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::{JoinError, JoinHandle, JoinSet, spawn_blocking},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    certificate_signer::OwnAuthority, config::UpConfig, local_collections::LocalCollections, pods_door,
};
use crate::{clock_jumps, data_dir::DataDir, node_access::LocalNode, node_flags::NodeConfig};

/// A running instance.
pub(super) struct Plane {
    url: String,
    credentials: Credentials,
    store: Arc<Embedded>,
    /// `None` once it has ended on its own.
    server: Option<JoinHandle<anyhow::Result<()>>>,
    stop_server: watch::Sender<bool>,
    /// Controllers and node: they end before the server does.
    clients: JoinSet<anyhow::Result<()>>,
    stop_clients: watch::Sender<bool>,
    /// The pods of the node, if there is one.
    pods: Option<Access>,
    /// What they are connected to.
    pod_network: Option<PodNetwork>,
    clock_jumps: ClockJumps,
    _clock: AbortOnDropHandle<()>,
}

impl Plane {
    /// Starts everything; returns once it serves, with what every cluster begins with.
    pub(super) async fn start(config: &UpConfig, data_dir: &DataDir) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(config.listen).await.with_context(|| {
            format!(
                "cannot listen on {}; name another address with --listen, port 0 for a free one",
                config.listen
            )
        })?;
        let address = listener.local_addr()?;
        let url = format!("https://{}", reachable(address));
        let path = data_dir.path().to_owned();
        let mut names = config.tls_sans.clone();
        // What the kubeconfig names must be in the certificate.
        names.push(reachable(address).ip().to_string());
        let mut registry = Registry::default();
        let (clock, clock_jumps) = clock_jumps::listen();
        let mut prepared = match &config.node {
            Some(node) => {
                let metrics = Metrics::default();
                metrics.register(&mut registry);
                Some(prepare_node(node, data_dir, address, metrics, clock_jumps.clone()).await?)
            }
            None => None,
        };
        let (mut pods_door, mut pod_network) = (None, None);
        if let Some(prepared) = &mut prepared {
            let on_the_host = reachable(address);
            let bridge = prepared.bridge().zip(prepared.network().cidr);
            let for_pods = match bridge {
                Some((bridge, cidr)) => {
                    let door = pods_door::open(cidr.gateway(), &bridge, address)?;
                    let at = door.address;
                    names.push(at.ip().to_string());
                    pods_door = Some(door);
                    at
                }
                None => on_the_host,
            };
            prepared.tell_pods(ApiForPods::Address(for_pods), on_the_host);
            pod_network = Some(prepared.network().clone());
        }
        // Files and, on the first start, key pairs: not on a worker of the runtime.
        let (credentials, store) = spawn_blocking(move || -> anyhow::Result<_> {
            let credentials = Credentials::open(&path, &names, Timestamp::now())?;
            let store = Embedded::open(&path, Arc::new(SystemClock))?;
            Ok((credentials, Arc::new(store)))
        })
        .await??;
        let (stop_server, stopping) = watch::channel(false);
        let (ready_sender, ready) = oneshot::channel();
        let node = Arc::new(LocalNode::default());

        let server_config = ServerConfig {
            version: crate::version::OWN.to_owned(),
            credentials: credentials.clone(),
            node: config.node.as_ref().map(|config| hotmap_server::LocalNode {
                name: config.name.clone(),
                access: Arc::clone(&node) as Arc<dyn NodeAccess>,
            }),
            audit: config.audit.clone(),
            pods_door,
            metrics: registry,
            ready: Some(ready_sender),
        };
        let shared: Arc<Embedded> = Arc::clone(&store);
        let server = tokio::spawn(async move {
            Ok(hotmap_server::run(server_config, shared, listener, stopped(stopping)).await?)
        });
        let (stop_clients, _) = watch::channel(false);
        let mut plane = Self {
            url,
            credentials,
            store,
            server: Some(server),
            stop_server,
            clients: JoinSet::new(),
            stop_clients,
            pods: None,
            pod_network,
            clock_jumps,
            _clock: clock,
        };
        let Ok(objects) = ready.await else {
            return Err(plane.failed().await);
        };
        if config.with_controllers {
            plane.start_controllers(LocalCollections(objects)).await?;
        }
        if let (Some(node_config), Some(prepared)) = (&config.node, prepared) {
            plane
                .start_node(node_config, prepared, &node, data_dir, config.node_api)
                .await?;
        }
        Ok(plane)
    }

    async fn start_controllers(&mut self, collections: LocalCollections) -> anyhow::Result<()> {
        let client = self.client(Identity::Controllers).await?;
        let stopping = stopped(self.stop_clients.subscribe());
        let root_ca = self.credentials.authority_pem().to_owned();
        let signer = Arc::new(OwnAuthority(self.credentials.signer()));
        let clock_jumps = self.clock_jumps.clone();
        self.clients.spawn(async move {
            let controllers =
                hotmap_workload::run(client, collections, &root_ca, signer, clock_jumps, stopping);
            Ok(controllers.await?)
        });
        Ok(())
    }

    async fn start_node(
        &mut self,
        config: &NodeConfig,
        prepared: PreparedAgent,
        node: &LocalNode,
        data_dir: &DataDir,
        reach_api_at: Option<SocketAddr>,
    ) -> anyhow::Result<()> {
        let mut client = self.client_config(Identity::Node(config.name.clone())).await?;
        if let Some(api) = reach_api_at {
            (client.server.host, client.server.port) = (api.ip().to_string(), api.port());
            client.timeouts = Timeouts::default();
        }
        let client = Client::new(client)?;
        let agent = prepared.start(client).await.context("the node does not start")?;
        node.attach(agent.access());
        self.pods = Some(agent.access());
        let stopping = stopped(self.stop_clients.subscribe());
        let (path, id) = (data_dir.path().to_owned(), data_dir.id().to_owned());
        self.clients
            .spawn(async move { crate::agent::run_to_its_end(agent, &path, &id, stopping).await });
        Ok(())
    }

    /// Where the API is.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// What the pods of the node are connected to, if there is one.
    pub(super) fn pod_network(&self) -> Option<&PodNetwork> {
        self.pod_network.as_ref()
    }

    /// A client in this process, with an identity of ours.
    pub(super) async fn client(&self, identity: Identity) -> anyhow::Result<Client> {
        Ok(Client::new(self.client_config(identity).await?)?)
    }

    async fn client_config(&self, identity: Identity) -> anyhow::Result<ClientConfig> {
        let credentials = self.credentials.clone();
        let certificate = spawn_blocking(move || credentials.client(&identity, Timestamp::now())).await??;
        let mut config = ClientConfig::new(Server::parse(&self.url)?, self.credentials.authority_pem());
        config.identity = Some(hotmap_client::Identity {
            certificate_pem: certificate.certificate_pem.into_bytes(),
            key_pem: certificate.key_pem.into_bytes(),
        });
        config.timeouts = Timeouts::in_process();
        Ok(config)
    }

    /// Writes the administrator's kubeconfig.
    pub(super) async fn write_kubeconfig(&self, path: &Path) -> anyhow::Result<()> {
        let (credentials, url, path) = (self.credentials.clone(), self.url.clone(), path.to_owned());
        let write = move || credentials.write_kubeconfig(&path, &url, &Identity::Admin, Timestamp::now());
        Ok(spawn_blocking(write).await??)
    }

    /// Ends only when a part of the instance has ended on its own.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        let server = async {
            match &mut self.server {
                Some(server) => server.await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = server => {
                self.server = None;
                ended.map_err(anyhow::Error::from).flatten().context("the API server ended")
            }
            Some(ended) = self.clients.join_next() => {
                ended.map_err(anyhow::Error::from).flatten().context("the node or a controller ended")
            }
        };
        ended
            .err()
            .unwrap_or_else(|| anyhow!("a part of the instance ended without being asked to"))
    }

    /// Stops everything, also what is left after a part has ended, and returns the last line for the user.
    pub(super) async fn stop(mut self) -> anyhow::Result<String> {
        let mut broken = None;
        let mut note = |ended: Result<anyhow::Result<()>, JoinError>| {
            if let Err(error) = ended.map_err(anyhow::Error::from).flatten() {
                broken.get_or_insert(error);
            }
        };
        self.stop_clients.send_replace(true);
        while let Some(ended) = self.clients.join_next().await {
            note(ended);
        }
        self.stop_server.send_replace(true);
        if let Some(server) = self.server {
            note(server.await);
        }
        let store = self.store;
        spawn_blocking(move || store.close()).await?;
        if let Some(error) = broken {
            return Err(error);
        }
        Ok(crate::agent::farewell(self.pods.as_ref()))
    }
}

/// The node's side of the network, up before the API listens there.
async fn prepare_node(
    config: &NodeConfig,
    data_dir: &DataDir,
    address: SocketAddr,
    metrics: Metrics,
    clock_jumps: ClockJumps,
) -> anyhow::Result<PreparedAgent> {
    let digest_key = data_dir.join("digest.key");
    spawn_blocking(move || DigestKey::create_if_missing(&digest_key)).await??;
    let config = AgentConfig {
        node_name: config.name.clone(),
        data_dir: data_dir.path().to_owned(),
        instance_id: data_dir.id().to_owned(),
        internal_ip: reachable(address).ip(),
        port: None,
        allow_privileged: config.allow_privileged,
        pod_max_pids: config.pod_max_pids,
        configuration_events: config.configuration_events,
        api_for_pods: None,
        api_for_host: None,
        pod_network: config.pod_network,
        resolv_conf: config.resolv_conf.clone(),
        boot_id: config.boot_id.as_deref().map(BootId::injected),
        change_detection: config.following.change_detection,
        sync_frequency: config.following.sync_frequency,
        avoid_node_selector: config.following.fault_avoid_node_selector,
        hold_watches: config.following.fault_hold_watches,
        api_clock: ApiClock::new(clock_jumps),
        metrics,
    };
    Agent::prepare(config).await.context("the node does not start")
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // A sender that is gone is as good as a stop: nobody could ask for one any more.
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// An address a client on this machine can connect to: a wildcard becomes loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], v4.port())),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], v6.port()))
        }
        other => other,
    }
}
