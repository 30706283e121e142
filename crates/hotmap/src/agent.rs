//! `hotmap agent`: a node by itself, against any Kubernetes API.

mod door;
mod join;

use std::{
    net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Context;
use door::Door;
use hotmap_agent::{Access, Agent, AgentConfig, AgentError, ApiClock, Metrics};
use hotmap_client::{Client, ClientConfig, Surroundings};
use hotmap_runtime::{BootId, PodNetwork};
pub(crate) use join::JoinArgs;
use tokio::task::spawn_blocking;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    cli::AgentArgs,
    clock_jumps,
    data_dir::{self, DataDir, DataDirError},
    node_flags::{NodeCallError, NodeConfig},
    output::say,
    service_manager::{Notice, notify},
    stop_signals::StopSignals,
};

/// Flags that were checked.
#[derive(Debug)]
pub(crate) struct AgentCall {
    data_dir: PathBuf,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    join: JoinArgs,
    node: NodeConfig,
    node_ip: Option<IpAddr>,
    listen: Option<SocketAddr>,
}

/// A call that cannot be carried out as typed: exit code 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentCallError {
    #[error(transparent)]
    Node(#[from] NodeCallError),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

impl AgentCall {
    pub(crate) fn try_from(args: AgentArgs) -> Result<Self, AgentCallError> {
        Ok(Self {
            data_dir: args.data_dir.data_dir.map_or_else(data_dir::default_path, Ok)?,
            kubeconfig: args.kubeconfig,
            context: args.context,
            join: args.join,
            node: NodeConfig::try_from(args.node, "run it as root")?,
            node_ip: args.node_ip,
            listen: args.listen,
        })
    }
}

/// Runs until a signal, or until another agent has taken the node over.
pub(crate) async fn run(call: AgentCall) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut signals = StopSignals::listen()?;
    let data_dir = DataDir::create(&call.data_dir)?;
    let joined = match (&call.kubeconfig, &call.context) {
        (None, None) => tokio::select! {
            joined = call.join.ensure(&data_dir, &call.node.name) => joined?,
            _ = signals.next() => anyhow::bail!("stopped before the node had joined"),
        },
        _ => None,
    };
    let api = match &joined {
        Some(joined) => joined.config().await?,
        None => {
            let (kubeconfig, context) = (call.kubeconfig, call.context);
            let surroundings = Surroundings::of_process();
            spawn_blocking(move || {
                ClientConfig::find(kubeconfig.as_deref(), context.as_deref(), &surroundings)
            })
            .await??
        }
    };
    let node_ip = match call.node_ip {
        Some(address) => address,
        None => address_towards(&api.server.host, api.server.port)?,
    };
    let listener = door::bind(call.listen.unwrap_or(SocketAddr::new(node_ip, door::PORT))).await?;
    let url = api.server.url();
    let authority_pem = String::from_utf8_lossy(&api.ca_pem).into_owned();
    let client = Client::new(api)?;
    let (_clock, clock_jumps) = clock_jumps::listen();
    let api_clock = ApiClock::new(clock_jumps);
    let _rotation =
        joined.map(|joined| AbortOnDropHandle::new(joined.keep_fresh(client.clone(), api_clock.clone())));
    let metrics = Metrics::default();
    let config = AgentConfig {
        node_name: call.node.name.clone(),
        data_dir: data_dir.path().to_owned(),
        instance_id: data_dir.id().to_owned(),
        internal_ip: node_ip,
        port: Some(listener.local_addr()?.port()),
        allow_privileged: call.node.allow_privileged,
        pod_max_pids: call.node.pod_max_pids,
        configuration_events: call.node.configuration_events,
        api_for_pods: None,
        api_for_host: None,
        pod_network: call.node.pod_network,
        resolv_conf: call.node.resolv_conf.clone(),
        boot_id: call.node.boot_id.as_deref().map(BootId::injected),
        change_detection: call.node.following.change_detection,
        sync_frequency: call.node.following.sync_frequency,
        avoid_node_selector: call.node.following.fault_avoid_node_selector,
        hold_watches: call.node.following.fault_hold_watches,
        api_clock: api_clock.clone(),
        metrics: metrics.clone(),
    };
    let starting = async {
        let prepared = Agent::prepare(config).await?;
        let network = prepared.network().clone();
        prepared.start(client.clone()).await.map(|agent| (agent, network))
    };
    let (agent, network) = tokio::select! {
        started = starting => started.context("the node does not start")?,
        _ = signals.next() => anyhow::bail!("stopped before it was ready: {url} has not taken the node yet"),
    };
    say(format_args!(
        "hotmap {} is ready after {} ms",
        crate::version::OWN,
        begun.elapsed().as_millis()
    ));
    say(format_args!("  API         {url}"));
    say(format_args!("  node        {} ({node_ip})", call.node.name));
    say_network(&network);
    say(format_args!(
        "  serves      {} for logs and commands",
        listener.local_addr()?
    ));
    say(format_args!("  data        {}", data_dir.path().display()));
    let access = agent.access();
    let _door = Door {
        listener,
        access: access.clone(),
        client: client.clone(),
        node_name: call.node.name.clone(),
        names: vec![call.node.name, node_ip.to_string()],
        authority_pem,
        api_clock,
        metrics,
    }
    .open();
    notify(Notice::Ready(&format!("node of {url}")));
    let stopped = async move {
        signals.next().await;
        notify(Notice::Stopping);
    };
    run_to_its_end(agent, data_dir.path(), data_dir.id(), stopped).await?;
    say(farewell(Some(&access)));
    Ok(())
}

/// Runs a node until `stop`. Where another agent has taken its name, its pods are that agent's now: ours are ended, so that
/// none runs twice.
pub(crate) async fn run_to_its_end(
    mut agent: Agent,
    data_dir: &Path,
    instance_id: &str,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let ended = agent.run(stop).await;
    let Err(AgentError::Fenced(by)) = ended else {
        return Ok(ended?);
    };
    drop(agent);
    hotmap_agent::down(data_dir, instance_id, None)
        .await
        .with_context(|| format!("{by}; not all pods of this one could be ended"))?;
    Err(AgentError::Fenced(by)).context("all pods of this node were ended: another agent acts for it now")
}

/// What pods are connected to, and what is wrong with that.
pub(crate) fn say_network(network: &PodNetwork) {
    match network.cidr {
        Some(cidr) => say(format_args!("  pods        {cidr}")),
        None => say("  pods        share this host's network"),
    }
    for trouble in &network.troubles {
        say(format_args!("  warning     {trouble}"));
    }
}

/// The last line for the user.
pub(crate) fn farewell(pods: Option<&Access>) -> String {
    match pods.map(Access::running_pods) {
        None | Some(0) => "hotmap has stopped; no pods are running".to_owned(),
        Some(1) => "hotmap has stopped; 1 pod goes on running: `hotmap down` stops it".to_owned(),
        Some(pods) => format!("hotmap has stopped; {pods} pods go on running: `hotmap down` stops them"),
    }
}

/// The address of ours that packets to the API leave from. Nothing is sent.
fn address_towards(host: &str, port: u16) -> anyhow::Result<IpAddr> {
    let unknown =
        || format!("cannot tell which address of this machine faces {host}; name it with --node-ip");
    let mut addresses = (host, port).to_socket_addrs().with_context(unknown)?;
    let api = addresses.next().with_context(unknown)?;
    let any: SocketAddr = match api {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any).with_context(unknown)?;
    socket.connect(api).with_context(unknown)?;
    Ok(socket.local_addr().with_context(unknown)?.ip())
}
