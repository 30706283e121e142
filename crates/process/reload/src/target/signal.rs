//! A signal to the right process: `--signal`.

mod confirm;
mod process;
mod resolve;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args};
use futures_util::future::BoxFuture;
use hotmap_projection::Change;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::disposition::NoHandler;
use crate::http::Url;
use crate::target::{Fired, Target, TargetError, TargetKind};
use process::ProcFs;
use resolve::{Found, ResolveError};

pub(crate) use confirm::ConfirmedSignal;

/// Flags of the signal.
#[derive(Debug, Clone, Default, Args)]
#[command(group = ArgGroup::new("signalled").args(["process", "pid_file", "pid"]))]
pub(crate) struct SignalArgs {
    /// The signal that makes the process load its files: HUP, USR1, USR2, …; needs --process, --pid-file or --pid,
    /// without which it is for the program of `run`.
    #[arg(long, env = "HOTMAP_SIGNAL", value_name = "NAME", value_parser = signal,
        help_heading = "Targets")]
    pub(crate) signal: Option<SignalName>,
    /// Signal the process of this name; of a master and its workers, the master. It is looked for at every change.
    #[arg(
        long,
        env = "HOTMAP_PROCESS",
        value_name = "NAME",
        requires = "signal",
        help_heading = "Targets"
    )]
    pub(crate) process: Option<String>,
    /// Signal the process whose id stands in the first line of this file. It is read at every change.
    #[arg(
        long,
        env = "HOTMAP_PID_FILE",
        value_name = "FILE",
        requires = "signal",
        help_heading = "Targets"
    )]
    pub(crate) pid_file: Option<PathBuf>,
    /// Signal this process, and no other that gets its id later.
    #[arg(long, env = "HOTMAP_PID", value_name = "PID", requires = "signal", help_heading = "Targets",
        value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,
    /// After the signal, ask Prometheus here (…/api/v1/status/runtimeinfo) until it says that it has loaded its files, for
    /// --timeout. The certificate of an https URL is not looked at.
    #[arg(
        long,
        env = "HOTMAP_RUNTIMEINFO_URL",
        value_name = "URL",
        requires = "signalled",
        help_heading = "Targets"
    )]
    pub(crate) runtimeinfo_url: Option<Url>,
}

impl SignalArgs {
    /// Whether there is a signal, and nobody to send it to.
    pub(crate) fn is_for_nobody(&self) -> bool {
        self.signal.is_some() && self.process.is_none() && self.pid_file.is_none() && self.pid.is_none()
    }

    /// The target that was asked for, if any.
    pub(crate) fn target(&self) -> Option<Signaller> {
        let address = match (&self.process, &self.pid_file, self.pid.and_then(Pid::from_raw)) {
            (Some(name), _, _) => Address::Process(name.clone()),
            (_, Some(file), _) => Address::PidFile(file.clone()),
            (_, _, Some(pid)) => Address::Pid(pid),
            (None, None, None) => return None,
        };
        self.signal.map(|signal| Signaller::new(signal, address))
    }
}

/// A signal and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalName {
    name: &'static str,
    signal: Signal,
}

/// The signals that make sense to a program that is to load its files again, or to end.
const SIGNALS: [(&str, Signal); 11] = [
    ("HUP", Signal::HUP),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("TERM", Signal::TERM),
    ("WINCH", Signal::WINCH),
    ("ALRM", Signal::ALARM),
    ("CONT", Signal::CONT),
    ("IO", Signal::IO),
    ("KILL", Signal::KILL),
];

/// `HUP`, `SIGHUP`, `hup` or `1`.
pub(crate) fn signal(raw: &str) -> Result<SignalName, String> {
    let upper = raw.to_ascii_uppercase();
    let plain = upper.strip_prefix("SIG").unwrap_or(&upper);
    let number = plain.parse::<i32>().ok();
    SIGNALS
        .iter()
        .find(|(name, signal)| *name == plain || number == Some(signal.as_raw()))
        .map(|&(name, signal)| SignalName { name, signal })
        .ok_or_else(|| {
            let names: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
            format!("the signals are {}", names.join(", "))
        })
}

impl SignalName {
    /// As the kernel knows it.
    pub(crate) fn signal(self) -> Signal {
        self.signal
    }

    /// Without `SIG`.
    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    /// The signal that most daemons take as a word to load their files again.
    pub const HUP: Self = Self {
        name: "HUP",
        signal: Signal::HUP,
    };
}

/// Who is signalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// The process of this name that is not a child of one of the same name.
    Process(String),
    /// The process that a file names.
    PidFile(PathBuf),
    /// The process that has this id when it is signalled first.
    Pid(Pid),
}

/// When the process at this address has started, in clock ticks after the boot.
///
/// # Errors
/// A sentence: nobody is there, or several are.
pub(crate) fn start_ticks(address: &Address) -> Result<u64, String> {
    let found = resolve::resolve(&ProcFs::at(Path::new("/proc")), address, None);
    found
        .map(|found| found.start_time)
        .map_err(|error| error.to_string())
}

/// Signals one process.
#[derive(Debug)]
pub struct Signaller {
    signal: SignalName,
    address: Address,
    name: String,
    proc: ProcFs,
    /// Who it was last. It saves the look at all processes as long as it is still the one.
    last: Mutex<Option<Known>>,
}

/// A process, and what names it for good.
#[derive(Debug, Clone)]
struct Known {
    found: Found,
    pidfd: Arc<OwnedFd>,
}

impl Known {
    fn has_ended(&self) -> bool {
        let mut pidfd = [PollFd::new(&*self.pidfd, PollFlags::IN)];
        poll(&mut pidfd, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

impl Signaller {
    /// A target that sends `signal` to the process at `address`.
    pub fn new(signal: SignalName, address: Address) -> Self {
        Self::within(signal, address, Path::new("/proc"))
    }

    fn within(signal: SignalName, address: Address, proc: &Path) -> Self {
        let whom = match &address {
            Address::Process(name) => name.clone(),
            Address::PidFile(file) => format!("the process in {}", file.display()),
            Address::Pid(pid) => format!("process {pid}"),
        };
        let name = format!("signal {} to {whom}", signal.name);
        Self {
            signal,
            address,
            name,
            proc: ProcFs::at(proc),
            last: Mutex::new(None),
        }
    }

    /// Finds out who it is now, and signals it.
    fn send(&self) -> Result<(), SignalError> {
        // A process may end between the look and the signal: then another look finds who has its place.
        for _ in 0..LOOKS_MAX {
            let Some(Known { found, pidfd }) = self.find()? else {
                continue;
            };
            if self.proc.would_only_end(found.pid, self.signal.signal) {
                return Err(SignalError::NoHandler(NoHandler {
                    process: format!("process {} ({})", found.pid, found.comm),
                    signal: self.signal.name,
                }));
            }
            return match pidfd_send_signal(&pidfd, self.signal.signal) {
                Ok(()) => Ok(()),
                Err(Errno::SRCH) => continue,
                Err(Errno::PERM) => Err(self.not_permitted(&found)),
                Err(errno) => Err(SignalError::Send {
                    pid: found.pid,
                    errno,
                }),
            };
        }
        Err(SignalError::Gone)
    }

    /// `None`: it ended while it was looked for.
    fn find(&self) -> Result<Option<Known>, SignalError> {
        let last = self.last.lock().clone();
        let alive = last.as_ref().filter(|known| !known.has_ended());
        if let Some(known) = alive
            && matches!(self.address, Address::Pid(_))
        {
            return Ok(Some(known.clone()));
        }
        let found = resolve::resolve(&self.proc, &self.address, last.as_ref().map(|known| &known.found))?;
        if let Some(known) = alive
            && known.found == found
        {
            return Ok(Some(known.clone()));
        }
        // The descriptor names one process for good; the start time says that it is the one that was found.
        let pidfd = match pidfd_open(found.pid, PidfdFlags::empty()) {
            Ok(pidfd) => Arc::new(pidfd),
            Err(Errno::SRCH) => return Ok(None),
            Err(errno) => {
                return Err(SignalError::Open {
                    pid: found.pid,
                    errno,
                });
            }
        };
        if self.proc.start_time(found.pid) != Some(found.start_time) {
            return Ok(None);
        }
        let known = Known { found, pidfd };
        *self.last.lock() = Some(known.clone());
        Ok(Some(known))
    }

    fn not_permitted(&self, found: &Found) -> SignalError {
        SignalError::NotPermitted {
            signal: self.signal.name,
            pid: found.pid,
            comm: found.comm.clone(),
            theirs: self
                .proc
                .owner(found.pid)
                .map_or_else(|| "another uid".into(), |uid| format!("uid {uid}")),
            ours: rustix::process::geteuid().as_raw(),
        }
    }
}

/// A process that comes and goes faster than this many looks is not a server.
const LOOKS_MAX: usize = 3;

impl Target for Signaller {
    fn kind(&self) -> TargetKind {
        TargetKind::Signal
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn fire<'a>(&'a self, _: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        // A few reads of /proc, which sleep on nothing: a thread for them would cost more than they do.
        Box::pin(async move { self.send().map(|()| Fired::Told).map_err(TargetError::from) })
    }
}

#[derive(Debug, thiserror::Error)]
enum SignalError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("the process ended each time it was about to be signalled")]
    Gone,
    #[error(
        "not permitted to send {signal} to process {pid} ({comm}), which runs as {theirs}; this process runs as uid \
         {ours} without CAP_KILL: run both as one uid (runAsUser), or use --webhook-url, --exec or `hotmap run`"
    )]
    NotPermitted {
        signal: &'static str,
        pid: Pid,
        comm: String,
        theirs: String,
        ours: u32,
    },
    #[error(transparent)]
    NoHandler(NoHandler),
    #[error("cannot open process {pid}: {errno}")]
    Open { pid: Pid, errno: Errno },
    #[error("cannot signal process {pid}: {errno}")]
    Send { pid: Pid, errno: Errno },
}

impl From<SignalError> for TargetError {
    fn from(error: SignalError) -> Self {
        let (reason, is_temporary) = match &error {
            SignalError::Resolve(error) => (error.reason(), error.is_temporary()),
            SignalError::Gone => ("no_process", true),
            // The process may come back as another user, but not because it is asked again.
            SignalError::NotPermitted { .. } => ("permission", false),
            SignalError::NoHandler(_) => (NoHandler::REASON, true),
            SignalError::Open { .. } | SignalError::Send { .. } => ("system", true),
        };
        Self {
            message: error.to_string(),
            reason,
            is_temporary,
        }
    }
}

#[cfg(test)]
mod tests;
