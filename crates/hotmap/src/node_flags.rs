//! Flags of who runs a node, in the process of the API server or beside it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hotmap_object::names;
use hotmap_runtime::{PodCidrError, PodNetworkConfig, PodNetworkMode};

use crate::following::FollowingArgs;

/// More than any program needs that does not run wild, and little enough that eight that do leave a machine with the kernel's
/// smallest `pid_max` (32768) alive. A kubelet has no limit by itself.
const POD_MAX_PIDS: i64 = 4_096;

/// As typed.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Name of this node [default: the host name]
    #[arg(long, env = "HOTMAP_NODE_NAME", value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// Run containers that ask to be privileged: every capability inside the pod's own user namespace.
    #[arg(long, env = "HOTMAP_ALLOW_PRIVILEGED")]
    pub(crate) allow_privileged: bool,
    /// Processes and threads that the containers of a pod may have together, as a kubelet's podPidsLimit; -1: as many as the machine
    /// has for all pods.
    #[arg(
        long,
        env = "HOTMAP_POD_MAX_PIDS",
        value_name = "COUNT",
        default_value_t = POD_MAX_PIDS,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-1..=4_194_304)
    )]
    pub(crate) pod_max_pids: i64,
    /// Tell pods, by an event, of each change of configuration that became visible in their volumes.
    #[arg(long, env = "HOTMAP_CONFIGURATION_EVENTS")]
    pub(crate) configuration_events: bool,
    /// What pods are connected to: a network of their own, or this host's.
    #[arg(
        long,
        env = "HOTMAP_POD_NETWORK",
        value_name = "KIND",
        value_enum,
        default_value_t = PodNetworkKind::Bridge
    )]
    pub(crate) pod_network: PodNetworkKind,
    /// Network of the pods, IPv4, /16 to /28 [default: the one of before, or a free one of 10.88.0.0/16 to 10.95.0.0/16]
    #[arg(long, env = "HOTMAP_POD_CIDR", value_name = "CIDR")]
    pub(crate) pod_cidr: Option<String>,
    /// Turn net.ipv4.ip_forward of this host on, so that pods reach other hosts; it stays on.
    #[arg(long, env = "HOTMAP_ENABLE_IP_FORWARD")]
    pub(crate) enable_ip_forward: bool,
    /// Name servers of pods, instead of those in /etc/resolv.conf.
    #[arg(long, env = "HOTMAP_RESOLV_CONF", value_name = "FILE")]
    pub(crate) resolv_conf: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) following: FollowingArgs,
    /// Pretend that this is the running boot; for tests.
    #[arg(long, hide = true, env = "HOTMAP_FAULT_BOOT_ID", value_name = "ID")]
    pub(crate) fault_boot_id: Option<String>,
}

/// What pods are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PodNetworkKind {
    /// A bridge of their own; where this host gives none they share the host's network, which is said.
    Bridge,
    /// This host's network.
    Host,
}

/// Flags that were checked.
#[derive(Debug)]
pub(crate) struct NodeConfig {
    pub(crate) name: String,
    pub(crate) allow_privileged: bool,
    pub(crate) pod_max_pids: Option<u64>,
    pub(crate) configuration_events: bool,
    pub(crate) pod_network: PodNetworkConfig,
    pub(crate) resolv_conf: Option<PathBuf>,
    pub(crate) following: FollowingArgs,
    /// The boot that the node takes for the running one; a fault, for tests.
    pub(crate) boot_id: Option<String>,
}

/// A node that cannot be run as typed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeCallError {
    #[error("--node-name {name:?} is not a node name: {}", .broken.join("; "))]
    NodeName { name: String, broken: Vec<String> },
    #[error("--pod-cidr {0}")]
    PodCidr(#[from] PodCidrError),
    #[error("--pod-cidr is for --pod-network bridge: with host pods have no network of their own")]
    NoCidr,
    #[error("--resolv-conf {}: no such file", .0.display())]
    NoResolvConf(PathBuf),
    #[error("running pods needs root, for mounts, namespaces and the pod network; {0}")]
    NeedsRoot(&'static str),
}

impl NodeConfig {
    /// `else_do` is what somebody without root may do.
    pub(crate) fn try_from(args: NodeArgs, else_do: &'static str) -> Result<Self, NodeCallError> {
        if !rustix::process::geteuid().is_root() {
            return Err(NodeCallError::NeedsRoot(else_do));
        }
        let mode = match args.pod_network {
            PodNetworkKind::Bridge => PodNetworkMode::Bridge,
            PodNetworkKind::Host if args.pod_cidr.is_some() => return Err(NodeCallError::NoCidr),
            PodNetworkKind::Host => PodNetworkMode::Host,
        };
        let cidr = args.pod_cidr.as_deref().map(str::parse).transpose()?;
        if let Some(missing) = args.resolv_conf.as_ref().filter(|path| !path.is_file()) {
            return Err(NodeCallError::NoResolvConf(missing.clone()));
        }
        let name = args.node_name.unwrap_or_else(host_name);
        match names::dns_1123_subdomain(&name) {
            broken if broken.is_empty() => Ok(Self {
                name,
                allow_privileged: args.allow_privileged,
                pod_max_pids: u64::try_from(args.pod_max_pids).ok().filter(|max| *max > 0),
                configuration_events: args.configuration_events,
                pod_network: PodNetworkConfig {
                    mode,
                    cidr,
                    enable_ip_forward: args.enable_ip_forward,
                },
                resolv_conf: args.resolv_conf,
                following: args.following,
                boot_id: args.fault_boot_id,
            }),
            broken => Err(NodeCallError::NodeName { name, broken }),
        }
    }
}

/// The host's name in the alphabet of node names, as a kubelet takes it.
fn host_name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().trim().to_lowercase()
}
