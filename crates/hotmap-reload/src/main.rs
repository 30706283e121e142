//! The slim sister of `hotmap`, for images of sidecars: the commands on the side of the process, and nothing else.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use hotmap_reload::cli::{ProcessCommand, k8s_sidecar_call, translate};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The call was wrong.
const EXIT_CALL: u8 = 2;

/// Brings changed configuration to the process that uses it.
///
/// Called without a command and with the flags of configmap-reload or of prometheus-config-reloader, it does what they do; called
/// without any, in the environment of k8s-sidecar, what that does.
/// Exit codes: 0 done, 1 it failed, 2 the call was wrong.
#[derive(Debug, Parser)]
#[command(
    name = "hotmap-reload",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
struct Cli {
    /// What is logged to standard error, such as `info` or `hotmap_reload=debug`.
    #[arg(
        long,
        global = true,
        env = "HOTMAP_LOG",
        value_name = "FILTER",
        default_value = "info"
    )]
    log: String,
    #[command(subcommand)]
    command: ProcessCommand,
}

fn main() -> ExitCode {
    hotmap_reload::resolve_names_by_files_and_dns();
    let (arguments, notes) = match arguments() {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("hotmap-reload: {why}");
            return ExitCode::from(EXIT_CALL);
        }
    };
    let cli = Cli::parse_from(arguments);
    let Ok(filter) = cli.log.parse::<Targets>() else {
        eprintln!(
            "hotmap-reload: --log {:?} is not a filter such as `info` or `hotmap_reload=debug`",
            cli.log
        );
        return ExitCode::from(EXIT_CALL);
    };
    // Targets and levels, without the regular expressions of `EnvFilter`: they would be a third of this program.
    let wants_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(wants_colour && io::stderr().is_terminal())
        .with_writer(io::stderr);
    tracing_subscriber::registry().with(lines).with(filter).init();
    for note in notes {
        tracing::warn!("{note}");
    }
    cli.command.main()
}

/// The words of this call in our own words, and what is to be said about them.
fn arguments() -> Result<(Vec<OsString>, Vec<String>), String> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.len() == 1
        && let Some(call) = k8s_sidecar_call(&|name| std::env::var(name).ok())
    {
        let call = call?;
        words.extend(call.arguments.into_iter().map(OsString::from));
        return Ok((words, call.notes));
    }
    match translate(&words) {
        Ok(Some(translation)) => Ok((translation.arguments, translation.notes)),
        Ok(None) => Ok((words, Vec::new())),
        Err(error) => Err(error.to_string()),
    }
}
