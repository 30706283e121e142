//! A server of our own: this very binary as a child process, so that its CPU time and memory can be told from ours.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use hotmap_client::ClientConfig;
use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use super::{connection::Connector, process, process::Memory};

/// The line on standard output that says the server serves contains this word.
const READY_WORD: &str = "ready";
const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// After the first list, until memory is called idle.
const SETTLE: Duration = Duration::from_secs(1);
/// So much of the server's log goes into an error.
const LOG_TAIL_LINES: usize = 10;

/// A running server and its temporary directory; both go with this value.
pub(super) struct OwnServer {
    child: Child,
    pid: u32,
    directory: TempDir,
    started: Instant,
    start_to_ready: Duration,
    /// Reads on after the ready line, so that the server never waits for us.
    _drain: AbortOnDropHandle<()>,
}

impl OwnServer {
    /// Starts a server below `parent` and waits until it says that it is ready.
    pub(super) async fn start(parent: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("hotmap-bench-")
            .tempdir_in(parent);
        let directory =
            directory.with_context(|| format!("cannot make a directory in {}", parent.display()))?;
        let log = File::create(log_path(directory.path())).context("cannot make the server's log")?;
        let mut command = Command::new(std::env::current_exe().context("cannot find this binary")?);
        command
            .args(["up", "--no-node", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir(directory.path()));
        command.arg("--kubeconfig").arg(kubeconfig(directory.path()));
        // What the user has set for `up` is not meant for this one.
        std::env::vars_os()
            .map(|(name, _)| name)
            .filter(is_own_variable)
            .for_each(|name| {
                command.env_remove(name);
            });
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        let started = Instant::now();
        let mut child = command.spawn().context("cannot start this binary again")?;
        let output = child.stdout.take().expect("standard output is a pipe");
        let pid = child.id().expect("nobody has waited for the child");
        let mut lines = BufReader::new(output).lines();
        let ready = timeout(START_TIMEOUT, wait_for_ready(&mut lines)).await;
        let start_to_ready = started.elapsed();
        if let Err(error) = ready.context("it was not ready in time").flatten() {
            return Err(error.context(format!(
                "the server did not start:\n{}",
                log_tail(directory.path())
            )));
        }
        let drain = AbortOnDropHandle::new(tokio::spawn(async move {
            while let Ok(Some(_)) = lines.next_line().await {}
        }));
        Ok(Self {
            child,
            pid,
            directory,
            started,
            start_to_ready,
            _drain: drain,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn data_dir(&self) -> PathBuf {
        data_dir(self.directory.path())
    }

    pub(super) fn start_to_ready(&self) -> Duration {
        self.start_to_ready
    }

    pub(super) fn client_config(&self) -> anyhow::Result<ClientConfig> {
        ClientConfig::from_kubeconfig(&kubeconfig(self.directory.path()), None)
            .context("cannot read the server's kubeconfig")
    }

    /// Lists all ConfigMaps over a new connection; the time since the process was started.
    pub(super) async fn time_first_list(&self, connector: &Connector) -> anyhow::Result<Duration> {
        connector
            .connect()
            .await?
            .exchange(Method::GET, "/api/v1/configmaps", Bytes::new())
            .await?;
        Ok(self.started.elapsed())
    }

    /// Memory after a moment of rest.
    pub(super) async fn idle_memory(&self) -> anyhow::Result<Memory> {
        tokio::time::sleep(SETTLE).await;
        self.memory()
    }

    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        process::memory(self.pid).context("cannot read the server's memory")
    }

    pub(super) fn binary_bytes() -> anyhow::Result<u64> {
        Ok(fs::metadata(std::env::current_exe()?)?.len())
    }

    /// Asks the server to stop, and makes it stop if it does not.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(Pid::from_raw)
            .expect("the kernel gave this id");
        if self
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
        if timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            self.child.kill().await.context("cannot kill the server")?;
            bail!(
                "the server did not stop within {} s and was killed",
                STOP_TIMEOUT.as_secs()
            );
        }
        Ok(())
    }
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
