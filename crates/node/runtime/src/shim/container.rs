//! A container as the shim keeps it.

use std::os::fd::OwnedFd;
use std::time::{Instant, SystemTime};

use super::attached::Attached;
use super::complaint::complain;
use super::cri_log::{LineCutter, LogFile, Stream};
use super::identity::Identity;
use super::mount_swap::BoundMount;
use super::shared_pids::MountNamespace;
use crate::cgroup::Group;
use crate::status::ContainerStatus;

pub(crate) struct Container {
    pub(crate) status: ContainerStatus,
    pub(crate) running: Option<Running>,
}

pub(crate) struct Running {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) started_at: SystemTime,
    pub(crate) identity: Identity,
    pub(crate) outputs: Vec<Output>,
    pub(crate) input: Input,
    pub(crate) attached: Vec<Attached>,
    pub(crate) log: LogFile,
    pub(crate) log_broken: bool,
    pub(crate) kill_at: Option<Instant>,
    pub(crate) group: Group,
    pub(crate) oom_kills_before: u64,
    pub(crate) mounts: Vec<BoundMount>,
    /// Whose processes are its own, where it shares a pid namespace.
    pub(crate) mount_namespace: Option<MountNamespace>,
}

/// What a process reads, from the writing end.
pub(crate) enum Input {
    /// Nothing, or no more.
    None,
    /// The pipe; `is_once`: whoever gets it is the last one.
    Pipe { writer: OwnedFd, is_once: bool },
    /// The terminal is the one of the output. `accepts`: somebody may type.
    Terminal { accepts: bool },
}

pub(crate) struct Output {
    pub(crate) fd: OwnedFd,
    pub(crate) cutter: LineCutter,
    pub(crate) ended: bool,
}

impl Container {
    pub(crate) fn pid(&self) -> Option<i32> {
        self.running.as_ref().map(|running| running.pid)
    }
}

impl Running {
    /// Whether it prints faster than its log may grow, and has to wait.
    pub(crate) fn is_flooding(&self, now: Instant) -> bool {
        self.log.resumes_at().is_some_and(|at| at > now)
    }

    /// A full disk costs lines, never the container.
    pub(crate) fn append(&mut self, lines: &[u8]) {
        let is_inside_line = self.outputs.iter().any(|output| output.cutter.is_inside_line());
        let result = self.log.append(lines, is_inside_line);
        if let Err(error) = &result
            && !self.log_broken
        {
            complain(format_args!("log lines are lost: {error}"));
        }
        self.log_broken = result.is_err();
    }
}

impl Output {
    pub(crate) fn new(fd: OwnedFd, stream: Stream) -> Self {
        Self {
            fd,
            cutter: LineCutter::new(stream),
            ended: false,
        }
    }
}
