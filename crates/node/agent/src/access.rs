//! Logs, commands, streams and ports of the pods on this node, for whoever serves them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use futures_util::stream::BoxStream;
use hotmap_runtime::{
    AttachConfig, AttachError, AttachSession, ConnectError, ContainerState, Event, ExecConfig, ExecError,
    ExecSession, Runtime, SandboxState,
};
use parking_lot::Mutex;
use tokio::{net::TcpStream, sync::watch};

use crate::{logs, pod::Pod, worker::log_directory};
pub use logs::LogOptions;

/// Reaches the pods of one node. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    runtime: Runtime,
    log_root: PathBuf,
    pods: Arc<Mutex<BTreeMap<String, Arc<Pod>>>>,
}

/// Why a log cannot be read, in the kubelet's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The pod is not on this node.
    #[error("pod {0:?} not found")]
    NoPod(String),
    /// It has not started.
    #[error("container {container:?} in pod {pod:?} is waiting to start: {reason}")]
    Waiting {
        /// The container.
        container: String,
        /// The pod.
        pod: String,
        /// Why it waits.
        reason: String,
    },
    /// There is no instance before the current one.
    #[error("previous terminated container {container:?} in pod {pod:?} not found")]
    NoPrevious {
        /// The container.
        container: String,
        /// The pod.
        pod: String,
    },
}

/// A log in pieces; an error ends it.
pub type LogPieces = BoxStream<'static, std::io::Result<bytes::Bytes>>;

impl Access {
    pub(crate) fn new(
        runtime: Runtime,
        log_root: PathBuf,
        pods: Arc<Mutex<BTreeMap<String, Arc<Pod>>>>,
    ) -> Self {
        Self {
            runtime,
            log_root,
            pods,
        }
    }

    /// How many pods have a sandbox on this node, and keep it when the agent ends.
    pub fn running_pods(&self) -> usize {
        self.runtime
            .sandboxes()
            .iter()
            .filter(|sandbox| sandbox.state == SandboxState::Ready)
            .count()
    }

    /// The uid of the pod that has this name now.
    pub fn uid_of(&self, namespace: &str, name: &str) -> Option<String> {
        let pods = self.pods.lock();
        let mut named = pods
            .values()
            .map(|pod| &pod.metadata)
            .filter(|pod| pod.namespace == namespace && pod.name == name);
        named.next().map(|pod| pod.uid.clone())
    }

    /// The log of a container's newest instance, or of the one before it.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn logs(
        &self,
        pod_uid: &str,
        container: &str,
        previous: bool,
        options: LogOptions,
    ) -> Result<LogPieces, LogError> {
        let pod = self
            .pods
            .lock()
            .get(pod_uid)
            .cloned()
            .ok_or_else(|| LogError::NoPod(pod_uid.to_owned()))?;
        let newest = self.newest_attempt(&pod, container)?;
        let attempt = match (previous, newest) {
            (false, newest) => newest,
            (true, newest) => newest.checked_sub(1).ok_or_else(|| LogError::NoPrevious {
                container: container.to_owned(),
                pod: pod.metadata.name.clone(),
            })?,
        };
        let file = log_directory(&self.log_root, &pod)
            .join(container)
            .join(format!("{attempt}.log"));
        let ended = self.ended(pod_uid.to_owned(), container.to_owned(), attempt);
        Ok(Box::pin(logs::read(file, options, ended)))
    }

    /// Runs a command in a running container.
    ///
    /// # Errors
    /// [`ExecError`]
    pub async fn exec(
        &self,
        pod_uid: &str,
        container: &str,
        config: ExecConfig,
    ) -> Result<ExecSession, ExecError> {
        self.runtime.exec(pod_uid, container, config).await
    }

    /// Takes part in the streams of a running container.
    ///
    /// # Errors
    /// [`AttachError`]
    pub async fn attach(
        &self,
        pod_uid: &str,
        container: &str,
        config: AttachConfig,
    ) -> Result<AttachSession, AttachError> {
        self.runtime.attach_container(pod_uid, container, config).await
    }

    /// Whether the pod has a network that [`connect`](Self::connect) finds.
    pub fn has_ports(&self, pod_uid: &str) -> bool {
        let sandbox = self.runtime.sandbox(pod_uid);
        sandbox.is_some_and(|sandbox| sandbox.state == SandboxState::Ready)
    }

    /// Connects to a port on the pod's loopback.
    ///
    /// # Errors
    /// [`ConnectError`]
    pub async fn connect(&self, pod_uid: &str, port: u16) -> Result<TcpStream, ConnectError> {
        self.runtime.connect(pod_uid, port).await
    }

    fn newest_attempt(&self, pod: &Pod, container: &str) -> Result<u32, LogError> {
        let running = self
            .runtime
            .sandbox(&pod.metadata.uid)
            .and_then(|sandbox| Some(sandbox.container(container)?.attempt));
        if let Some(attempt) = running {
            return Ok(attempt);
        }
        // The sandbox is gone with a finished pod; its logs are not.
        let lists = [
            "containerStatuses",
            "initContainerStatuses",
            "ephemeralContainerStatuses",
        ]
        .map(|list| pod.status[list].as_array());
        let mut statuses = lists.into_iter().flatten().flatten();
        let status = statuses.find(|status| status["name"] == container);
        match status {
            Some(status)
                if status["state"].get("waiting").is_none()
                    || status["restartCount"] != 0
                    || status["lastState"].get("terminated").is_some() =>
            {
                Ok(status["restartCount"]
                    .as_u64()
                    .and_then(|count| u32::try_from(count).ok())
                    .unwrap_or_default())
            }
            status => Err(LogError::Waiting {
                container: container.to_owned(),
                pod: pod.metadata.name.clone(),
                reason: status
                    .and_then(|one| one["state"]["waiting"]["reason"].as_str())
                    .unwrap_or("ContainerCreating")
                    .to_owned(),
            }),
        }
    }

    /// Turns true once the attempt runs no more.
    fn ended(&self, pod_uid: String, container: String, attempt: u32) -> watch::Receiver<bool> {
        let mut events = self.runtime.events();
        let runtime = self.runtime.clone();
        let (sender, receiver) = watch::channel(false);
        let runs = move |runtime: &Runtime| {
            runtime.sandbox(&pod_uid).is_some_and(|sandbox| {
                let newest = sandbox
                    .containers
                    .iter()
                    .find(|one| one.name == container && one.attempt == attempt);
                newest.is_some_and(|one| matches!(one.state, ContainerState::Running { .. }))
            })
        };
        tokio::spawn(async move {
            while runs(&runtime) {
                tokio::select! {
                    () = sender.closed() => return,
                    event = events.next() => match event {
                        Some(Event::ContainerExited(_) | Event::SandboxLost { .. } | Event::Resync) => {}
                        None => break,
                    },
                }
            }
            sender.send_replace(true);
        });
        receiver
    }
}
