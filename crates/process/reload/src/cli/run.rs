//! `hotmap run`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::cli::duration::duration;
use crate::run::{Backoff, Launch, Policy, RestartPolicy, Supervisor, as_init, signal_name};

/// What `run` exits with if it could not begin; the codes below 125 are the program's.
const EXIT_NOT_BEGUN: u8 = 125;

/// Flags of `run`, as typed.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The program and its arguments. `run` ends with its exit code, 128 and the number for a signal; 127 if it is not
    /// there, 126 if it cannot be executed.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
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
    /// The pause before the second restart of a program that ends by itself; doubles up to --backoff-max, and starts
    /// over after the program has run for ten minutes.
    #[arg(long, env = "HOTMAP_BACKOFF", value_name = "DURATION", default_value = "1s", value_parser = duration)]
    backoff: Duration,
    /// The longest pause between two restarts.
    #[arg(long, env = "HOTMAP_BACKOFF_MAX", value_name = "DURATION", default_value = "1m", value_parser = duration)]
    backoff_max: Duration,
}

impl RunArgs {
    pub(crate) fn main(self) -> ExitCode {
        let policy = Policy {
            restart: self.restart,
            backoff: Backoff {
                initial: self.backoff,
                max: self.backoff_max,
                ..Backoff::default()
            },
            grace: self.grace,
            stop_signal: self.stop_signal,
            overlap: None,
        };
        let launch = Launch {
            command: self.command,
            environment: std::env::vars_os().collect(),
            signals_group: self.signal_group,
        };
        let supervised = as_init(|heard| async {
            let (_orders, ordered) = tokio::sync::mpsc::channel(1);
            Supervisor::new(policy, launch).run(heard, ordered).await
        });
        match supervised {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                eprintln!("hotmap: {error}");
                ExitCode::from(EXIT_NOT_BEGUN)
            }
        }
    }
}
