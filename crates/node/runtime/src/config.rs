//! What a runtime is opened with, checked once.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::pod_cidr::PodCidr;

/// Everything a [`Runtime`](crate::Runtime) needs to know before it touches the host.
#[derive(Debug, Clone)]
pub struct RuntimeConfig {
    /// Directory of this runtime alone, mode 0700, created when missing. It holds one directory per pod
    /// (state, socket, writable layers) and must survive a restart of the agent; what an earlier boot left in it is
    /// removed. On a disk by preference: containers write here. On overlayfs the layers go to a tmpfs instead.
    pub state_dir: PathBuf,
    /// Names every kernel object of this instance, so that two instances never meet.
    pub instance_id: InstanceId,
    /// Whether containers may ask for [`privileged`](crate::ContainerConfig::privileged).
    pub allow_privileged: bool,
    /// Host paths that no container sees, such as the data directory. `state_dir` is always among them.
    pub mask: Vec<PathBuf>,
    /// The program that shims are forked from; [`RuntimeConfig::self_exe`] suits every binary whose `main`
    /// calls [`shim_main_if_asked`](crate::shim_main_if_asked).
    pub self_exe: PathBuf,
    /// The running boot. Pods recorded under another one are stale.
    pub boot_id: BootId,
    /// What pods are connected to.
    pub pod_network: PodNetworkConfig,
}

/// What pods are connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodNetworkConfig {
    /// Whether they have a network of their own.
    pub mode: PodNetworkMode,
    /// Which one; without it the one of before, or the first that is free of `10.88.0.0/16` to `10.95.0.0/16`.
    pub cidr: Option<PodCidr>,
    /// Turns the host's `net.ipv4.ip_forward` on, which nobody turns off again.
    pub enable_ip_forward: bool,
}

/// Whether pods have a network of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PodNetworkMode {
    /// On a bridge of the instance. Where the host does not give one, pods share the host's network, and that is said.
    #[default]
    Bridge,
    /// They share the host's.
    Host,
}

impl RuntimeConfig {
    /// The running program, also after its file was replaced on disk.
    pub fn self_exe() -> PathBuf {
        PathBuf::from("/proc/self/exe")
    }
}

/// One to eight of `[a-z0-9]`: short because it is part of interface names, which end at 15 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(String);

impl InstanceId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InstanceId {
    type Err = ConfigError;

    fn from_str(raw: &str) -> Result<Self, ConfigError> {
        let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if (1..=8).contains(&raw.len()) && raw.bytes().all(safe) {
            Ok(Self(raw.to_owned()))
        } else {
            Err(ConfigError::InstanceId(raw.to_owned()))
        }
    }
}

impl TryFrom<String> for InstanceId {
    type Error = ConfigError;

    fn try_from(raw: String) -> Result<Self, ConfigError> {
        raw.parse()
    }
}

impl From<InstanceId> for String {
    fn from(id: InstanceId) -> String {
        id.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies one boot of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootId(String);

impl BootId {
    /// The boot that is running now, from `/proc/sys/kernel/random/boot_id`.
    pub fn current() -> io::Result<Self> {
        let raw = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(Self(raw.trim().to_owned()))
    }

    /// A boot by name, for tests that pretend a reboot.
    pub fn injected(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

/// A value that cannot be part of a [`RuntimeConfig`].
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not one to eight of `[a-z0-9]`.
    #[error("instance id {0:?} must be 1 to 8 of [a-z0-9]")]
    InstanceId(String),
}

/// The host ids that stand for a pod's uids and gids 0 to 65535.
///
/// Ranges lie between 0x1000_0000 and 0x7000_0000, far above the ids that distributions hand out. A
/// file that a pod shall own as uid 0 belongs to `base` on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRange {
    /// The host id of the pod's id 0.
    pub base: u32,
}

impl IdRange {
    /// How many ids a pod has.
    pub const LEN: u32 = 65_536;

    /// The host id of a pod's id, or `None` above 65535.
    pub fn host_id(self, pod_id: u32) -> Option<u32> {
        (pod_id < Self::LEN).then(|| self.base + pod_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_ids_fit_into_interface_names() {
        for (raw, valid) in [
            ("a1b2c3d4", true),
            ("x", true),
            ("", false),
            ("a1b2c3d4e", false),
            ("A", false),
            ("a/b", false),
        ] {
            assert_eq!(raw.parse::<InstanceId>().is_ok(), valid, "{raw:?}");
        }
    }

    #[test]
    fn ids_above_the_range_have_no_host_id() {
        let range = IdRange { base: 0x1000_0000 };
        assert_eq!(range.host_id(0), Some(0x1000_0000));
        assert_eq!(range.host_id(65_535), Some(0x1000_ffff));
        assert_eq!(range.host_id(65_536), None);
    }
}
