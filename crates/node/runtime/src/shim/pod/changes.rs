//! Requests about one container: what it sees, what it was started with, and that it be forgotten.

use std::os::fd::OwnedFd;

use super::Pod;
use crate::protocol::{Refusal, SwapCall, SwapOutcome};
use crate::shim::container::{Container, Running};
use crate::shim::mount_swap::{self, Process};

impl Pod {
    pub(super) fn swap_mount(&mut self, call: &SwapCall, fds: Vec<OwnedFd>) -> Result<SwapOutcome, Refusal> {
        let source = fds.into_iter().next().ok_or_else(|| Refusal::Invalid {
            message: "no descriptor says what is to be shown".to_owned(),
        })?;
        let running = self
            .containers
            .iter_mut()
            .find(|container| container.status.name == call.name && container.status.attempt == call.attempt)
            .and_then(|container| container.running.as_mut())
            .ok_or(Refusal::NotRunning)?;
        let process = Process {
            pid: running.pid,
            pidfd: &running.pidfd,
        };
        mount_swap::swap(&self.namespaces, &process, &mut running.mounts, call, &source)
    }

    /// The names of variables that a start with this environment would have otherwise. Values stay here.
    pub(super) fn compare_env(
        &self,
        name: &str,
        attempt: u32,
        env: Vec<(String, String)>,
    ) -> Result<Vec<String>, Refusal> {
        let mut containers = self.containers.iter();
        let running: &Running = containers
            .find(|container| container.status.name == name && container.status.attempt == attempt)
            .and_then(|container| container.running.as_ref())
            .ok_or(Refusal::NotRunning)?;
        Ok(running.identity.differs_in(env, &self.record.config.hostname))
    }

    pub(super) fn remove(&mut self, name: &str, attempt: u32) -> Result<(), Refusal> {
        let found =
            |container: &Container| container.status.name == name && container.status.attempt == attempt;
        let Some(index) = self.containers.iter().position(found) else {
            return Ok(());
        };
        if self.containers[index].running.is_some() {
            return Err(Refusal::Running);
        }
        self.containers.remove(index);
        self.changed();
        Ok(())
    }
}
