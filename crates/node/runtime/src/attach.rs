//! Taking part in the streams of a container that runs.
//!
//! ```text
//!   container ──pipe or terminal──▶ shim ──▶ log
//!                                    └──▶ a pipe per client, 1 MiB: full, and the client is cut off
//!   client ──────────────────────────────▶ the container's stdin itself: the shim passes on its end of it
//! ```

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::error::AttachError;
use crate::exec::{End, ExecReader, ExecWriter, TerminalSize, pipe, terminal};
use crate::protocol::{AttachCall, AttachEnd, Call, Refusal, Reply};
use crate::runtime::Connection;

/// What may wait for a client, of each stream: the largest pipe that Linux gives without being asked twice.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Which streams of a container are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachConfig {
    /// Whether something is going to be written.
    pub stdin: bool,
    /// Whether its output is wanted; with a terminal, everything on it.
    pub stdout: bool,
    /// Whether its error output is wanted; a container with a terminal has none.
    pub stderr: bool,
}

/// A part in a container's streams. Dropping it detaches; the container goes on.
#[derive(Debug)]
pub struct AttachSession {
    /// The container's stdin, if it was asked for and the container has one; dropped or shut down, it is given back, or
    /// closed with [`Stdin::Once`](crate::Stdin::Once).
    pub stdin: Option<ExecWriter>,
    /// What the container prints from now on. Not reading it costs the session, once 1 MiB waits.
    pub stdout: Option<ExecReader>,
    /// Its error output.
    pub stderr: Option<ExecReader>,
    terminal: Option<Arc<AsyncFd<OwnedFd>>>,
    end: watch::Receiver<Option<AttachEnd>>,
    attendant: AbortHandle,
}

impl AttachSession {
    /// Attaches over a connection of its own.
    pub(crate) async fn start(
        mut connection: Connection,
        pod_uid: &str,
        container: &str,
        config: AttachConfig,
    ) -> Result<Self, AttachError> {
        let mut theirs = Vec::new();
        let mut output = |wanted: bool| wanted.then(|| wide_pipe(&mut theirs)).transpose();
        let stdout = output(config.stdout).map_err(AttachError::Shim)?;
        let stderr = output(config.stderr).map_err(AttachError::Shim)?;
        let call = AttachCall {
            container: container.to_owned(),
            stdin: config.stdin,
            stdout: config.stdout,
            stderr: config.stderr,
        };
        let reply = connection.call(Call::Attach(call), &theirs).await;
        drop(theirs);
        let (has_input, is_terminal) = match reply.map_err(AttachError::Shim)? {
            Reply::Attached {
                has_input,
                is_terminal,
            } => (has_input, is_terminal),
            Reply::Refused { refusal } => return Err(refused(refusal, pod_uid, container)),
            _ => return Err(AttachError::Shim(io::ErrorKind::InvalidData.into())),
        };
        let given = connection.take_fds().pop().map(terminal).transpose();
        let given = given.map_err(AttachError::Shim)?;
        let (ended, end) = watch::channel(None);
        // The task owns the connection: aborting it closes the connection, and that detaches.
        let attendant = tokio::spawn(async move {
            if let Ok(Reply::AttachEnded { end }) = connection.reply().await {
                let _ = ended.send(Some(end));
            }
        });
        let reader = |pipe: Option<_>| pipe.map(|fd| ExecReader::new(fd, end.clone()));
        Ok(Self {
            stdin: given.clone().filter(|_| has_input).map(ExecWriter::new),
            stdout: reader(stdout),
            stderr: reader(stderr),
            terminal: given.filter(|_| is_terminal),
            end,
            attendant: attendant.abort_handle(),
        })
    }

    /// Whether the container has a terminal.
    pub fn has_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    /// Changes the size of the container's terminal; nothing without one.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        match &self.terminal {
            Some(terminal) => size.apply(terminal),
            None => Ok(()),
        }
    }

    /// Waits for the container's end. Cancel safe.
    ///
    /// # Errors
    /// [`AttachError::TooSlow`]: the streams hold what had not been read by then, and nothing more.
    pub async fn wait(&mut self) -> Result<(), AttachError> {
        match self.end.wait_for(Option::is_some).await.map(|end| *end) {
            Ok(Some(AttachEnd::TooSlow)) => Err(AttachError::TooSlow),
            Ok(_) => Ok(()),
            Err(_) => Err(AttachError::Shim(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl Drop for AttachSession {
    fn drop(&mut self) {
        self.attendant.abort();
    }
}

fn wide_pipe(theirs: &mut Vec<OwnedFd>) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    let ours = pipe(theirs, End::Read)?;
    // A machine that does not allow it leaves a smaller pipe, and cuts off sooner.
    let _ = rustix::pipe::fcntl_setpipe_size(ours.get_ref(), WAITING_BYTES_MAX);
    Ok(ours)
}

fn refused(refusal: Refusal, pod_uid: &str, container: &str) -> AttachError {
    match refusal {
        Refusal::NotRunning | Refusal::Stopped => AttachError::NotRunning(container.to_owned()),
        Refusal::TooMany => AttachError::TooMany {
            container: container.to_owned(),
            pod_uid: pod_uid.to_owned(),
        },
        Refusal::Unsupported => AttachError::OldShim,
        Refusal::Setup { message } => AttachError::Failed(message),
        refusal => AttachError::Failed(format!("refused: {refusal:?}")),
    }
}
