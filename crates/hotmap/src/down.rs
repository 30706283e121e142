//! `hotmap down`: ends what outlives `up`, and with `--purge` everything else too.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::Context;

use crate::{
    cli::DownArgs,
    data_dir::{self, DataDir, DataDirError},
    output::say,
};

/// Flags that were checked.
#[derive(Debug)]
pub(crate) struct DownConfig {
    data_dir: PathBuf,
    purge: bool,
    grace: Option<Duration>,
}

impl DownConfig {
    pub(crate) fn try_from(args: DownArgs) -> Result<Self, DataDirError> {
        let data_dir = args.data_dir.data_dir.map_or_else(data_dir::default_path, Ok)?;
        if !data_dir.is_dir() {
            return Err(DataDirError::Missing { path: data_dir });
        }
        if !data_dir.join("id").is_file() {
            return Err(DataDirError::NoInstance { path: data_dir });
        }
        Ok(Self {
            data_dir,
            purge: args.purge,
            grace: args.grace_period,
        })
    }
}

/// Stops all pods of the instance. `up` must not run: it would start them again.
pub(crate) async fn run(config: DownConfig) -> anyhow::Result<()> {
    let data_dir = DataDir::open(&config.data_dir)?;
    if rustix::process::geteuid().is_root() {
        hotmap_agent::down(data_dir.path(), data_dir.id(), config.grace)
            .await
            .context("not everything could be stopped")?;
        say(format_args!(
            "no pods of {} are running any more",
            data_dir.path().display()
        ));
    }
    if config.purge {
        fs::remove_dir_all(data_dir.path())
            .with_context(|| format!("cannot remove {}", data_dir.path().display()))?;
        say(format_args!("{} is gone", data_dir.path().display()));
    }
    Ok(())
}
