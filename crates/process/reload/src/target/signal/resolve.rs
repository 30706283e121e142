//! Which process is meant.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::Address;
use super::process::{ProcFs, Process};

/// The process that is meant, named for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) pid: Pid,
    pub(super) comm: String,
    pub(super) start_time: u64,
}

/// Why nobody can be signalled.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error(
        "no process named {name} among {visible} visible processes: is it running? The containers of a pod see each \
         other's processes only with shareProcessNamespace: true; without it use --webhook-url, --exec in the same \
         container, or `hotmap run`"
    )]
    Missing { name: String, visible: usize },
    #[error(
        "process {pid} named {name} has ended and waits to be reaped by its parent {parent}; there is no other process of \
         that name"
    )]
    Zombie { name: String, pid: Pid, parent: i32 },
    #[error("{} processes named {name} are no workers of one another: {}; name one with --pid-file or --pid",
        .pids.len(), listed(.pids))]
    Several { name: String, pids: Vec<Pid> },
    #[error("cannot read {}: {source}; is the process running, and does this container see its files?", .file.display())]
    PidFile { file: PathBuf, source: io::Error },
    #[error("{} does not begin with the id of a process", .file.display())]
    NoPid { file: PathBuf },
    #[error("{} names process {pid}, which does not exist here: {}", .file.display(), PID_FILE_HINT)]
    Stale { file: PathBuf, pid: Pid },
    #[error("process {pid} does not exist or has ended")]
    Ended { pid: Pid },
    #[error(
        "process {pid} has ended and another one has its id now: give the new one with --pid, or use --process"
    )]
    Replaced { pid: Pid },
    #[error("cannot read /proc: {source}")]
    Proc { source: io::Error },
}

const PID_FILE_HINT: &str =
    "it was left by a process that has ended, or was written in another pid namespace";

fn listed(pids: &[Pid]) -> String {
    pids.iter()
        .map(|pid| pid.as_raw_nonzero().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

impl ResolveError {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::Ended { .. } | Self::Stale { .. } | Self::Replaced { .. } => {
                "no_process"
            }
            Self::Zombie { .. } => "zombie",
            Self::Several { .. } => "several_processes",
            Self::PidFile { .. } | Self::NoPid { .. } => "pid_file",
            Self::Proc { .. } => "system",
        }
    }

    /// Whether somebody who starts, ends or writes something makes it right without new flags.
    pub(super) fn is_temporary(&self) -> bool {
        !matches!(self, Self::Replaced { .. })
    }
}

/// Who is meant now. `last` is who it was last time: a named process that is still the one is not looked for again.
pub(super) fn resolve(proc: &ProcFs, address: &Address, last: Option<&Found>) -> Result<Found, ResolveError> {
    match address {
        Address::Process(name) => match last.filter(|last| is_still(proc, name, last)) {
            Some(last) => Ok(last.clone()),
            None => by_name(proc, name),
        },
        Address::PidFile(file) => by_file(proc, file),
        Address::Pid(pid) => by_pid(proc, *pid, last),
    }
}

/// Whether the process of last time is alive, still called so, and nobody's worker.
fn is_still(proc: &ProcFs, name: &str, last: &Found) -> bool {
    proc.process(last.pid).is_some_and(|process| {
        process.start_time == last.start_time
            && !process.is_zombie
            && proc.is_named(last.pid, name)
            && Pid::from_raw(process.parent).is_none_or(|parent| !proc.is_named(parent, name))
    })
}

fn by_name(proc: &ProcFs, name: &str) -> Result<Found, ResolveError> {
    let pids = proc.pids().map_err(|source| ResolveError::Proc { source })?;
    let visible = pids.len();
    // A supervisor that bears the name of what it supervises is not meant.
    let ourselves = rustix::process::getpid();
    let named = pids
        .into_iter()
        .filter(|pid| *pid != ourselves && proc.is_named(*pid, name));
    let (zombies, alive): (Vec<Process>, Vec<Process>) = named
        .filter_map(|pid| proc.process(pid))
        .partition(|process| process.is_zombie);
    let is_worker = |process: &Process| {
        alive
            .iter()
            .any(|other| other.pid.as_raw_nonzero().get() == process.parent)
    };
    let mut masters: Vec<&Process> = alive.iter().filter(|process| !is_worker(process)).collect();
    masters.sort_by_key(|process| process.pid.as_raw_nonzero());
    match (masters.as_slice(), zombies.first()) {
        ([master], _) => Ok(found(master)),
        ([], Some(zombie)) => Err(ResolveError::Zombie {
            name: name.to_owned(),
            pid: zombie.pid,
            parent: zombie.parent,
        }),
        ([], None) => Err(ResolveError::Missing {
            name: name.to_owned(),
            visible,
        }),
        (several, _) => {
            let pids = several.iter().map(|process| process.pid).collect();
            Err(ResolveError::Several {
                name: name.to_owned(),
                pids,
            })
        }
    }
}

fn by_file(proc: &ProcFs, file: &Path) -> Result<Found, ResolveError> {
    let text = fs::read_to_string(file).map_err(|source| ResolveError::PidFile {
        file: file.to_owned(),
        source,
    })?;
    let pid = text
        .lines()
        .next()
        .and_then(|line| line.trim().parse().ok())
        .filter(|pid| *pid > 0)
        .and_then(Pid::from_raw)
        .ok_or_else(|| ResolveError::NoPid {
            file: file.to_owned(),
        })?;
    proc.process(pid)
        .filter(|process| !process.is_zombie)
        .map(|process| found(&process))
        .ok_or_else(|| ResolveError::Stale {
            file: file.to_owned(),
            pid,
        })
}

fn by_pid(proc: &ProcFs, pid: Pid, last: Option<&Found>) -> Result<Found, ResolveError> {
    let process = proc
        .process(pid)
        .filter(|process| !process.is_zombie)
        .ok_or(ResolveError::Ended { pid })?;
    match last {
        Some(last) if last.start_time != process.start_time => Err(ResolveError::Replaced { pid }),
        _ => Ok(found(&process)),
    }
}

fn found(process: &Process) -> Found {
    Found {
        pid: process.pid,
        comm: process.comm.clone(),
        start_time: process.start_time,
    }
}
