//! A server of our own: this very binary as a child process, so that its CPU time and memory can be told from ours.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use hotmap_client::ClientConfig;
use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    connection::{Connection, Connector},
    process,
    process::Memory,
};

/// The line on standard output that says the server serves contains this word.
const READY_WORD: &str = "ready";
const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two looks at the node while it starts.
const NODE_POLL: Duration = Duration::from_millis(2);
const NODE_NAME: &str = "hotmap-bench";
/// After the first list, until memory is called idle.
const SETTLE: Duration = Duration::from_secs(1);
/// So much of the server's log goes into an error.
const LOG_TAIL_LINES: usize = 10;

/// What runs beside the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// Nothing: works without root.
    Absent,
    /// A node in the server's process; it leaves kernel objects behind that [`OwnServer::clean_up`] removes.
    InProcess,
    /// As [`Node::InProcess`], yet it reaches the API, which listens at `api`, by way of another address.
    Behind { way: SocketAddr, api: SocketAddr },
}

impl Node {
    fn is_there(self) -> bool {
        self != Self::Absent
    }
}

/// A server and its temporary directory.
pub(super) struct OwnServer {
    directory: TempDir,
    node: Node,
    running: Running,
}

struct Running {
    child: Child,
    pid: u32,
    started: Instant,
    start_to_ready: Duration,
    /// Reads on after the ready line, so that the server never waits for us.
    _drain: AbortOnDropHandle<()>,
}

impl OwnServer {
    /// Starts a server below `parent` and waits until it says that it is ready.
    pub(super) async fn start(parent: &Path, node: Node) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("hotmap-bench-")
            .tempdir_in(parent);
        let directory =
            directory.with_context(|| format!("cannot make a directory in {}", parent.display()))?;
        match Running::start(directory.path(), node).await {
            Ok(running) => Ok(Self {
                directory,
                node,
                running,
            }),
            Err(error) => match purge(directory.path(), node).await {
                Ok(()) => Err(error),
                Err(also) => Err(error.context(format!("{also:#}"))),
            },
        }
    }

    /// Stops the server and starts it again on what it has stored.
    pub(super) async fn restart(&mut self) -> anyhow::Result<()> {
        self.stop().await?;
        self.running = Running::start(self.directory.path(), self.node).await?;
        Ok(())
    }

    /// Removes the pods and kernel objects of a stopped server's node; its directory goes with the value.
    pub(super) async fn clean_up(&self) -> anyhow::Result<()> {
        purge(self.directory.path(), self.node).await
    }

    pub(super) fn node(&self) -> Node {
        self.node
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.pid
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        data_dir(self.directory.path())
    }

    pub(super) fn start_to_ready(&self) -> Duration {
        self.running.start_to_ready
    }

    pub(super) fn client_config(&self) -> anyhow::Result<ClientConfig> {
        ClientConfig::from_kubeconfig(&kubeconfig(self.directory.path()), None)
            .context("cannot read the server's kubeconfig")
    }

    /// Lists all ConfigMaps over a new connection, and waits until the node is ready if there is one; the time since the
    /// process was started.
    pub(super) async fn time_first_list(&self, connector: &Connector) -> anyhow::Result<Duration> {
        let connection = connector.connect().await?;
        connection
            .exchange(Method::GET, "/api/v1/configmaps", Bytes::new())
            .await?;
        while self.node.is_there() && !has_ready_node(&connection).await? {
            if self.running.started.elapsed() > START_TIMEOUT {
                bail!("the node was not ready in time");
            }
            sleep(NODE_POLL).await;
        }
        Ok(self.running.started.elapsed())
    }

    /// Memory after a moment of rest.
    pub(super) async fn idle_memory(&self) -> anyhow::Result<Memory> {
        tokio::time::sleep(SETTLE).await;
        self.memory()
    }

    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        process::memory(self.running.pid).context("cannot read the server's memory")
    }

    pub(super) fn binary_bytes() -> anyhow::Result<u64> {
        Ok(fs::metadata(std::env::current_exe()?)?.len())
    }

    /// Asks the server to stop, and makes it stop if it does not.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.running.pid)
            .ok()
            .and_then(Pid::from_raw)
            .expect("the kernel gave this id");
        if self
            .running
            .child
            .try_wait()
            .context("cannot ask for the server's state")?
            .is_some()
        {
            bail!(
                "the server ended on its own:\n{}",
                log_tail(self.directory.path())
            );
        }
        kill_process(pid, Signal::TERM).context("cannot stop the server")?;
        if timeout(STOP_TIMEOUT, self.running.child.wait()).await.is_err() {
            self.running
                .child
                .kill()
                .await
                .context("cannot kill the server")?;
            bail!(
                "the server did not stop within {} s and was killed",
                STOP_TIMEOUT.as_secs()
            );
        }
        Ok(())
    }
}

impl Running {
    async fn start(directory: &Path, node: Node) -> anyhow::Result<Self> {
        let log = File::create(log_path(directory)).context("cannot make the server's log")?;
        let mut command = own_binary()?;
        let listen = match node {
            Node::Behind { api, .. } => api.to_string(),
            Node::Absent | Node::InProcess => "127.0.0.1:0".to_owned(),
        };
        command
            .args(["up", "--listen", &listen, "--data-dir"])
            .arg(data_dir(directory));
        command.arg("--kubeconfig").arg(kubeconfig(directory));
        match node {
            Node::Absent => command.arg("--no-node"),
            Node::InProcess => command.args(["--node-name", NODE_NAME]),
            Node::Behind { way, api } => command
                .args(["--node-name", NODE_NAME, "--tls-san", &api.ip().to_string()])
                .args(["--fault-node-api", &way.to_string()]),
        };
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            // A terminal's interrupt is ours to handle: the server is stopped in order.
            .process_group(0)
            .kill_on_drop(true);
        let started = Instant::now();
        let mut child = command.spawn().context("cannot start this binary again")?;
        let output = child.stdout.take().expect("standard output is a pipe");
        let pid = child.id().expect("nobody has waited for the child");
        let mut lines = BufReader::new(output).lines();
        let ready = timeout(START_TIMEOUT, wait_for_ready(&mut lines)).await;
        let start_to_ready = started.elapsed();
        if let Err(error) = ready.context("it was not ready in time").flatten() {
            // Its lock must be free for whoever cleans up.
            child.kill().await.context("cannot kill the server")?;
            return Err(error.context(format!("the server did not start:\n{}", log_tail(directory))));
        }
        let drain = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Ok(Some(_)) = lines.next_line().await {}
        }));
        Ok(Self {
            child,
            pid,
            started,
            start_to_ready,
            _drain: drain,
        })
    }
}

/// This binary again. What the user has set for `up` is not meant for it.
fn own_binary() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this binary")?);
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(is_own_variable)
        .for_each(|name| {
            command.env_remove(name);
        });
    Ok(command)
}

async fn purge(directory: &Path, node: Node) -> anyhow::Result<()> {
    if node == Node::Absent || !data_dir(directory).exists() {
        return Ok(());
    }
    let mut command = own_binary()?;
    command
        .args(["down", "--purge", "--data-dir"])
        .arg(data_dir(directory));
    let ended = command.output().await.context("cannot run down --purge")?;
    if !ended.status.success() {
        bail!(
            "down --purge of {} failed: {}",
            data_dir(directory).display(),
            String::from_utf8_lossy(&ended.stderr).trim()
        );
    }
    Ok(())
}

async fn has_ready_node(connection: &Connection) -> anyhow::Result<bool> {
    let path = format!("/api/v1/nodes/{NODE_NAME}");
    let node = connection.exchange(Method::GET, &path, Bytes::new()).await?;
    let node: Value = serde_json::from_slice(&node).context("cannot read the node")?;
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    Ok(conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True"))
}

async fn wait_for_ready(lines: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<()> {
    while let Some(line) = lines.next_line().await? {
        if line.contains(READY_WORD) {
            return Ok(());
        }
    }
    bail!("it ended before it was ready")
}

fn is_own_variable(name: &OsString) -> bool {
    name.as_encoded_bytes().starts_with(b"HOTMAP_")
}

fn data_dir(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn kubeconfig(directory: &Path) -> PathBuf {
    directory.join("kubeconfig")
}

fn log_path(directory: &Path) -> PathBuf {
    directory.join("server.log")
}

fn log_tail(directory: &Path) -> String {
    let read: io::Result<String> = fs::read_to_string(log_path(directory));
    let log = read.unwrap_or_else(|error| format!("cannot read its log: {error}"));
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}
