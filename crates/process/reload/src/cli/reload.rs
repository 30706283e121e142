//! `hotmap reload`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Flags of `reload`, as typed.
#[derive(Debug, Args)]
pub struct ReloadArgs {
    /// A directory whose changes are followed. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_VOLUME_DIR",
        value_name = "DIR",
        required = true,
        value_delimiter = ','
    )]
    pub(crate) volume_dir: Vec<PathBuf>,
}

impl ReloadArgs {
    pub(crate) fn main(self) -> ExitCode {
        eprintln!(
            "hotmap: reload of {} is not there yet",
            self.volume_dir[0].display()
        );
        ExitCode::FAILURE
    }
}
