//! The one binary: flags and wiring. Every subcommand is a call into a crate of the library.

mod agent;
mod bench;
mod cli;
mod clock_jumps;
mod data_dir;
mod down;
mod following;
mod memory;
mod node_access;
mod node_flags;
mod output;
mod service_manager;
mod status;
mod stop_signals;
mod token;
mod traces;
mod up;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use tracing_subscriber::EnvFilter;

/// The call was wrong.
const EXIT_CALL: u8 = 2;
/// Workers of the runtime: nothing on them blocks, so more would only add memory.
const RUNTIME_WORKERS: usize = 2;
/// Threads for what blocks: files, forks, large bodies, and locks around these. What waits for one of them waits for a disk
/// or a processor anyway; each thread has a heap of its own, and hundreds of them cost tens of mebibytes.
const BLOCKING_THREADS_MAX: usize = 32;

fn main() -> ExitCode {
    // A pod's shim is this program too; it must not see a thread, a runtime or a flag of ours.
    if let Some(code) = hotmap_runtime::shim_main_if_asked(memory::give_back) {
        return code;
    }
    hotmap_reload::resolve_names_by_files_and_dns();
    let cli = Cli::parse();
    let Ok(filter) = EnvFilter::try_new(&cli.log) else {
        eprintln!(
            "hotmap: --log {:?} is not a filter such as `info` or `hotmap_agent=debug`",
            cli.log
        );
        return ExitCode::from(EXIT_CALL);
    };
    // Dropped last: what is still to be sent goes then.
    let _traces = match traces::init(&cli.traces, filter) {
        Ok(traces) => traces,
        Err(error) => return wrong_call(&*error),
    };
    match cli.command {
        Command::Up(args) => match up::UpConfig::try_from(args) {
            Ok(config) => finish(run(up::run(config))),
            Err(error) => wrong_call(&error),
        },
        Command::Serve(args) => match up::UpConfig::of_serve(args) {
            Ok(config) => finish(run(up::run(config))),
            Err(error) => wrong_call(&error),
        },
        Command::Agent(args) => match agent::AgentCall::try_from(args) {
            Ok(call) => finish(run(agent::run(call)).map(|()| ExitCode::SUCCESS)),
            Err(error) => wrong_call(&error),
        },
        Command::Down(args) => match down::DownConfig::try_from(args) {
            Ok(config) => finish(run(down::run(config)).map(|()| ExitCode::SUCCESS)),
            Err(error) => wrong_call(&error),
        },
        Command::Status(args) => match status::StatusConfig::try_from(args) {
            Ok(config) => finish(run(status::run(config))),
            Err(error) => wrong_call(&error),
        },
        Command::Process(command) => command.main(),
        Command::Bench(args) => finish(run(bench::run(args)).map(|()| ExitCode::SUCCESS)),
        Command::Token(args) => finish(run(token::run(args)).map(|()| ExitCode::SUCCESS)),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "hotmap", &mut std::io::stdout());
            ExitCode::SUCCESS
        }
        Command::Version => {
            output::say(version::line());
            ExitCode::SUCCESS
        }
    }
}

fn run<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(RUNTIME_WORKERS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_keep_alive(memory::GIVE_BACK_PERIOD)
        .on_thread_park(memory::give_back_now_and_then)
        .enable_all()
        .build()?;
    let result = runtime.block_on(command);
    // What still blocks (a read of a log nobody follows any more) must not hold up the end.
    runtime.shutdown_background();
    result
}

fn finish(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("hotmap: {error:#}");
        ExitCode::FAILURE
    })
}

fn wrong_call(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("hotmap: {error}");
    ExitCode::from(EXIT_CALL)
}
