//! Flags of who runs a node, in the process of the API server or beside it.

use clap::Args;
use hotmap_object::names;

use crate::following::FollowingArgs;

/// As typed.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Name of this node [default: the host name]
    #[arg(long, env = "HOTMAP_NODE_NAME", value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// Run containers that ask to be privileged: every capability inside the pod's own user namespace.
    #[arg(long, env = "HOTMAP_ALLOW_PRIVILEGED")]
    pub(crate) allow_privileged: bool,
    /// Tell pods, by an event, of each change of configuration that became visible in their volumes.
    #[arg(long, env = "HOTMAP_CONFIGURATION_EVENTS")]
    pub(crate) configuration_events: bool,
    #[command(flatten)]
    pub(crate) following: FollowingArgs,
    /// Pretend that this is the running boot; for tests.
    #[arg(long, hide = true, env = "HOTMAP_FAULT_BOOT_ID", value_name = "ID")]
    pub(crate) fault_boot_id: Option<String>,
}

/// Flags that were checked.
#[derive(Debug)]
pub(crate) struct NodeConfig {
    pub(crate) name: String,
    pub(crate) allow_privileged: bool,
    pub(crate) configuration_events: bool,
    pub(crate) following: FollowingArgs,
    /// The boot that the node takes for the running one; a fault, for tests.
    pub(crate) boot_id: Option<String>,
}

/// A node that cannot be run as typed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeCallError {
    #[error("--node-name {name:?} is not a node name: {}", .broken.join("; "))]
    NodeName { name: String, broken: Vec<String> },
    #[error("running pods needs root, for mounts, namespaces and the pod network; {0}")]
    NeedsRoot(&'static str),
}

impl NodeConfig {
    /// `else_do` is what somebody without root may do.
    pub(crate) fn try_from(args: NodeArgs, else_do: &'static str) -> Result<Self, NodeCallError> {
        if !rustix::process::geteuid().is_root() {
            return Err(NodeCallError::NeedsRoot(else_do));
        }
        let name = args.node_name.unwrap_or_else(host_name);
        match names::dns_1123_subdomain(&name) {
            broken if broken.is_empty() => Ok(Self {
                name,
                allow_privileged: args.allow_privileged,
                configuration_events: args.configuration_events,
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
