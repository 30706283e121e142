//! What `up` may run with: every rule about its flags is here.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
};

use hotmap_object::names;
use hotmap_server::{AuditConfig, AuditTarget};

use crate::{
    cli::{AuditLevel, UpArgs},
    data_dir::{self, DataDirError},
    following::FollowingArgs,
};

/// An audit log takes half a gigabyte at most: the current file and four full ones.
const AUDIT_FILE_BYTES_MAX: u64 = 100 * 1024 * 1024;
const AUDIT_OLD_FILES_MAX: usize = 4;

/// Flags that were checked.
#[derive(Debug)]
pub(crate) struct UpConfig {
    pub(crate) home: Home,
    pub(crate) listen: SocketAddr,
    pub(crate) tls_sans: Vec<String>,
    pub(crate) manifests: Vec<PathBuf>,
    pub(crate) node: Option<NodeConfig>,
    pub(crate) audit: Option<AuditConfig>,
}

/// Where this instance lives, and with that how long.
#[derive(Debug)]
pub(crate) enum Home {
    /// Until somebody purges it.
    Kept {
        data_dir: PathBuf,
        kubeconfig: Option<PathBuf>,
    },
    /// As long as this command runs.
    Temporary { command: Vec<String> },
}

#[derive(Debug)]
pub(crate) struct NodeConfig {
    pub(crate) name: String,
    pub(crate) allow_privileged: bool,
    pub(crate) following: FollowingArgs,
    pub(crate) faults: Faults,
}

/// What is made to go wrong on purpose, so that a test sees what becomes of it. Nothing, unless a hidden flag asks.
#[derive(Debug)]
pub(crate) struct Faults {
    /// The boot that the node takes for the running one.
    pub(crate) boot_id: Option<String>,
    /// Where the node finds the API instead of where it is: somebody stands in between.
    pub(crate) node_api: Option<SocketAddr>,
}

/// A call that cannot be carried out as typed: exit code 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpCallError {
    #[error("--listen {given:?} is not an address like 127.0.0.1:6443: {source}")]
    Listen { given: String, source: std::io::Error },
    #[error("--listen {given:?} names no address")]
    ListenUnknown { given: String },
    #[error("--node-name {name:?} is not a node name: {}", .broken.join("; "))]
    NodeName { name: String, broken: Vec<String> },
    #[error(
        "running pods needs root, for mounts, namespaces and the pod network; start with --no-node to have the API and the store without it, or run as root"
    )]
    NeedsRoot,
    #[error("--filename {}: no such file or directory", .0.display())]
    NoManifest(PathBuf),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

impl UpConfig {
    pub(crate) fn try_from(args: UpArgs) -> Result<Self, UpCallError> {
        for path in &args.manifests {
            if !path.exists() {
                return Err(UpCallError::NoManifest(path.clone()));
            }
        }
        let audit = audit_config(&args);
        let node = if args.no_node || args.temp {
            None
        } else {
            Some(node_config(&args)?)
        };
        let home = if args.temp {
            Home::Temporary {
                command: args.command,
            }
        } else {
            let data_dir = args.data_dir.data_dir.map_or_else(data_dir::default_path, Ok)?;
            Home::Kept {
                data_dir,
                kubeconfig: args.kubeconfig,
            }
        };
        let listen = match &home {
            Home::Temporary { .. } => SocketAddr::from(([127, 0, 0, 1], 0)),
            Home::Kept { .. } => listen_address(&args.listen)?,
        };
        Ok(Self {
            home,
            listen,
            tls_sans: args.tls_san,
            manifests: args.manifests,
            node,
            audit,
        })
    }
}

fn audit_config(args: &UpArgs) -> Option<AuditConfig> {
    let path = args.audit_log.as_ref()?;
    let level = match args.audit_level {
        AuditLevel::None => return None,
        AuditLevel::Metadata => hotmap_server::AuditLevel::Metadata,
        AuditLevel::Request => hotmap_server::AuditLevel::Request,
    };
    let target = match path.as_os_str() == "-" {
        true => AuditTarget::StandardOutput,
        false => AuditTarget::File {
            path: path.clone(),
            bytes_max: AUDIT_FILE_BYTES_MAX,
            old_max: AUDIT_OLD_FILES_MAX,
        },
    };
    Some(AuditConfig { level, target })
}

fn node_config(args: &UpArgs) -> Result<NodeConfig, UpCallError> {
    if !rustix::process::geteuid().is_root() {
        return Err(UpCallError::NeedsRoot);
    }
    let name = args.node_name.clone().unwrap_or_else(host_name);
    match names::dns_1123_subdomain(&name) {
        broken if broken.is_empty() => Ok(NodeConfig {
            name,
            allow_privileged: args.allow_privileged,
            following: args.following,
            faults: Faults {
                boot_id: args.fault_boot_id.clone(),
                node_api: args.fault_node_api,
            },
        }),
        broken => Err(UpCallError::NodeName { name, broken }),
    }
}

/// The host's name in the alphabet of node names, as a kubelet takes it.
fn host_name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().trim().to_lowercase()
}

fn listen_address(given: &str) -> Result<SocketAddr, UpCallError> {
    let full = if given.starts_with(':') {
        format!("0.0.0.0{given}")
    } else {
        given.to_owned()
    };
    let mut addresses = full.to_socket_addrs().map_err(|source| UpCallError::Listen {
        given: given.to_owned(),
        source,
    })?;
    addresses.next().ok_or_else(|| UpCallError::ListenUnknown {
        given: given.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_takes_what_people_type() {
        for (given, address) in [
            ("127.0.0.1:6443", Some("127.0.0.1:6443")),
            (":7000", Some("0.0.0.0:7000")),
            ("[::1]:0", Some("[::1]:0")),
            ("6443", None),
            ("127.0.0.1:99999", None),
        ] {
            let found = listen_address(given).ok().map(|address| address.to_string());
            assert_eq!(found.as_deref(), address, "{given}");
        }
    }
}
