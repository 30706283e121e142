//! Starts one container: environment, command, mounts, and what went wrong in the words kubectl users know.

use std::{sync::Arc, time::Duration};

use hotmap_runtime::{Capabilities, ContainerConfig, ContainerState, LogLimits, StartError};
use jiff::Timestamp;
use tracing::info;

use super::{Worker, log_directory, mounts, printed};
use crate::{
    command::command,
    environment::environment,
    events::Subject,
    pod::{Container, Pod},
    records::{Ended, timestamp},
};

/// What upstream shows for a program that could not be executed (`pkg/kubelet/kuberuntime`, Kubernetes 1.36).
const EXIT_START_ERROR: i32 = 128;

/// Why a container did not start, with the reason its waiting state gives.
struct NotStarted {
    reason: &'static str,
    message: String,
}

impl Worker {
    /// True if the container's state changed.
    pub(super) async fn start_container(&mut self, pod: &Arc<Pod>, name: &str, attempt: u32) -> bool {
        let Some(container) = pod
            .all_containers()
            .find(|container| container.name == name)
            .cloned()
        else {
            return false;
        };
        let subject = || Subject::container(pod, name);
        let not_started = match self.configure(pod, &container, attempt).await {
            Ok((config, held)) => {
                let started = self.shared.runtime.start_container(&self.uid, config).await;
                // The handles pin what is mounted until the shim has bound it.
                drop(held);
                match started {
                    Ok(status) => {
                        let started_at = match &status.state {
                            ContainerState::Running { started_at, .. } => timestamp(*started_at),
                            ContainerState::Exited(exit) => timestamp(exit.started_at),
                        };
                        if let Some(record) = self.records.get_mut(name) {
                            record.started(attempt, started_at);
                        }
                        self.forget_older(name, attempt).await;
                        info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, container = name, attempt, "container started");
                        self.shared
                            .recorder
                            .normal(subject(), "Created", "Container created");
                        self.shared
                            .recorder
                            .normal(subject(), "Started", "Container started");
                        return true;
                    }
                    Err(StartError::Exec(message)) => {
                        self.shared
                            .recorder
                            .warning(subject(), "Failed", format!("Error: {message}"));
                        self.note_start_error(name, attempt, message);
                        return true;
                    }
                    Err(error) => NotStarted {
                        reason: "CreateContainerError",
                        message: printed(&error),
                    },
                }
            }
            Err(not_started) => not_started,
        };
        self.shared
            .recorder
            .warning(subject(), "Failed", format!("Error: {}", not_started.message));
        if let Some(record) = self.records.get_mut(name) {
            record.waits(not_started.reason, not_started.message);
        }
        self.retry_later();
        false
    }

    async fn configure(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
        attempt: u32,
    ) -> Result<(ContainerConfig, mounts::Held), NotStarted> {
        let config_error = |message: String| NotStarted {
            reason: "CreateContainerConfigError",
            message,
        };
        let sandbox = self.shared.runtime.sandbox(&self.uid);
        let facts = self.facts(sandbox.as_ref());
        let env = environment(pod, container, &facts, |reference| {
            self.shared.objects.get(reference)
        })
        .map_err(|error| config_error(error.to_string()))?;
        let command =
            command(pod, container, env, &self.shared.images, |path| path.exists()).map_err(|error| {
                NotStarted {
                    reason: error.reason(),
                    message: error.to_string(),
                }
            })?;
        let security = &container.security_context;
        let words = |list: &'_ [String]| -> Vec<String> { list.to_vec() };
        let (add, drop) = (
            words(&security.capabilities.add),
            words(&security.capabilities.drop),
        );
        let capabilities =
            Capabilities::from_default(add.iter().map(String::as_str), drop.iter().map(String::as_str))
                .map_err(|error| config_error(error.to_string()))?;
        let (mounts, held) = mounts::prepare(Arc::clone(&self.shared), Arc::clone(pod), container.clone())
            .await
            .map_err(|error| config_error(error.to_string()))?;
        let privileged = security.privileged == Some(true);
        let config = ContainerConfig {
            name: container.name.clone(),
            attempt,
            argv: command.argv,
            env: command.env.into_iter().collect(),
            cwd: command.cwd,
            user: command.user,
            capabilities: if privileged {
                Capabilities::ALL
            } else {
                capabilities
            },
            no_new_privileges: security.allow_privilege_escalation == Some(false),
            privileged,
            read_only_root: false,
            mounts,
            writable: command.writable,
            links: command.links,
            log_path: log_directory(&self.shared.log_root, pod)
                .join(&container.name)
                .join(format!("{attempt}.log")),
            log_limits: LogLimits::default(),
            tty: container.tty,
        };
        Ok((config, held))
    }

    /// An attempt that never ran its program: it ended as it began, and backs off like any other.
    fn note_start_error(&mut self, name: &str, attempt: u32, message: String) {
        let Some(record) = self.records.get_mut(name) else {
            return;
        };
        let now = Timestamp::now();
        record.started(attempt, now);
        record.exited(Ended {
            exit_code: EXIT_START_ERROR,
            signal: None,
            reason: "StartError",
            message,
            started_at: Timestamp::UNIX_EPOCH,
            finished_at: now,
        });
        // Its program ran for no time, whatever the epoch says.
        record.not_before = record.not_before.map(|due| due.max(now + Duration::from_secs(1)));
    }

    /// Keeps the attempt before the newest one: its log is `kubectl logs --previous`.
    async fn forget_older(&self, name: &str, newest: u32) {
        let Some(sandbox) = self.shared.runtime.sandbox(&self.uid) else {
            return;
        };
        let older = sandbox
            .containers
            .iter()
            .filter(|one| one.name == name && one.attempt < newest);
        for one in older {
            if let Err(error) = self
                .shared
                .runtime
                .remove_container(&self.uid, name, one.attempt)
                .await
            {
                tracing::warn!(pod_uid = %self.uid, container = name, attempt = one.attempt, error = %printed(&error), "ended container not removed");
            }
        }
    }
}
