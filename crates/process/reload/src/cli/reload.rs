//! `hotmap reload`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hotmap_projection::WatchConfig;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

use super::duration::duration;
use super::serve::ServeArgs;
use super::targets::{ReloaderArgs, environment};
use crate::announcer::Announcer;
use crate::feed::{self, Feed, FirstLook, is_within};
use crate::reloader::{Outcome, Reloader, ReloaderConfig};
use crate::state_file;

/// The call was wrong.
const EXIT_CALL: u8 = 2;
/// How often a call that failed is repeated with --once, where nobody waits for ever: less than a minute in all.
const ONCE_RETRIES: u32 = 8;

/// Flags of `reload`, as typed.
#[derive(Debug, Args)]
pub struct ReloadArgs {
    /// A directory (or a file) whose changes are followed; it need not exist yet. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_VOLUME_DIR",
        value_name = "DIR",
        required_unless_present = "render",
        value_delimiter = ','
    )]
    pub(crate) volume_dir: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reloader: ReloaderArgs,
    /// Write how far the last change has come to this file, for `hotmap probe --state-file`.
    #[arg(long, env = "HOTMAP_STATE_FILE", value_name = "FILE")]
    pub(crate) state_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    /// Bring what is found at the start to the targets as well. Without it they are told of changes only: who starts
    /// reads its files itself.
    #[arg(long, env = "HOTMAP_ON_START")]
    pub(crate) on_start: bool,
    /// Wait until the content is there, bring it to the targets once, and end: 0 if all have taken it, 1 if not. For
    /// init containers. Without --retries a call is repeated 8 times.
    #[arg(long, env = "HOTMAP_ONCE", conflicts_with = "on_start")]
    pub(crate) once: bool,
    /// Plain files are told of when nobody has written for so long. What is swapped whole is told of at once.
    #[arg(long, env = "HOTMAP_SETTLE", value_name = "DURATION", default_value = "100ms", value_parser = duration)]
    pub(crate) settle: Duration,
    /// The time between two looks that nothing asks for: they find what raises no events.
    #[arg(long, env = "HOTMAP_WATCH_INTERVAL", value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) watch_interval: Duration,
}

impl ReloadArgs {
    pub(crate) fn main(self) -> ExitCode {
        let (config, watch) = match self.config() {
            Ok(config) => config,
            Err(message) => {
                eprintln!("hotmap: {message}");
                return ExitCode::from(EXIT_CALL);
            }
        };
        let ended = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start: {error}"))
            .and_then(|runtime| runtime.block_on(self.run(config, watch)));
        match ended {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("hotmap: {message}");
                ExitCode::FAILURE
            }
        }
    }

    /// What may run.
    fn config(&self) -> Result<(ReloaderConfig, WatchConfig), String> {
        let mut paths = self.volume_dir.clone();
        for render in &self.reloader.render {
            if let Some(directory) = paths.iter().find(|directory| is_within(&render.out, directory)) {
                return Err(format!(
                    "--render makes {}, which lies in the watched {}: every change would be followed by another; let it \
                     make a file elsewhere",
                    render.out.display(),
                    directory.display()
                ));
            }
            // A template elsewhere is watched for itself.
            if !paths
                .iter()
                .any(|directory| is_within(&render.template, directory))
            {
                paths.push(render.template.clone());
            }
        }
        let mut config = self.reloader.config(paths, environment())?;
        let is_told = !config.targets.is_empty() || !config.renders.is_empty() || config.check.is_some();
        if !is_told && !self.serve.is_serving() {
            return Err(
                "nobody is told of changes: give --signal, --webhook-url, --exec, --unit, --container, --render or --serve".to_owned(),
            );
        }
        if self.once {
            config.pace.retries = config.pace.retries.or(Some(ONCE_RETRIES));
        }
        if self.watch_interval.is_zero() {
            return Err("--watch-interval has to be more than 0".to_owned());
        }
        let watch = WatchConfig {
            settle: self.settle,
            safety_look: self.watch_interval,
            ..WatchConfig::default()
        };
        Ok((config, watch))
    }

    async fn run(self, config: ReloaderConfig, watch: WatchConfig) -> Result<(), String> {
        let mut ends = [SignalKind::terminate(), SignalKind::interrupt()]
            .into_iter()
            .map(signal)
            .collect::<Result<Vec<Signal>, _>>()
            .map_err(|error| format!("cannot listen for signals: {error}"))?;
        let (end_1, end_2) = ends.split_at_mut(1);
        let names: Vec<&str> = config.targets.iter().map(|target| target.name()).collect();
        info!(paths = ?config.paths, targets = ?names, "following");
        let mut feed = Feed::start(&config.paths, watch).map_err(|error| error.to_string())?;
        let announcer =
            Announcer::open(self.serve.into_config(), &config.paths).map_err(|error| error.to_string())?;
        let mut reloader = Reloader::new(config);
        let announcing = announcer.run(&reloader);
        let stating = state_file::keep(self.state_file.clone(), reloader.progress());
        let work = async {
            if self.once {
                return match feed::once(&mut reloader, &mut feed).await {
                    Outcome::HeldBack(reason) | Outcome::Failed(reason) => Err(reason),
                    Outcome::Loaded | Outcome::Superseded => Ok(()),
                };
            }
            let first = if self.on_start {
                FirstLook::Apply
            } else {
                FirstLook::Adopt
            };
            match feed::follow(&mut reloader, &mut feed, first).await {}
        };
        tokio::select! {
            ended = work => ended,
            () = announcing => Ok(()),
            never = stating => match never {},
            _ = end_1[0].recv() => Ok(()),
            _ = end_2[0].recv() => Ok(()),
        }
    }
}
