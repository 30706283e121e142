//! What is there: sandboxes and their containers.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::config::IdRange;
use crate::spec::SandboxConfig;

/// A sandbox as the runtime knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sandbox {
    /// What it was made from.
    pub pod_uid: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's address on the bridge; `None` where it shares the host's network.
    pub ip: Option<Ipv4Addr>,
    /// The host ids behind the pod's own.
    pub ids: IdRange,
    /// When the sandbox was made.
    pub created_at: SystemTime,
    /// Whether it can run containers.
    pub state: SandboxState,
    /// Whether its shim puts limits into force, as far as the machine has them; one of an earlier release does not.
    pub has_limits: bool,
    /// Every attempt that was started and not removed, by name and attempt.
    pub containers: Vec<ContainerStatus>,
}

/// Whether a sandbox can run containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxState {
    /// Its shim answers.
    Ready,
    /// It was stopped, or its shim died; it can only be removed.
    NotReady,
}

/// One attempt of a container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainerStatus {
    /// The container's name.
    pub name: String,
    /// The attempt.
    pub attempt: u32,
    /// Who its process was when it began; a shim of an earlier release does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<ContainerUser>,
    /// Running or ended.
    pub state: ContainerState,
}

/// Who a process was when it executed its program (CRI's `LinuxContainerUser`), in the pod's own ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerUser {
    /// The user.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// All groups in the kernel's order, the primary one and those of the container's `/etc/group` among them.
    pub groups: Vec<u32>,
}

/// Whether a container's first process runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ContainerState {
    /// The process runs.
    Running {
        /// The process in the host's pid namespace; inside it is 1, unless the pod's containers share theirs.
        pid: i32,
        /// When it was executed.
        started_at: SystemTime,
    },
    /// The process has ended and its output is in the log.
    Exited(Exit),
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// 0 to 255, or 128 + the signal.
    pub exit_code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When it was executed.
    pub started_at: SystemTime,
    /// When the shim noticed.
    pub finished_at: SystemTime,
    /// Whether the kernel's out-of-memory killer ended a process of it and it did not end well for all that.
    pub oom_killed: bool,
    /// Whether the shim died first, so that nobody knows how it really ended; the code is then 137.
    pub lost: bool,
}

impl Sandbox {
    /// The newest attempt of a container.
    pub fn container(&self, name: &str) -> Option<&ContainerStatus> {
        self.containers
            .iter()
            .filter(|container| container.name == name)
            .max_by_key(|container| container.attempt)
    }
}

/// The shim's `state.json`, which is also what it sends to watchers. Fields are only ever added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PodState {
    pub(crate) version: u32,
    pub(crate) shim_pid: i32,
    /// Field 22 of `/proc/<pid>/stat`, so that a reused pid is not mistaken for the shim.
    pub(crate) shim_start_ticks: u64,
    pub(crate) created_at: SystemTime,
    pub(crate) stopped: bool,
    /// Not said by a shim of the release before limits.
    #[serde(default)]
    pub(crate) has_limits: bool,
    pub(crate) containers: Vec<ContainerStatus>,
}

/// The agent's `sandbox.json`: what a shim is started with. It holds no environment and no secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SandboxRecord {
    pub(crate) version: u32,
    pub(crate) instance_id: String,
    #[serde(flatten)]
    pub(crate) config: SandboxConfig,
    pub(crate) ids: IdRange,
    /// `None`: it shares the host's.
    #[serde(default)]
    pub(crate) network: Option<NetworkRecord>,
    pub(crate) mask: Vec<PathBuf>,
    pub(crate) allow_privileged: bool,
}

/// A pod's place on the bridge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NetworkRecord {
    pub(crate) bridge: String,
    pub(crate) host_link: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) gateway: Ipv4Addr,
    pub(crate) prefix_len: u8,
}
