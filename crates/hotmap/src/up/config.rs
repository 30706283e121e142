//! What `up` may run with: every rule about its flags is here.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
};

use hotmap_server::{AuditConfig, AuditTarget};

use super::manifests::Source;
use crate::{
    cli::{ApiArgs, AuditLevel, ServeArgs, StoreKind, UpArgs},
    data_dir::{self, DataDirError},
    node_flags::{NodeCallError, NodeConfig},
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
    pub(crate) manifests: Vec<Source>,
    /// Whether what a followed directory does not hold any more is deleted.
    pub(crate) prune: bool,
    pub(crate) node: Option<NodeConfig>,
    /// Where the node finds the API instead of where it is: somebody stands in between. A fault, for tests.
    pub(crate) node_api: Option<SocketAddr>,
    /// Whether controllers run; without them nothing that one object asks for becomes another.
    pub(crate) with_controllers: bool,
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

/// A call that cannot be carried out as typed: exit code 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpCallError {
    #[error("--listen {given:?} is not an address like 127.0.0.1:6443: {source}")]
    Listen { given: String, source: std::io::Error },
    #[error("--listen {given:?} names no address")]
    ListenUnknown { given: String },
    #[error(transparent)]
    Node(#[from] NodeCallError),
    #[error(
        "--store etcd is not built yet: this release keeps objects in the embedded store of one machine; leave the flag away"
    )]
    EtcdStore,
    #[error("--filename {}: no such file or directory", .0.display())]
    NoManifest(PathBuf),
    #[error("--prune is for directories that are followed: name one with -f DIR")]
    NothingToPrune,
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

impl UpConfig {
    /// `hotmap up`.
    pub(crate) fn try_from(args: UpArgs) -> Result<Self, UpCallError> {
        let manifests = args.manifests.into_iter().map(|path| {
            let missing = UpCallError::NoManifest(path.clone());
            Source::of(path).ok_or(missing)
        });
        let manifests = manifests.collect::<Result<Vec<_>, _>>()?;
        let is_directory = |source: &Source| matches!(source, Source::Directory(_));
        if args.prune && !manifests.iter().any(is_directory) {
            return Err(UpCallError::NothingToPrune);
        }
        let node = if args.no_node || args.temp {
            None
        } else {
            let else_do = "start with --no-node to have the API and the store without it, or run as root";
            Some(NodeConfig::try_from(args.node, else_do)?)
        };
        let audit = audit_config(&args.api);
        let (home, listen) = if args.temp {
            let command = args.command;
            (Home::Temporary { command }, SocketAddr::from(([127, 0, 0, 1], 0)))
        } else {
            kept(&args.api)?
        };
        Ok(Self {
            home,
            listen,
            tls_sans: args.api.tls_san,
            manifests,
            prune: args.prune,
            node,
            node_api: args.fault_node_api,
            with_controllers: true,
            audit,
        })
    }

    /// `hotmap serve`.
    pub(crate) fn of_serve(args: ServeArgs) -> Result<Self, UpCallError> {
        if args.store == StoreKind::Etcd {
            return Err(UpCallError::EtcdStore);
        }
        let (home, listen) = kept(&args.api)?;
        Ok(Self {
            home,
            listen,
            audit: audit_config(&args.api),
            tls_sans: args.api.tls_san,
            manifests: Vec::new(),
            prune: false,
            node: None,
            node_api: None,
            with_controllers: !args.no_controllers,
        })
    }
}

fn kept(args: &ApiArgs) -> Result<(Home, SocketAddr), UpCallError> {
    let data_dir = args
        .data_dir
        .data_dir
        .clone()
        .map_or_else(data_dir::default_path, Ok)?;
    let kubeconfig = args.kubeconfig.clone();
    Ok((Home::Kept { data_dir, kubeconfig }, listen_address(&args.listen)?))
}

fn audit_config(args: &ApiArgs) -> Option<AuditConfig> {
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
