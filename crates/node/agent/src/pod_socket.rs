//! The agent's socket in each pod: `/run/hotmap/agent.sock`, where a program says what it has loaded.
//!
//! ```text
//!   <data-dir>/volumes/<pod uid>/.agent/agent.sock ◀── bind, by the agent, anew after its restart
//!          │ the directory is mounted read-only
//!          ▼
//!   /run/hotmap/agent.sock of each container ◀── connect; one line of JSON, one line of answer
//! ```
//!
//! The socket says which pod speaks: nobody else's containers have it. Pods are strangers: lines, connections and their
//! rate are bounded, and nothing that is said goes further than this pod's rows of the report. `docs/agent-socket.md` is the
//! protocol.

mod budget;
mod message;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::{JoinSet, spawn_blocking},
};
use tracing::{debug, warn};

use crate::{metrics::Metrics, report::Reports};
use budget::Budget;
use message::Message;

/// Where containers have the directory of the socket.
pub(crate) const DIRECTORY_IN_PODS: &str = "/run/hotmap";
/// No volume has a name that begins with a dot.
const DIRECTORY: &str = ".agent";
const SOCKET: &str = "agent.sock";
/// Bytes of a line: a revision, a volume, and a sentence about what went wrong.
const LINE_BYTES_MAX: u64 = 4_096;
/// Connections of one pod at a time; a program needs one.
const CONNECTIONS_MAX: usize = 8;

/// The sockets of this node's pods.
pub(crate) struct PodSockets {
    volumes: PathBuf,
    reports: Reports,
    metrics: Metrics,
    /// By uid. Dropping an entry ends its listener and its connections.
    open: Mutex<BTreeMap<String, JoinSet<()>>>,
}

impl PodSockets {
    /// `volumes` is the instance's tmpfs.
    pub(crate) fn new(volumes: PathBuf, reports: Reports, metrics: Metrics) -> Self {
        Self {
            volumes,
            reports,
            metrics,
            open: Mutex::default(),
        }
    }

    /// Listens for a pod, in place of whoever did before; does nothing if this agent does already.
    pub(crate) async fn open(&self, pod_uid: &str) -> io::Result<()> {
        if self.open.lock().contains_key(pod_uid) {
            return Ok(());
        }
        let directory = self.directory(pod_uid);
        let listener = spawn_blocking(move || bind(&directory)).await??;
        let listener = UnixListener::from_std(listener)?;
        let mut tasks = JoinSet::new();
        let speaker = Speaker {
            pod_uid: pod_uid.to_owned(),
            reports: self.reports.clone(),
            metrics: self.metrics.clone(),
            budget: Mutex::new(Budget::new(tokio::time::Instant::now())),
        };
        tasks.spawn(listen(listener, Arc::new(speaker)));
        self.open.lock().entry(pod_uid.to_owned()).or_insert(tasks);
        Ok(())
    }

    /// Listens no more. The directory goes with the pod's volumes.
    pub(crate) fn close(&self, pod_uid: &str) {
        // Dropped after the lock: that ends tasks.
        let tasks = self.open.lock().remove(pod_uid);
        drop(tasks);
    }

    /// The directory on the host that containers of the pod get, if there is a socket in it.
    pub(crate) fn mounted(&self, pod_uid: &str) -> Option<PathBuf> {
        let is_open = self.open.lock().contains_key(pod_uid);
        is_open.then(|| self.directory(pod_uid))
    }

    fn directory(&self, pod_uid: &str) -> PathBuf {
        self.volumes.join(pod_uid).join(DIRECTORY)
    }
}

/// Blocks.
fn bind(directory: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let mut builder = fs::DirBuilder::new();
    if let Some(pod) = directory.parent() {
        builder.recursive(true).mode(0o711).create(pod)?;
    }
    builder.recursive(true).mode(0o755).create(directory)?;
    let held = fs::File::open(directory)?;
    // A socket's address has room for 108 bytes; a data directory may have a longer name.
    let at = |name: &str| {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/self/fd/{}/{name}", held.as_raw_fd()))
    };
    let staged = at("agent.sock.new");
    match fs::remove_file(&staged) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(&staged)?;
    listener.set_nonblocking(true)?;
    // Any user of the pod may speak; nobody else reaches the directory.
    fs::set_permissions(&staged, fs::Permissions::from_mode(0o666))?;
    // Over the socket of the agent before us, never without one.
    fs::rename(&staged, at(SOCKET))?;
    Ok(listener)
}

/// A pod as somebody who speaks.
struct Speaker {
    pod_uid: String,
    reports: Reports,
    metrics: Metrics,
    budget: Mutex<Budget>,
}

async fn listen(listener: UnixListener, speaker: Arc<Speaker>) {
    let pod_uid = &speaker.pod_uid;
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut running = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%pod_uid, %error, "a program of the pod cannot connect");
                    // Such as too many open files: it is still so if it is tried again at once.
                    tokio::time::sleep(budget::PAUSE).await;
                    continue;
                }
            },
            Some(_) = running.join_next() => continue,
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
            drop(stream);
            continue;
        };
        let speaker = Arc::clone(&speaker);
        running.spawn(async move {
            if let Err(error) = speaker.converse(stream).await {
                debug!(pod_uid = %speaker.pod_uid, %error, "a program of the pod left");
            }
            drop(permit);
        });
    }
}

impl Speaker {
    async fn converse(&self, stream: UnixStream) -> io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::with_capacity(1_024, reader);
        loop {
            let wait = self.budget.lock().take(tokio::time::Instant::now());
            tokio::time::sleep(wait).await;
            let mut line = Vec::new();
            let read = (&mut reader)
                .take(LINE_BYTES_MAX + 1)
                .read_until(b'\n', &mut line)
                .await?;
            if read == 0 {
                return Ok(());
            }
            let is_whole = line.last() == Some(&b'\n') || line.len() as u64 <= LINE_BYTES_MAX;
            let taken = if is_whole {
                self.take(&line)
            } else {
                Err(format!("a line has at most {LINE_BYTES_MAX} bytes"))
            };
            self.metrics.socket_message(taken.is_ok());
            writer.write_all(message::answer(&taken).as_bytes()).await?;
            if !is_whole {
                return Ok(());
            }
        }
    }

    fn take(&self, line: &[u8]) -> Result<(), String> {
        let message = Message::parse(line)?;
        let volume = message.volume.as_deref();
        self.reports
            .loaded(&self.pod_uid, volume, &message.revision, message.load)
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
