//! A command that brings a change to somebody: `--exec`.

use std::time::Duration;

use clap::Args;
use futures_util::future::BoxFuture;
use hotmap_projection::Change;

use crate::command::CommandLine;
use crate::target::{Fired, Target, TargetError, TargetKind};

/// Flags of commands as targets.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExecArgs {
    /// A command that is run for each change, such as `psql -c 'select pg_reload_conf()'`. Repeatable.
    ///
    /// It is split into words as a shell does and started directly; `sh -c '…'` is there for who wants a shell. Its
    /// environment names what has changed, one per line: HOTMAP_CHANGED_KEYS, HOTMAP_REVISION, HOTMAP_VOLUME_DIR. It is
    /// killed with its process group after --timeout.
    #[arg(long, env = "HOTMAP_EXEC", value_name = "CMD", value_parser = command_line, help_heading = "Targets")]
    pub(crate) exec: Vec<CommandLine>,
}

pub(crate) fn command_line(raw: &str) -> Result<CommandLine, String> {
    CommandLine::parse(raw).map_err(|error| error.to_string())
}

/// Runs a command.
#[derive(Debug)]
pub struct Exec {
    command: CommandLine,
    timeout: Duration,
    name: String,
}

impl Exec {
    /// A target that runs this command, and kills it after `timeout`.
    pub fn new(command: CommandLine, timeout: Duration) -> Self {
        let name = format!("exec {command}");
        Self {
            command,
            timeout,
            name,
        }
    }
}

impl Target for Exec {
    fn kind(&self) -> TargetKind {
        TargetKind::Exec
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn limits_itself(&self) -> bool {
        true
    }

    fn fire<'a>(&'a self, changes: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        Box::pin(async move {
            match self.command.run(changes, self.timeout).await {
                Ok(words) => {
                    words.log(&self.command);
                    Ok(Fired::Confirmed)
                }
                Err(error) => Err(TargetError {
                    message: error.to_string(),
                    reason: error.reason(),
                    is_temporary: error.is_temporary(),
                }),
            }
        })
    }
}
