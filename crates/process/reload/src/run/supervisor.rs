//! Does what the machine decides: the only code that starts, signals and reaps the program.

use std::collections::BTreeMap;
use std::ffi::OsString;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, error, info, warn};

use super::machine::{Act, ChildId, Happened, Machine, NotRestarted, Policy};
use super::manager::{Manager, READY, STOPPING};
use super::metrics::ProgramMetrics;
use super::notify::{Notice, NotifySocket};
use super::sockets::{LISTEN_VARIABLES, Sockets};
use super::spawn::{Child, Ended, Program};
use super::sys;
use super::terminal::Terminal;
use crate::disposition::{self, NoHandler};
use crate::target::signal::SignalName;

/// What the main thread hears from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A signal for the program.
    Signal(i32),
    /// A child has ended, stopped or gone on, or an orphan was reaped.
    Children,
}

/// What the rest of `run` wants of the supervisor.
pub(crate) enum Order {
    /// Replace the program by a new one, with another environment if there is one.
    Restart {
        environment: Option<Vec<(OsString, OsString)>>,
        done: oneshot::Sender<Result<(), RestartError>>,
    },
    /// Send the program a signal.
    Signal {
        signal: SignalName,
        done: oneshot::Sender<Result<(), SignalError>>,
    },
}

/// The program was not replaced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestartError {
    /// The machine says why.
    #[error(transparent)]
    Not(#[from] NotRestarted),
    /// The old one has ended, and there is no new one.
    #[error("the new process could not be started; the log says why")]
    NotStarted,
}

/// The program was not told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignalError {
    /// Nothing runs at the moment.
    #[error(
        "the program of `run` does not run at the moment; it reads its configuration when it is started next"
    )]
    NotRunning,
    /// It would be ended by it.
    #[error(transparent)]
    NoHandler(NoHandler),
    /// The kernel has refused it.
    #[error("cannot signal the program of `run`: {0}")]
    Refused(std::io::Error),
}

/// How the program is started.
pub(crate) struct Launch {
    /// The command and its arguments; not empty.
    pub(crate) command: Vec<OsString>,
    /// All of its environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Whether signals go to the whole group and not to the program alone.
    pub(crate) signals_group: bool,
    /// What it listens on.
    pub(crate) sockets: Sockets,
    /// Where it says that it is ready, if anybody wants to know.
    pub(crate) notify: Option<NotifySocket>,
    /// Who has started `run` and wants to know the same.
    pub(crate) manager: Option<Manager>,
}

impl Launch {
    /// The environment of one start: what was asked for, and the variables of the protocols that `run` speaks.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables = self.environment.clone();
        variables.retain(|(name, _)| !LISTEN_VARIABLES.iter().any(|variable| name == variable));
        if !self.sockets.is_empty() {
            variables.extend(
                self.sockets
                    .variables()
                    .map(|(name, value)| (name.into(), value.into())),
            );
        }
        if let Some(notify) = &self.notify {
            variables.retain(|(name, _)| name != NOTIFY_SOCKET);
            variables.push((NOTIFY_SOCKET.into(), notify.variable().into()));
        }
        if self.manager.is_some() {
            // It names `run`; a program that finds another process there than itself would not speak at all.
            variables.retain(|(name, _)| name != WATCHDOG_PID);
        }
        variables
    }
}

pub(super) const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// See the module.
pub(crate) struct Supervisor {
    machine: Machine,
    launch: Launch,
    terminal: Option<Terminal>,
    /// Started, and not reaped.
    children: BTreeMap<ChildId, Child>,
    /// Groups whose leader is reaped and that may have members left.
    groups: BTreeMap<ChildId, i32>,
    restarting: Vec<oneshot::Sender<Result<(), RestartError>>>,
    exit: Option<u8>,
    /// Counts starts.
    starts: watch::Sender<u64>,
    metrics: ProgramMetrics,
    /// Whether the manager knows that it ends.
    is_stopping_told: bool,
}

impl Supervisor {
    pub(crate) fn new(policy: Policy, launch: Launch, metrics: ProgramMetrics) -> Self {
        Self {
            machine: Machine::new(policy),
            launch,
            // Process 1 has nobody to give a terminal back to; it is handed on all the same.
            terminal: Terminal::of_stdin(),
            children: BTreeMap::new(),
            groups: BTreeMap::new(),
            restarting: Vec::new(),
            exit: None,
            starts: watch::Sender::new(0),
            metrics,
            is_stopping_told: false,
        }
    }

    /// Tells of each start.
    pub(crate) fn starts(&self) -> watch::Receiver<u64> {
        self.starts.subscribe()
    }

    /// Runs the program until it has ended for good; its exit code.
    pub(crate) async fn run(
        mut self,
        mut heard: mpsc::Receiver<Heard>,
        mut orders: mpsc::Receiver<Order>,
    ) -> u8 {
        self.happened(Happened::Begun);
        while self.exit.is_none() {
            let wakes = self.machine.wakes();
            tokio::select! {
                biased;
                Some(heard) = heard.recv() => match heard {
                    Heard::Signal(signal) => self.forward(signal),
                    Heard::Children => self.look_at_children(),
                },
                () = sleep_until(wakes.unwrap_or_else(Instant::now)), if wakes.is_some() => {
                    self.happened(Happened::Time);
                }
                said = said(self.launch.notify.as_ref()) => self.hear(said),
                Some(order) = orders.recv() => self.obey(order),
            }
        }
        if let Some(terminal) = self.terminal {
            terminal.take();
        }
        self.exit.unwrap_or(0)
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Restart { environment, done } => {
                if let Some(environment) = environment {
                    self.launch.environment = environment;
                }
                self.restarting.push(done);
                self.happened(Happened::Restart);
            }
            Order::Signal { signal, done } => {
                let current = self.machine.current().and_then(|child| self.children.get(&child));
                let sent = current.ok_or(SignalError::NotRunning);
                // Whoever asked may have given up.
                let _ = done.send(sent.and_then(|child| tell(child, signal)));
            }
        }
    }

    /// Only what comes from a child's group counts: in a pod, others can reach the socket too.
    fn hear(&mut self, notice: std::io::Result<Notice>) {
        let notice = match notice {
            Ok(notice) => notice,
            Err(error) => {
                error!(%error, "NOTIFY_SOCKET cannot be read any more");
                self.launch.notify = None;
                return;
            }
        };
        let group = sys::group_of(notice.pid);
        let child = self
            .children
            .iter()
            .find(|(_, process)| Some(process.pid()) == group);
        let Some((child, process)) = child else { return };
        let (child, pid) = (*child, process.pid());
        if notice.is_ready {
            info!(pid, "program says that it is ready");
            self.happened(Happened::Ready(child));
        }
        // One that is leaving, or is not yet the one, has no say.
        if let Some(manager) = &self.launch.manager
            && self.machine.current() == Some(child)
        {
            let ready = notice.is_ready.then_some(READY);
            for message in notice.passed_on.as_deref().into_iter().chain(ready) {
                manager.tell(message);
            }
        }
    }

    fn forward(&mut self, signal: i32) {
        match signal {
            // They would tell of our own use of the terminal, and we make none.
            libc::SIGTTIN | libc::SIGTTOU => {}
            libc::SIGCONT => {
                if let Some(terminal) = self.terminal
                    && terminal.is_ours()
                    && let Some(child) = self.current_child()
                {
                    terminal.give_to(child.pid());
                }
                self.continue_current();
            }
            signal => {
                debug!(signal, "signal received");
                self.happened(Happened::Signal(signal));
            }
        }
    }

    /// The shell has brought us on: so is the child.
    fn continue_current(&self) {
        if let Some(child) = self.current_child() {
            let _ = sys::signal_group(child.pid(), libc::SIGCONT);
        }
    }

    fn current_child(&self) -> Option<&Child> {
        self.machine.current().and_then(|child| self.children.get(&child))
    }

    /// The kernel merges SIGCHLD, so that all are looked at each time.
    fn look_at_children(&mut self) {
        let ended: Vec<_> = self
            .children
            .iter()
            .filter_map(|(child, process)| Some((*child, process.ended()?)))
            .collect();
        for (child, ended) in ended {
            info!(
                pid = self.children[&child].pid(),
                exit_code = ended.exit_code(),
                "program ended"
            );
            self.metrics
                .ended(ended, self.machine.was_asked(child, Instant::now()));
            // What it leaves behind is signalled before its pid is given back.
            self.happened(Happened::Ended(child, ended));
            if let Some(process) = self.children.remove(&child) {
                self.groups.insert(child, process.pid());
                process.reap();
            }
        }
        self.follow_a_stop();
        let gone: Vec<_> = self
            .groups
            .iter()
            .filter(|(_, group)| is_empty(**group))
            .map(|(child, _)| *child)
            .collect();
        for child in gone {
            self.groups.remove(&child);
            self.happened(Happened::Gone(child));
        }
    }

    /// A program that Ctrl-Z has stopped: whoever started `run` waits for `run` to stop, and gets the terminal back.
    fn follow_a_stop(&self) {
        let Some(child) = self.current_child() else { return };
        if !child.has_stopped() {
            return;
        }
        if let Some(terminal) = self.terminal
            && terminal.is_of(child.pid())
            && rustix::process::getpid().as_raw_nonzero().get() != 1
        {
            terminal.take();
            sys::signal_self(libc::SIGSTOP);
        }
    }

    fn happened(&mut self, happened: Happened) {
        for act in self.machine.on(happened, Instant::now()) {
            self.act(act);
        }
        if let Some(manager) = &self.launch.manager
            && self.machine.is_ending()
            && !std::mem::replace(&mut self.is_stopping_told, true)
        {
            manager.tell(STOPPING);
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Start(child) => self.start(child),
            Act::Signal(child, signal) if self.launch.signals_group => {
                self.act(Act::SignalGroup(child, signal))
            }
            Act::Signal(child, signal) => {
                if let Some(process) = self.children.get(&child)
                    && let Err(error) = process.signal(signal)
                {
                    error!(pid = process.pid(), signal, %error, "the program cannot be signalled");
                }
            }
            Act::SignalGroup(child, signal) => self.signal_group(child, signal),
            Act::Kill(child) => {
                warn!("the program has not ended in the time of --grace; its process group is killed");
                self.signal_group(child, libc::SIGKILL);
            }
            Act::Restarted(result) => {
                let failed = result.err();
                let runs = result.is_ok_and(|child| self.children.contains_key(&child));
                if !self.restarting.is_empty() {
                    self.metrics.restarted(failed, runs);
                }
                if let Some(reason) = &failed {
                    warn!(error = %reason, "not restarted");
                }
                for done in self.restarting.drain(..) {
                    let result = match failed {
                        Some(reason) => Err(RestartError::Not(reason)),
                        None if runs => Ok(()),
                        None => Err(RestartError::NotStarted),
                    };
                    let _ = done.send(result);
                }
            }
            Act::Pause(pause) => {
                self.metrics.backs_off(pause);
                info!(seconds = pause.as_secs_f64(), "program starts again");
            }
            Act::Exit(code) => self.exit = Some(code),
        }
    }

    fn signal_group(&self, child: ChildId, signal: i32) {
        let leader = self.children.get(&child).map(Child::pid);
        if let Some(group) = leader.or_else(|| self.groups.get(&child).copied()) {
            // Nobody left in it is what is wanted.
            let _ = sys::signal_group(group, signal);
        }
    }

    fn start(&mut self, child: ChildId) {
        let variables = self.launch.variables();
        let program = Program {
            command: &self.launch.command,
            environment: &variables,
            sockets: &self.launch.sockets.descriptors(),
            is_foreground: self.terminal.is_some(),
        };
        match Child::start(&program) {
            Ok(process) => {
                info!(pid = process.pid(), "program started");
                self.children.insert(child, process);
                self.metrics.started();
                self.starts.send_modify(|starts| *starts += 1);
            }
            Err(error) => {
                error!(%error, "the program cannot be started");
                self.metrics.not_started(error.exit_code());
                let ended = Ended::Exited(error.exit_code());
                self.happened(Happened::Ended(child, ended));
                self.happened(Happened::Gone(child));
            }
        }
    }
}

/// Tells a child by a signal of a change.
fn tell(child: &Child, signal: SignalName) -> Result<(), SignalError> {
    if disposition::child_would_only_end(child.pid(), signal.signal()) {
        return Err(SignalError::NoHandler(NoHandler {
            process: "the program of `run`".to_owned(),
            signal: signal.name(),
        }));
    }
    child
        .signal(signal.signal().as_raw())
        .map_err(SignalError::Refused)
}

async fn said(notify: Option<&NotifySocket>) -> std::io::Result<Notice> {
    match notify {
        Some(notify) => notify.next().await,
        None => std::future::pending().await,
    }
}

/// Whether a group has no member, not even an ended one.
fn is_empty(group: i32) -> bool {
    sys::signal_group(group, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}
