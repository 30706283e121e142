//! What a caller asks for: a sandbox, and containers in it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A pod's sandbox: its namespaces and its address.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxConfig {
    /// The pod's uid: 1 to 63 of `[A-Za-z0-9-]`. It names the sandbox everywhere.
    pub pod_uid: String,
    /// The pod's namespace, kept for whoever lists sandboxes.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The host name inside, at most 64 bytes.
    pub hostname: String,
    /// Whether all containers live in one pid namespace (`shareProcessNamespace`). Its first process is none of theirs.
    #[serde(default)]
    pub share_process_namespace: bool,
    /// Whether it shares the host's network (`hostNetwork`). Every sandbox does where the instance has no network for pods.
    #[serde(default)]
    pub host_network: bool,
    /// What all its containers together may use.
    #[serde(default)]
    pub resources: Resources,
}

/// What a container, or all containers of a pod, may use (CRI's `LinuxContainerResources`). What is absent has no limit; without
/// `cpu_shares` the kernel's own share is had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// The share of the CPUs when they are contended, 2 to 262144; 1024 is one CPU's worth.
    pub cpu_shares: Option<u64>,
    /// Microseconds of CPU time in each 100 ms; at least 1000.
    pub cpu_quota_micros: Option<u64>,
    /// Bytes of memory: anonymous, page cache, tmpfs, the kernel's own. No swap beside it.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at a time.
    pub pids: Option<u64>,
}

/// One container of a sandbox. Ids are the pod's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContainerConfig {
    /// The container's name: 1 to 63 of `[a-z0-9-]`.
    pub name: String,
    /// Counts restarts; a name may run once at a time, and each attempt of it only once.
    pub attempt: u32,
    /// The program and its arguments. The program is looked up inside the container with its `PATH`.
    pub argv: Vec<String>,
    /// `NAME`, value. Without a `PATH` the usual one is set; without a `HOME` that of the user.
    pub env: Vec<(String, String)>,
    /// The working directory, created when missing.
    pub cwd: PathBuf,
    /// Who the process runs as.
    pub user: ProcessUser,
    /// What uid 0 of this container may do inside the pod's namespaces.
    pub capabilities: Capabilities,
    /// `allowPrivilegeEscalation: false`.
    pub no_new_privileges: bool,
    /// Which system calls the container may make; a privileged one may make all. A shim of the release before does not know
    /// the field, and confines nobody.
    #[serde(default)]
    pub seccomp: SeccompProfile,
    /// Every capability of the pod's user namespace, `/proc` and `/sys` unmasked. Refused unless the runtime allows it;
    /// even then the process is not root of the host.
    pub privileged: bool,
    /// `readOnlyRootFilesystem`: the overlay is read-only and so are `/tmp`, `/run` and what is in `writable`; mounts keep their
    /// own mode.
    pub read_only_root: bool,
    /// Host files and directories that appear inside.
    pub mounts: Vec<MountConfig>,
    /// Directories that become an empty tmpfs owned by the container's user.
    pub writable: Vec<PathBuf>,
    /// Symlinks made before the process starts: link path, its text. Their parents are made too.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Small files made before the process starts, in the container's own layer. A shim of an earlier release leaves them out.
    #[serde(default)]
    pub files: Vec<FileConfig>,
    /// The CRI log file. Its directory is created when missing; existing content is kept.
    pub log_path: PathBuf,
    /// When the log file is rotated.
    pub log_limits: LogLimits,
    /// Whether the process has a terminal; its output then counts as stdout.
    pub tty: bool,
    /// What the process reads on its stdin. A shim of the first release knows [`Stdin::Empty`] only.
    #[serde(default)]
    pub stdin: Stdin,
    /// What it may use, within what its pod may.
    #[serde(default)]
    pub resources: Resources,
    /// How soon the kernel kills its processes when the machine's memory runs out: -1000 (never) to 1000; 0 when absent.
    #[serde(default)]
    pub oom_score_adj: Option<i32>,
    /// The container whose pid namespace it lives in, which has to run, and which ends it by its own end. A shim of the release
    /// before refuses such a start. In a sandbox whose containers share one it changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// The stdin of a container's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// `/dev/null`; a terminal that nobody types on.
    #[default]
    Empty,
    /// Open for as long as the process runs; whoever attaches may write.
    Open,
    /// Open until the first who attached to it has left, then at its end (`stdinOnce`). A terminal has no end: it stays open,
    /// as containerd leaves it.
    Once,
}

/// A process's identity inside the pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUser {
    /// At most 65535.
    pub uid: u32,
    /// At most 65535.
    pub gid: u32,
    /// Supplementary groups, `fsGroup` included; each at most 65535.
    pub supplementary_groups: Vec<u32>,
    /// Whether the groups that the user has in the container's `/etc/group` count too (`supplementalGroupsPolicy: Merge`).
    #[serde(default)]
    pub merge_groups: bool,
}

/// A container's seccomp profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeccompProfile {
    /// None.
    #[default]
    Unconfined,
    /// The calls that containerd allows a container with these capabilities; others fail with `EPERM`, unknown ones with
    /// `ENOSYS`. Programs of another architecture than the machine's own, 32-bit ones included, are killed.
    RuntimeDefault,
}

/// A host file or directory bound into a container; `nosuid` and `nodev` always.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MountConfig {
    /// The host path. Links in it are followed, so pass what is already resolved; `/proc/<pid>/fd/<n>` of the caller is
    /// welcome and binds exactly what that descriptor shows.
    pub source: PathBuf,
    /// The path inside; parents and the mount point are made in the upper layer when missing.
    pub target: PathBuf,
    /// Whether it is read-only inside, submounts included.
    pub read_only: bool,
    /// Show the source's owners 0 to 65535 as the pod's own ids. Wants a file system that supports id-mapped
    /// mounts (tmpfs since Linux 6.3); without it the source must be owned by ids of the pod's range.
    pub id_mapped: bool,
}

/// A file that a container finds: owned by the pod's root, mode 0644. It takes the place of the host's, a link included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileConfig {
    /// The path inside; its parents are made when missing.
    pub path: PathBuf,
    /// What it says.
    pub content: String,
}

/// When a container's log file is rotated. The names are the kubelet's: `<log>.<YYYYMMDD-hhmmss>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// A file that reached this size is renamed and a new one begun.
    pub max_bytes: u64,
    /// How many files are kept, the current one included; at least 2.
    pub max_files: u32,
}

impl Default for LogLimits {
    /// The kubelet's defaults (`containerLogMaxSize`, `containerLogMaxFiles`): 10 MiB, 5 files.
    fn default() -> Self {
        Self {
            max_bytes: 10 << 20,
            max_files: 5,
        }
    }
}

/// A set of Linux capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities(pub(crate) u64);

/// A name that is no Linux capability.
#[derive(Debug, thiserror::Error)]
#[error("unknown capability {0:?}")]
pub struct UnknownCapability(pub String);

/// In the order of `linux/capability.h`; the index is the number.
const CAPABILITY_NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What containerd 2 gives a container (`defaultUnixCaps` in its `pkg/oci`).
const CONTAINERD_DEFAULT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

impl Capabilities {
    /// No capability at all.
    pub const NONE: Self = Self(0);
    /// Every capability this release knows.
    pub const ALL: Self = Self((1 << CAPABILITY_NAMES.len()) - 1);

    /// `securityContext.capabilities` over the default set: first `add`, then `drop`, `ALL` understood in both.
    /// Names may carry the prefix `CAP_`, in any case, as containerd takes them.
    pub fn from_default<'a>(
        add: impl IntoIterator<Item = &'a str>,
        drop: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, UnknownCapability> {
        let (add, drop) = (Named::parse(add)?, Named::parse(drop)?);
        let base = if add.all {
            Self::ALL.0
        } else if drop.all {
            0
        } else {
            Self::default().0
        };
        // A name counts after ALL on the other side: `drop: [ALL], add: [X]` is X, `add: [ALL], drop: [X]` is all but X.
        Ok(Self((base | add.bits) & !drop.bits))
    }
}

impl Capabilities {
    /// Whether the capability of this name, without `CAP_`, is in the set.
    pub(crate) fn holds(self, name: &str) -> bool {
        let number = CAPABILITY_NAMES.iter().position(|known| *known == name);
        number.is_some_and(|number| self.0 >> number & 1 == 1)
    }
}

impl Default for Capabilities {
    /// containerd's default set.
    fn default() -> Self {
        let bit = |name: &&str| {
            CAPABILITY_NAMES
                .iter()
                .position(|known| known == name)
                .map_or(0, |index| 1 << index)
        };
        Self(
            CONTAINERD_DEFAULT
                .iter()
                .map(bit)
                .fold(0, |set, bit: u64| set | bit),
        )
    }
}

struct Named {
    all: bool,
    bits: u64,
}

impl Named {
    fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownCapability> {
        let mut parsed = Self { all: false, bits: 0 };
        for raw in names {
            let upper = raw.to_ascii_uppercase();
            let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
            if name == "ALL" {
                parsed.all = true;
                continue;
            }
            let index = CAPABILITY_NAMES.iter().position(|known| *known == name);
            let Some(index) = index else {
                return Err(UnknownCapability(raw.to_owned()));
            };
            parsed.bits |= 1 << index;
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_follow_the_security_context() {
        let default = Capabilities::default().0;
        assert_eq!(
            default, 0xa804_25fb,
            "the mask containerd's containers show in /proc/self/status"
        );
        let net_admin = 1 << 12;
        let cases: [(&[&str], &[&str], u64); 6] = [
            (&[], &[], default),
            (&["NET_ADMIN"], &[], default | net_admin),
            (&["cap_net_admin"], &["ALL"], net_admin),
            (&[], &["ALL"], 0),
            (&["ALL"], &["NET_ADMIN"], Capabilities::ALL.0 & !net_admin),
            (&[], &["CHOWN"], default & !1),
        ];
        for (add, drop, expected) in cases {
            let set = Capabilities::from_default(add.iter().copied(), drop.iter().copied());
            assert_eq!(
                set.map(|set| set.0).ok(),
                Some(expected),
                "add {add:?} drop {drop:?}"
            );
        }
        assert!(Capabilities::from_default(["NOPE"], []).is_err());
    }
}
