//! The agent's side: sandboxes and containers as async calls.

use std::time::Duration;

use crate::config::{IdRange, RuntimeConfig};
use crate::error::{ContainerError, ExecError, OpenError, PurgeError, SandboxError, StartError};
use crate::events::Events;
use crate::exec::{ExecConfig, ExecSession, ExecSyncOutput};
use crate::spec::{ContainerConfig, SandboxConfig};
use crate::status::{ContainerStatus, Sandbox};

/// All sandboxes of one instance. Cheap to clone; needs a tokio runtime.
#[derive(Debug, Clone)]
pub struct Runtime {}

impl Runtime {
    /// Opens the state directory, attaches to every shim that runs, and removes what an earlier boot left.
    pub async fn open(_config: RuntimeConfig) -> Result<Self, OpenError> {
        Err(OpenError::NoFreeIds)
    }

    /// The host ids that a pod will have, so that its volumes can be owned before its sandbox exists. Kept until
    /// [`remove_sandbox`](Self::remove_sandbox), also across restarts; the same answer every time.
    pub async fn reserve_ids(&self, _pod_uid: &str) -> Result<IdRange, SandboxError> {
        Err(SandboxError::Exhausted("ids"))
    }

    /// Makes a sandbox and returns once it can run containers.
    pub async fn run_sandbox(&self, _config: SandboxConfig) -> Result<Sandbox, SandboxError> {
        Err(SandboxError::Exhausted("ids"))
    }

    /// Every sandbox, also those found after a restart and those that can only be removed, sorted by pod uid.
    pub fn sandboxes(&self) -> Vec<Sandbox> {
        Vec::new()
    }

    /// One pod's sandbox.
    pub fn sandbox(&self, _pod_uid: &str) -> Option<Sandbox> {
        None
    }

    /// Starts a container and returns once its program is executed.
    pub async fn start_container(&self, pod_uid: &str, _config: ContainerConfig) -> Result<ContainerStatus, StartError> {
        Err(StartError::NoSandbox(pod_uid.to_owned()))
    }

    /// Sends a signal (SIGTERM when `None`) to the container's first process, SIGKILL after the grace period, and
    /// returns once it has ended. The shim keeps the time, so the end comes even if the caller dies. A second call can only
    /// bring the end forward. A container that is not there or has ended is fine.
    pub async fn stop_container(
        &self,
        _pod_uid: &str,
        _name: &str,
        _signal: Option<i32>,
        _grace: Duration,
    ) -> Result<(), ContainerError> {
        Ok(())
    }

    /// Forgets an attempt that has ended, and removes its writable layer. Its log file stays. Idempotent.
    pub async fn remove_container(&self, _pod_uid: &str, _name: &str, _attempt: u32) -> Result<(), ContainerError> {
        Ok(())
    }

    /// Kills whatever still runs in a sandbox and takes its network away; exit codes stay readable. Idempotent.
    pub async fn stop_sandbox(&self, _pod_uid: &str) -> Result<(), SandboxError> {
        Ok(())
    }

    /// Stops a sandbox and removes all that was made for it: processes, cgroups, links, files. Idempotent. Log
    /// files stay, they are the caller's.
    pub async fn remove_sandbox(&self, _pod_uid: &str) -> Result<(), SandboxError> {
        Ok(())
    }

    /// Runs a command in the newest attempt of a container, which must run.
    pub async fn exec(&self, pod_uid: &str, _container: &str, _config: ExecConfig) -> Result<ExecSession, ExecError> {
        Err(ExecError::NoSandbox(pod_uid.to_owned()))
    }

    /// Runs a command to its end and brings back what it printed, at most `output_bytes_max` of each stream; the rest is
    /// read and dropped. At the timeout the command is killed.
    pub async fn exec_sync(
        &self,
        pod_uid: &str,
        _container: &str,
        _argv: Vec<String>,
        _timeout: Duration,
        _output_bytes_max: usize,
    ) -> Result<ExecSyncOutput, ExecError> {
        Err(ExecError::NoSandbox(pod_uid.to_owned()))
    }

    /// What happens from now on, after every exit that is still on record.
    pub fn events(&self) -> Events {
        let (_, receiver) = tokio::sync::broadcast::channel(crate::events::EVENT_LAG_MAX);
        Events { already: Default::default(), receiver }
    }

    /// Ends every pod of an instance and removes every process, cgroup, link, route and file of it, the state directory included.
    /// No [`Runtime`] of the instance may be open.
    pub async fn purge(_config: RuntimeConfig) -> Result<(), PurgeError> {
        Ok(())
    }
}
