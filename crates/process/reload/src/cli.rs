//! The commands of this crate: what can be typed, for `hotmap` and for its slim sister `hotmap-reload`.

mod dialect;
pub(crate) mod duration;
mod flag_order;
mod k8s_sidecar;
mod probe;
mod reload;
mod run;
mod serve;
mod sync;
mod targets;

use std::process::ExitCode;

use clap::Subcommand;

pub use dialect::{DialectError, Translation, translate};
pub use k8s_sidecar::{SidecarCall, k8s_sidecar_call};
pub use probe::ProbeArgs;
pub use reload::ReloadArgs;
pub use run::RunArgs;
pub use sync::SyncArgs;
pub(crate) use targets::environment;
pub use targets::{ReloaderArgs, TargetArgs};

/// The commands on the side of the process, the same in both binaries.
#[derive(Debug, Subcommand)]
pub enum ProcessCommand {
    /// Check changed files, then tell the process that uses them.
    Reload(Box<ReloadArgs>),
    /// Keep a directory equal to ConfigMaps and Secrets, without a node.
    Sync(Box<SyncArgs>),
    /// Supervise a program, also as process 1 of a container; reload or restart it on change.
    Run(Box<RunArgs>),
    /// Is what is on the disk what the process has loaded? For liveness and readiness probes.
    Probe(Box<ProbeArgs>),
}

impl ProcessCommand {
    /// Runs until done, or until SIGINT or SIGTERM. Builds its own runtime of one thread; call it from none.
    pub fn main(self) -> ExitCode {
        match self {
            Self::Reload(args) => args.main(),
            Self::Sync(args) => args.main(),
            Self::Run(args) => args.main(),
            Self::Probe(args) => args.main(),
        }
    }
}
