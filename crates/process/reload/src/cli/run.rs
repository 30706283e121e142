//! `hotmap run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hotmap_projection::WatchConfig;

use super::duration::duration;
use super::serve::ServeArgs;
use super::targets::{ReloaderArgs, environment};
use crate::metrics::Metrics;
use crate::run::{
    Backoff, Changes, EnvironmentSource, EnvironmentSources, Listen, OnChange, Overlap, Policy,
    ProgramMetrics, RestartPolicy, RunConfig, as_init, drive, signal_name, source,
};
use crate::target::signal::SignalName;

/// The call was wrong.
const EXIT_CALL: u8 = 2;
/// `run` could not begin; the codes below 125 are the program's.
const EXIT_NOT_BEGUN: u8 = 125;
/// A restart takes no longer than --grace, --ready-within and this.
const RESTART_MARGIN: Duration = Duration::from_secs(15);

/// Flags of `run`, as typed.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The program and its arguments. `run` ends with its exit code, 128 and the number for a signal; 127 if it is not
    /// there, 126 if it cannot be executed, 125 if `run` itself cannot begin.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
    /// A directory (or a file) whose changes the program is told of. Repeatable.
    #[arg(long, env = "HOTMAP_WATCH", value_name = "DIR", value_delimiter = ',')]
    watch: Vec<PathBuf>,
    /// What is done with the program when watched files change. Without it and without other targets, a signal: SIGHUP,
    /// or that of --signal.
    #[arg(
        long,
        env = "HOTMAP_ON_CHANGE",
        value_name = "WHAT",
        value_enum,
        requires = "watch"
    )]
    on_change: Option<OnChange>,
    /// Variables for the program: a directory with a file for each, as a ConfigMap or Secret is mounted, or a file of
    /// KEY=VALUE lines; a `?` at the end: it may be missing. When they change, the program is restarted. Repeatable;
    /// later ones win, all win over what `run` was started with.
    #[arg(long, env = "HOTMAP_ENV_FROM", value_name = "DIR|FILE", value_delimiter = ',')]
    env_from: Vec<OsString>,
    /// Comes before each name of --env-from: given once it is for all, else one for each, in their order.
    #[arg(
        long,
        env = "HOTMAP_ENV_PREFIX",
        value_name = "PREFIX",
        requires = "env_from",
        value_delimiter = ','
    )]
    env_prefix: Vec<String>,
    /// Take only these names of --env-from; `DB_*` is all that begin so. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_ENV_NAME",
        value_name = "NAME",
        requires = "env_from",
        value_delimiter = ','
    )]
    env_name: Vec<String>,
    /// Listen here for the program, which gets the socket by LISTEN_FDS: connections wait while it restarts. A TCP
    /// address such as 0.0.0.0:8080 or :8080, or unix:/PATH. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_LISTEN",
        value_name = "[NAME=]ADDRESS",
        value_delimiter = ','
    )]
    listen: Vec<Listen>,
    /// Start the new program before the old one is told to end, once the new one has said READY=1 to NOTIFY_SOCKET
    /// (sd_notify). If it does not, the old one goes on.
    #[arg(long, env = "HOTMAP_OVERLAP")]
    overlap: bool,
    /// How long the new program may take to say READY=1.
    #[arg(
        long,
        env = "HOTMAP_READY_WITHIN",
        value_name = "DURATION",
        default_value = "30s",
        value_parser = duration
    )]
    ready_within: Duration,
    /// How long the program may take to end after it was told to, before its process group is killed: for restarts,
    /// and when `run` itself gets SIGTERM. Keep it below the pod's terminationGracePeriodSeconds.
    #[arg(long, env = "HOTMAP_GRACE", value_name = "DURATION", default_value = "25s", value_parser = duration)]
    grace: Duration,
    /// The signal that tells the program to end, also in place of a SIGTERM that `run` gets.
    #[arg(
        long,
        env = "HOTMAP_STOP_SIGNAL",
        value_name = "SIGNAL",
        default_value = "TERM",
        value_parser = signal_name::parse
    )]
    stop_signal: i32,
    /// Sends signals to the whole process group of the program and not to the program alone.
    #[arg(long, env = "HOTMAP_SIGNAL_GROUP")]
    signal_group: bool,
    /// Whether a program that ends by itself is started again.
    #[arg(
        long,
        env = "HOTMAP_RESTART",
        value_name = "WHEN",
        value_enum,
        default_value_t
    )]
    restart: RestartPolicy,
    /// The pause before the second restart of a program that ends by itself; doubles up to --restart-backoff-max, and
    /// starts over after the program has run for ten minutes.
    #[arg(
        long,
        env = "HOTMAP_RESTART_BACKOFF",
        value_name = "DURATION",
        default_value = "1s",
        value_parser = duration
    )]
    restart_backoff: Duration,
    /// The longest pause between two restarts.
    #[arg(
        long,
        env = "HOTMAP_RESTART_BACKOFF_MAX",
        value_name = "DURATION",
        default_value = "1m",
        value_parser = duration
    )]
    restart_backoff_max: Duration,
    /// Write how far the last change has come to this file, for `hotmap probe --state-file`.
    #[arg(long, env = "HOTMAP_STATE_FILE", value_name = "FILE")]
    state_file: Option<PathBuf>,
    #[command(flatten)]
    reloader: ReloaderArgs,
    #[command(flatten)]
    serve: ServeArgs,
}

impl RunArgs {
    pub(crate) fn main(self) -> ExitCode {
        let config = match self.config() {
            Ok(config) => config,
            Err(message) => {
                eprintln!("hotmap: {message}");
                return ExitCode::from(EXIT_CALL);
            }
        };
        let metrics = config.metrics.clone();
        match as_init(&metrics, |heard| drive(config, heard)) {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                eprintln!("hotmap: {error}");
                ExitCode::from(EXIT_NOT_BEGUN)
            }
        }
    }

    /// What may run.
    fn config(mut self) -> Result<RunConfig, String> {
        let sources = self.sources()?;
        let signal = self.reloader.targets.take_signal_for_program();
        if signal.is_some() && self.on_change == Some(OnChange::Restart) {
            return Err("--signal is for --on-change signal; a restart uses --stop-signal".to_owned());
        }
        let mut paths = self.watch.clone();
        for path in sources.paths() {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        let mut reloader = self.reloader.config(paths, environment())?;
        let (all, metrics) = Metrics::with(self.reloader.metric_names, ProgramMetrics::register);
        reloader.metrics = all;
        let says = self.serve.is_serving() || self.state_file.is_some();
        let tells_others = !reloader.targets.is_empty() || !reloader.renders.is_empty();
        if reloader.paths.is_empty() && (says || tells_others || reloader.check.is_some() || signal.is_some())
        {
            return Err("nothing is watched: give --watch or --env-from".to_owned());
        }
        let on_change = match (self.on_change, signal) {
            (None, None) if tells_others => None,
            (None, _) => Some(OnChange::Signal),
            (on_change, _) => on_change,
        };
        let ready_within = if self.overlap {
            self.ready_within
        } else {
            Duration::ZERO
        };
        reloader.pace.timeout = reloader
            .pace
            .timeout
            .max(self.grace + ready_within + RESTART_MARGIN);
        let is_told_of = !reloader.paths.is_empty() || self.serve.is_scraped();
        let changes = is_told_of.then(|| Changes {
            reloader,
            watch: WatchConfig::default(),
            watched: self.watch,
            on_change,
            signal: signal.unwrap_or(SignalName::HUP),
            announcer: self.serve.into_config(),
            state_file: self.state_file,
        });
        Ok(RunConfig {
            policy: Policy {
                restart: self.restart,
                backoff: Backoff {
                    initial: self.restart_backoff.min(self.restart_backoff_max),
                    max: self.restart_backoff_max,
                    ..Backoff::default()
                },
                grace: self.grace,
                stop_signal: self.stop_signal,
                overlap: self.overlap.then_some(Overlap {
                    ready_within: self.ready_within,
                }),
            },
            command: self.command,
            signals_group: self.signal_group,
            listens: self.listen,
            sources,
            changes,
            metrics,
        })
    }

    fn sources(&self) -> Result<EnvironmentSources, String> {
        let prefixes = &self.env_prefix;
        if prefixes.len() > 1 && prefixes.len() != self.env_from.len() {
            return Err(format!(
                "--env-prefix is given {} times, --env-from {} times: give one for all, or one for each",
                prefixes.len(),
                self.env_from.len()
            ));
        }
        if let Some(prefix) = prefixes.iter().find(|prefix| prefix.contains(['=', '\0'])) {
            return Err(format!(
                "--env-prefix {prefix:?}: a name of a variable has no '='"
            ));
        }
        let prefix = |index: usize| {
            prefixes
                .get(index)
                .or_else(|| prefixes.first())
                .cloned()
                .unwrap_or_default()
        };
        let sources = self.env_from.iter().enumerate().map(|(index, raw)| {
            let (path, is_optional) = source(raw);
            EnvironmentSource {
                path,
                prefix: prefix(index),
                is_optional,
            }
        });
        Ok(EnvironmentSources {
            inherited: std::env::vars_os().collect(),
            sources: sources.collect(),
            names: self.env_name.clone(),
        })
    }
}
