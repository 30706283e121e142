//! Puts the parts of `run` together: first what is on the disk, then the program, then changes.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use hotmap_projection::WatchConfig;
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};

use super::accepts;
use super::environment::{Environment, EnvironmentSources};
use super::machine::Policy;
use super::manager::Manager;
use super::metrics::ProgramMetrics;
use super::notify::NotifySocket;
use super::program_target::{OnChange, ProgramTarget};
use super::sockets::{Listen, Sockets};
use super::supervisor::{Heard, Launch, NOTIFY_SOCKET, Supervisor};
use crate::announcer::{Announcer, AnnouncerConfig};
use crate::feed::{self, Feed, FirstLook};
use crate::progress::Phase;
use crate::reloader::{Outcome, Reloader, ReloaderConfig};
use crate::state_file;
use crate::target::signal::SignalName;

/// What `run` exits with if it could not begin; the codes below are the program's.
pub(crate) const EXIT_NOT_BEGUN: u8 = 125;
/// Orders that may wait for the supervisor.
const ORDERS_MAX: usize = 8;

/// Everything that `run` does.
pub(crate) struct RunConfig {
    pub(crate) policy: Policy,
    /// The program and its arguments; not empty.
    pub(crate) command: Vec<OsString>,
    pub(crate) signals_group: bool,
    pub(crate) listens: Vec<Listen>,
    pub(crate) sources: EnvironmentSources,
    pub(crate) changes: Option<Changes>,
    pub(crate) metrics: ProgramMetrics,
}

/// What is done for changes, if anything is watched, and who is told of them. Without paths, somebody only wants to know
/// how the program does.
pub(crate) struct Changes {
    pub(crate) reloader: ReloaderConfig,
    pub(crate) watch: WatchConfig,
    /// The paths whose changes the program is told of; those of the environment are apart from them.
    pub(crate) watched: Vec<PathBuf>,
    pub(crate) on_change: Option<OnChange>,
    pub(crate) signal: SignalName,
    pub(crate) announcer: AnnouncerConfig,
    pub(crate) state_file: Option<PathBuf>,
}

/// Runs the program to its end; the exit code.
pub(crate) async fn drive(config: RunConfig, heard: mpsc::Receiver<Heard>) -> u8 {
    match begin(config, heard).await {
        Ok(code) => code,
        Err(message) => {
            error!("{message}");
            EXIT_NOT_BEGUN
        }
    }
}

async fn begin(config: RunConfig, mut heard: mpsc::Receiver<Heard>) -> Result<u8, String> {
    let sockets = Sockets::bind(&config.listens).map_err(|error| error.to_string())?;
    let listening = sockets
        .duplicates()
        .map_err(|error| format!("cannot keep the sockets of --listen: {error}"))?;
    let manager = manager(&config.sources.inherited);
    let notify = if config.policy.overlap.is_some() || manager.is_some() {
        Some(NotifySocket::bind().map_err(|error| format!("cannot bind NOTIFY_SOCKET: {error}"))?)
    } else {
        None
    };
    let metrics = config.metrics;
    let launch = |environment: Environment| Launch {
        command: config.command,
        environment: environment.into_iter().collect(),
        signals_group: config.signals_group,
        sockets,
        notify,
        manager,
    };
    let (orders, ordered) = mpsc::channel(ORDERS_MAX);
    let Some(changes) = config.changes else {
        let _orders = orders;
        let launch = launch(config.sources.inherited);
        let supervisor = Supervisor::new(config.policy, launch, metrics.clone());
        let accepting = accepts::follow(listening, supervisor.starts(), None, metrics);
        return tokio::select! {
            code = supervisor.run(heard, ordered) => Ok(code),
            never = accepting => match never {},
        };
    };
    let mut reloader = Reloader::new(changes.reloader);
    let program = ProgramTarget::new(
        orders,
        changes.on_change,
        changes.signal,
        changes.watched,
        config.sources,
    );
    let program = Arc::new(program);
    let paths: Vec<PathBuf> = reloader
        .progress()
        .borrow()
        .volumes
        .iter()
        .map(|volume| volume.path.clone())
        .collect();
    reloader.add_target(Box::new(Arc::clone(&program)));
    let mut feed = Feed::start(&paths, changes.watch).map_err(|error| error.to_string())?;
    let announcer = Announcer::open(changes.announcer, &paths).map_err(|error| error.to_string())?;
    let announcing = announcer.run(&reloader);
    let stating = state_file::keep(changes.state_file, reloader.progress());
    let progress = reloader.progress_sender();
    let (looked, first_look) = oneshot::channel();
    let follow = async {
        let began = |outcome: &Outcome| {
            let _ = looked.send(outcome.clone());
        };
        if paths.is_empty() {
            began(&Outcome::Loaded);
            reloader
                .progress_sender()
                .send_modify(|progress| progress.phase = Phase::Loaded);
            return std::future::pending().await;
        }
        feed::follow_from(&mut reloader, &mut feed, FirstLook::Adopt, began).await
    };
    // What is written after the first look is told to the program that starts now; so it misses nothing.
    let supervise = async {
        let outcome = tokio::select! {
            outcome = first_look => outcome.unwrap_or(Outcome::Loaded),
            signal = end_signal(&mut heard) => return Ok(128_u8.saturating_add(signal)),
        };
        if let Outcome::HeldBack(reason) | Outcome::Failed(reason) = outcome {
            return Err(format!("the program is not started: {reason}"));
        }
        let environment = program
            .first_environment()
            .map_err(|error| format!("the program is not started: {error}"))?;
        let supervisor = Supervisor::new(config.policy, launch(environment), metrics.clone());
        let accepting = accepts::follow(listening, supervisor.starts(), Some(progress), metrics);
        tokio::select! {
            code = supervisor.run(heard, ordered) => Ok(code),
            never = accepting => match never {},
        }
    };
    tokio::select! {
        ended = supervise => ended,
        never = follow => match never {},
        () = announcing => Err("nobody can be told any more of what is loaded".to_owned()),
        never = stating => match never {},
    }
}

/// Who has started `run` and waits for its word. What cannot be used is said, and left to the program.
fn manager(inherited: &Environment) -> Option<Manager> {
    let socket = inherited.get(OsStr::new(NOTIFY_SOCKET))?;
    Manager::at(socket)
        .inspect_err(|error| {
            warn!(%error, "NOTIFY_SOCKET cannot be used: what the program says to it is not passed on");
        })
        .ok()
}

/// The number of the signal that ends `run` before there is a program.
async fn end_signal(heard: &mut mpsc::Receiver<Heard>) -> u8 {
    loop {
        match heard.recv().await {
            Some(Heard::Signal(signal @ (libc::SIGTERM | libc::SIGINT | libc::SIGQUIT))) => {
                return u8::try_from(signal).unwrap_or_default();
            }
            Some(Heard::Signal(signal)) => warn!(signal, "there is no program yet to forward a signal to"),
            Some(Heard::Children) => {}
            None => return std::future::pending().await,
        }
    }
}
