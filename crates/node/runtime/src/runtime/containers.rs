//! Start, stop and removal of single containers.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::pods::Pods;
use super::removal::remove_tree;
use super::{REPLY_PATIENCE, Runtime, VISIBLE_PATIENCE, blocking, validate};
use crate::error::{ContainerError, StartError};
use crate::protocol::{self, Call, Refusal, Reply};
use crate::spec::ContainerConfig;
use crate::status::ContainerStatus;

impl Runtime {
    /// Starts a container and returns once its program is executed.
    pub async fn start_container(
        &self,
        pod_uid: &str,
        config: ContainerConfig,
    ) -> Result<ContainerStatus, StartError> {
        validate::container(&config).map_err(StartError::Invalid)?;
        if config.privileged && !self.inner.config.allow_privileged {
            return Err(StartError::Privileged);
        }
        if !self.is_attached(pod_uid) {
            return Err(StartError::NoSandbox(pod_uid.to_owned()));
        }
        let (name, attempt) = (config.name.clone(), config.attempt);
        let target = config.target.clone();
        let container = Box::new(config);
        let call = match target {
            None => Call::Start { container },
            Some(_) => Call::StartBeside { container },
        };
        let reply = self
            .call(pod_uid, call, Some(REPLY_PATIENCE))
            .await
            .map_err(StartError::Shim)?;
        let refusal = match reply {
            Reply::Started { container } => {
                let known = |pods: &Pods| {
                    pods.sandbox(pod_uid).is_none_or(|sandbox| {
                        sandbox
                            .containers
                            .iter()
                            .any(|other| other.name == name && other.attempt == attempt)
                    })
                };
                let _ = tokio::time::timeout(VISIBLE_PATIENCE, self.inner.pods.wait_for(known)).await;
                return Ok(container);
            }
            Reply::Refused { refusal } => refusal,
            _ => return Err(StartError::Shim(io::ErrorKind::InvalidData.into())),
        };
        if !matches!(refusal, Refusal::Exists) {
            self.remove_layer(pod_uid, &name, attempt)
                .await
                .map_err(|(_, source)| StartError::Shim(source))?;
        }
        Err(match refusal {
            Refusal::Exists => StartError::Exists { name, attempt },
            Refusal::Stopped => StartError::NoSandbox(pod_uid.to_owned()),
            Refusal::Privileged => StartError::Privileged,
            Refusal::Exec { message, .. } => StartError::Exec(message),
            Refusal::Invalid { message } => StartError::Invalid(message),
            Refusal::Setup { message } | Refusal::Unavailable { message } => StartError::Setup(message),
            Refusal::TooMany => {
                StartError::Invalid("too many attempts are on record; remove old ones".to_owned())
            }
            Refusal::Unsupported if target.is_some() => StartError::NoTargets,
            Refusal::Unsupported => {
                StartError::Invalid("the pod's shim is older and cannot do this".to_owned())
            }
            Refusal::NotRunning if let Some(target) = target => StartError::NoTarget(target),
            Refusal::NotRunning | Refusal::Running => StartError::Setup(format!("refused: {refusal:?}")),
        })
    }

    /// Sends a signal (SIGTERM when `None`) to the container's first process, SIGKILL after the grace period, and
    /// returns once it has ended. The shim keeps the time, so the end comes even if the caller dies. A second call can only
    /// bring the end forward. A container that is not there or has ended is fine; with an `attempt`, a later one is left alone.
    pub async fn stop_container(
        &self,
        pod_uid: &str,
        name: &str,
        attempt: Option<u32>,
        signal: Option<i32>,
        grace: Duration,
    ) -> Result<(), ContainerError> {
        if !self.is_attached(pod_uid) {
            return Ok(());
        }
        let call = Call::Stop {
            name: name.to_owned(),
            attempt,
            signal: signal.unwrap_or(libc::SIGTERM),
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        match self
            .call(pod_uid, call, None)
            .await
            .map_err(ContainerError::Shim)?
        {
            Reply::Done => {}
            Reply::Refused {
                refusal: Refusal::Invalid { message },
            } => return Err(ContainerError::Invalid(message)),
            reply => return Err(ContainerError::Invalid(format!("unexpected answer {reply:?}"))),
        }
        let ended = |pods: &Pods| !pods.is_running(pod_uid, name);
        let _ = tokio::time::timeout(VISIBLE_PATIENCE, self.inner.pods.wait_for(ended)).await;
        Ok(())
    }

    /// Forgets an attempt that has ended, and removes its writable layer. Its log file stays. Idempotent.
    pub async fn remove_container(
        &self,
        pod_uid: &str,
        name: &str,
        attempt: u32,
    ) -> Result<(), ContainerError> {
        validate::container_name(name).map_err(ContainerError::Invalid)?;
        if self.is_attached(pod_uid) {
            let call = Call::Remove {
                name: name.to_owned(),
                attempt,
            };
            match self
                .call(pod_uid, call, Some(REPLY_PATIENCE))
                .await
                .map_err(ContainerError::Shim)?
            {
                Reply::Done => {}
                Reply::Refused {
                    refusal: Refusal::Running,
                } => return Err(ContainerError::Running(name.to_owned())),
                reply => return Err(ContainerError::Invalid(format!("unexpected answer {reply:?}"))),
            }
        }
        self.inner.pods.with_pod(pod_uid, |pod| {
            if let Some(state) = &mut pod.state {
                state
                    .containers
                    .retain(|container| container.name != name || container.attempt != attempt);
            }
        });
        let removed = self.remove_layer(pod_uid, name, attempt).await;
        removed.map_err(|(path, source)| ContainerError::Files { path, source })
    }

    async fn remove_layer(
        &self,
        pod_uid: &str,
        name: &str,
        attempt: u32,
    ) -> Result<(), (PathBuf, io::Error)> {
        let path = self.pod_dir(pod_uid).join(protocol::layer_dir(name, attempt));
        blocking(move || remove_tree(&path).map_err(|source| (path, source))).await
    }
}
