//! What follows from the end of a process: a command's, a container's, or that of the first one in a shared pid namespace.

use std::io;
use std::time::SystemTime;

use rustix::process::{WaitOptions, WaitStatus};

use super::Pod;
use crate::protocol::{AttachEnd, Reply};
use crate::shim::client::Mode;
use crate::shim::complaint::complain;
use crate::shim::cri_log::timestamp;
use crate::shim::shared_pids;
use crate::status::{ContainerState, Exit};

/// Reads of 64 KiB after the end of a container: a pipe holds 1 MiB at most, unless the host's root has said otherwise.
const DRAINED_READS_MAX: usize = 32;

impl Pod {
    /// Takes the exit status of every process that has ended. Orphans of commands come here too: the shim is their reaper.
    pub(super) fn reap(&mut self) -> io::Result<()> {
        let mut pending = [0u8; 128];
        while rustix::io::read(&self.signals, &mut pending).is_ok_and(|length| length > 0) {}
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.ended(pid.as_raw_nonzero().get(), status),
                Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn ended(&mut self, pid: i32, status: WaitStatus) {
        let signal = status.terminating_signal();
        let exit_code = signal.map_or(status.exit_status().unwrap_or(255), |signal| 128 + signal);
        if let Some(index) = self.commands.iter().position(|command| command.pid == pid) {
            self.commands.swap_remove(index);
            self.answer(
                |mode| *mode == Mode::Commanding { pid },
                &Reply::ExecEnded { exit_code },
            );
        } else if let Some(index) = self
            .containers
            .iter()
            .position(|container| container.pid() == Some(pid))
        {
            self.container_ended(index, exit_code, signal);
        } else if self
            .namespaces
            .pause
            .as_ref()
            .is_some_and(|pause| pause.pid == pid)
        {
            // The kernel has killed everybody else in the namespace first: a pod without it has to be made anew.
            self.namespaces.pause = None;
            self.mark_stopped();
        }
        if !self.ending {
            self.answer_stopped_sandbox();
        }
    }

    fn container_ended(&mut self, index: usize, exit_code: i32, signal: Option<i32>) {
        if let Some(running) = &self.containers[index].running
            && running.mount_namespace.is_some()
            && let Err(error) = shared_pids::kill_rest(&running.group, running.mount_namespace)
        {
            complain(format_args!(
                "processes of an ended container may still run: {error}"
            ));
        }
        // Every process of it is gone by now, so its output is complete in the pipes.
        let count = self.containers[index]
            .running
            .as_ref()
            .map_or(0, |running| running.outputs.len());
        for output in 0..count {
            // No longer than what a pipe can hold: its other end may have been handed to somebody who goes on printing.
            for _ in 0..DRAINED_READS_MAX {
                if !self.read_some(index, output) {
                    break;
                }
            }
        }
        let container = &mut self.containers[index];
        let Some(mut running) = container.running.take() else {
            return;
        };
        let time = timestamp(SystemTime::now());
        let mut lines = Vec::new();
        running
            .outputs
            .iter_mut()
            .for_each(|output| output.cutter.finish(&time, &mut lines));
        running.append(&lines);
        let oom_kills = running.group.oom_kills().saturating_sub(running.oom_kills_before);
        container.status.state = ContainerState::Exited(Exit {
            exit_code,
            signal,
            started_at: running.started_at,
            finished_at: SystemTime::now(),
            // Who ended well was not the one.
            oom_killed: oom_kills > 0 && exit_code != 0,
            lost: false,
        });
        // Commands of it may still be waited for; the agent removes what stays.
        running.group.try_remove();
        let (name, attempt) = (container.status.name.clone(), container.status.attempt);
        drop(running);
        self.changed();
        self.answer(
            |mode| {
                *mode
                    == Mode::Attached {
                        name: name.clone(),
                        attempt,
                    }
            },
            &Reply::AttachEnded {
                end: AttachEnd::Ended,
            },
        );
        self.answer(
            |mode| {
                *mode
                    == Mode::Stopping {
                        name: name.clone(),
                        attempt,
                    }
            },
            &Reply::Done,
        );
    }
}
