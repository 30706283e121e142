//! The commands of this crate: what can be typed, for `hotmap` and for its slim sister `hotmap-reload`.

#[allow(dead_code, reason = "flags with durations use it")]
pub(crate) mod duration;
mod reload;

use std::process::ExitCode;

use clap::Subcommand;

pub use reload::ReloadArgs;

/// The commands on the side of the process, the same in both binaries.
#[derive(Debug, Subcommand)]
pub enum ProcessCommand {
    /// Check changed files, then tell the process that uses them.
    Reload(ReloadArgs),
}

impl ProcessCommand {
    /// Runs until done, or until SIGINT or SIGTERM. Builds its own runtime of one thread; call it from none.
    pub fn main(self) -> ExitCode {
        match self {
            Self::Reload(args) => args.main(),
        }
    }
}
