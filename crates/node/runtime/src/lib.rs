//! Pod sandboxes and containers in CRI's nouns, over the host's own files.
//!
//! There are no images: a container's root is an overlay of the host's root, read through the eyes of an
//! unprivileged user, with an upper directory of its own. One *shim* per pod (forked from this program, re-executed
//! before any runtime or thread exists) holds the pod's namespaces, its containers' standard streams, log
//! files and exit codes, and outlives the agent that started it.
//!
//! ```text
//!   agent (tokio)                          one per pod, single-threaded
//!   Runtime ── unix socket, frames ──────▶ shim ──clone──▶ container (pid 1 of its pid namespace)
//!      ▲     start·stop·exec·attach·watch    │  holds user, net, ipc, uts namespaces
//!      └── events: exits, lost sandboxes     └─ state.json, CRI log files, grace timers
//! ```
//!
//! The program's `main` calls [`shim_main_if_asked`] first, before it parses arguments or starts a thread.
//! What runs inside the shim is under `shim/`, what runs inside the agent is under `runtime/`; they share only
//! `protocol`, `spec` and `state`.

mod attach;
mod cgroup;
mod config;
#[cfg(test)]
mod earlier_release;
mod error;
mod events;
mod exec;
mod host_images;
mod mount_beneath;
mod mountinfo;
mod netlink;
mod nftables;
#[cfg(test)]
mod own_network;
mod pod_cidr;
mod protocol;
mod runtime;
mod shim;
mod spec;
mod status;
mod swap_floor;
mod sys;

pub use attach::{AttachConfig, AttachSession};
pub use cgroup::Unenforced;
pub use config::{BootId, ConfigError, IdRange, InstanceId, PodNetworkConfig, PodNetworkMode, RuntimeConfig};
pub use error::{
    AttachError, CompareError, ConnectError, ContainerError, ExecError, OpenError, PurgeError, SandboxError,
    StartError, SwapError,
};
pub use events::{ContainerExited, Event, Events};
pub use exec::{ExecConfig, ExecReader, ExecSession, ExecSyncOutput, ExecWriter, TerminalSize};
pub use host_images::{HostImage, HostImages, HostImagesError};
pub use mount_beneath::{KernelTooOld, can_mount_beneath};
pub use pod_cidr::{PodCidr, PodCidrError};
pub use runtime::{MountSwap, MountSwaps, NetworkTrouble, PodNetwork, Prepared, Runtime, Swapped};
pub use shim::shim_main_if_asked;
pub use spec::{
    Capabilities, ContainerConfig, FileConfig, LogLimits, MountConfig, ProcessUser, Resources, SandboxConfig,
    SeccompProfile, Stdin, UnknownCapability,
};
pub use status::{ContainerState, ContainerStatus, ContainerUser, Exit, Sandbox, SandboxState};
pub use swap_floor::bare_mount_swaps;
