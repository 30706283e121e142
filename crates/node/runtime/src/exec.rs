//! Commands in a running container.
//!
//! Their streams are pipes, or a terminal, of the caller's own: the shim hands them to the command and never sees a byte. So
//! they are binary-safe, and who does not read stops the command.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::error::ExecError;
use crate::protocol::{Call, ExecCall, Refusal, Reply};
use crate::runtime::Connection;

/// A command to run in a container.
#[derive(Debug, Clone, Default)]
pub struct ExecConfig {
    /// The program and its arguments; looked up inside the container with its `PATH`.
    pub argv: Vec<String>,
    /// Whether the command gets a terminal; its output is then all stdout.
    pub tty: bool,
    /// Whether stdin is connected; otherwise it is `/dev/null`.
    pub stdin: bool,
    /// Whether stdout is connected.
    pub stdout: bool,
    /// Whether stderr is connected; never with a terminal.
    pub stderr: bool,
    /// The terminal's first size.
    pub size: Option<TerminalSize>,
}

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TerminalSize {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

impl TerminalSize {
    pub(crate) fn apply(self, terminal: &AsyncFd<OwnedFd>) -> io::Result<()> {
        let size = rustix::termios::Winsize {
            ws_row: self.rows,
            ws_col: self.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(rustix::termios::tcsetwinsize(terminal.get_ref(), size)?)
    }
}

/// What [`Runtime::exec_sync`](crate::Runtime::exec_sync) brings back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSyncOutput {
    /// 0 to 255, or 128 + the signal.
    pub exit_code: i32,
    /// The first bytes of stdout, up to the limit of the call.
    pub stdout: Vec<u8>,
    /// The first bytes of stderr, up to the limit of the call.
    pub stderr: Vec<u8>,
}

/// A running command. Dropping it kills the command.
#[derive(Debug)]
pub struct ExecSession {
    /// The command's stdin; drop or shut it down to close it.
    pub stdin: Option<ExecWriter>,
    /// The command's stdout, or everything it prints on its terminal. Ends when the command has ended and what it
    /// had written is read, even if a process it left behind holds the stream open.
    pub stdout: Option<ExecReader>,
    /// The command's stderr.
    pub stderr: Option<ExecReader>,
    terminal: Option<Arc<AsyncFd<OwnedFd>>>,
    end: watch::Receiver<Option<i32>>,
    attendant: AbortHandle,
}

impl ExecSession {
    /// Starts the command over a connection of its own.
    pub(crate) async fn start(
        mut connection: Connection,
        pod_uid: &str,
        container: &str,
        config: ExecConfig,
    ) -> Result<Self, ExecError> {
        let wants = |wanted: bool| wanted && !config.tty;
        let [stdin, stdout, stderr] = [wants(config.stdin), wants(config.stdout), wants(config.stderr)];
        let mut theirs = Vec::new();
        let input = stdin
            .then(|| pipe(&mut theirs, End::Write))
            .transpose()
            .map_err(ExecError::Shim)?;
        let output = stdout
            .then(|| pipe(&mut theirs, End::Read))
            .transpose()
            .map_err(ExecError::Shim)?;
        let errors = stderr
            .then(|| pipe(&mut theirs, End::Read))
            .transpose()
            .map_err(ExecError::Shim)?;
        let call = ExecCall {
            container: container.to_owned(),
            argv: config.argv,
            tty: config.tty,
            stdin,
            stdout,
            stderr,
            size: config.size,
        };
        let reply = connection
            .call(Call::Exec(call), &theirs)
            .await
            .map_err(ExecError::Shim)?;
        drop(theirs);
        match reply {
            Reply::ExecStarted => {}
            Reply::Refused { refusal } => return Err(refused(refusal, pod_uid, container)),
            _ => return Err(ExecError::Shim(io::ErrorKind::InvalidData.into())),
        }
        let terminal = connection
            .take_fds()
            .pop()
            .map(terminal)
            .transpose()
            .map_err(ExecError::Shim)?;
        let (ended, end) = watch::channel(None);
        // The task owns the connection: aborting it closes the connection, and that kills the command.
        let attendant = tokio::spawn(async move {
            if let Ok(Reply::ExecEnded { exit_code }) = connection.reply().await {
                let _ = ended.send(Some(exit_code));
            }
        });
        let reader = |source: &Option<Arc<AsyncFd<OwnedFd>>>| {
            source.clone().map(|fd| ExecReader::new(fd, end.clone()))
        };
        Ok(Self {
            stdin: input
                .or_else(|| terminal.clone().filter(|_| config.stdin))
                .map(ExecWriter::new),
            stdout: reader(&output.or_else(|| terminal.clone())),
            stderr: reader(&errors),
            terminal,
            end,
            attendant: attendant.abort_handle(),
        })
    }

    /// Changes the size of the terminal; nothing without one.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        match &self.terminal {
            Some(terminal) => size.apply(terminal),
            None => Ok(()),
        }
    }

    /// Waits for the command's end: 0 to 255, or 128 + the signal. Cancel safe; read the streams at the
    /// same time, or the command may wait for you.
    pub async fn wait(&mut self) -> Result<i32, ExecError> {
        let gone = || ExecError::Shim(io::ErrorKind::UnexpectedEof.into());
        let code = *self.end.wait_for(Option::is_some).await.map_err(|_| gone())?;
        code.ok_or_else(gone)
    }
}

impl Drop for ExecSession {
    fn drop(&mut self) {
        self.attendant.abort();
    }
}

fn refused(refusal: Refusal, pod_uid: &str, container: &str) -> ExecError {
    match refusal {
        Refusal::NotRunning | Refusal::Stopped => ExecError::NotRunning(container.to_owned()),
        Refusal::TooMany => ExecError::TooMany(pod_uid.to_owned()),
        Refusal::Exec { message, exit_code } => ExecError::Exec { message, exit_code },
        Refusal::Invalid { message } => ExecError::Invalid(message),
        Refusal::Setup { message } | Refusal::Unavailable { message } => ExecError::Setup(message),
        Refusal::Unsupported => ExecError::Invalid("the pod's shim is older and cannot do this".to_owned()),
        Refusal::Exists | Refusal::Running | Refusal::Privileged => {
            ExecError::Setup(format!("refused: {refusal:?}"))
        }
    }
}

pub(crate) enum End {
    Read,
    Write,
}

/// A pipe whose named end is ours; the other goes to the command.
pub(crate) fn pipe(theirs: &mut Vec<OwnedFd>, ours: End) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (own, other) = match ours {
        End::Read => (read, write),
        End::Write => (write, read),
    };
    theirs.push(other);
    terminal(own)
}

/// Our end of a pipe or terminal, without blocking.
pub(crate) fn terminal(fd: OwnedFd) -> io::Result<Arc<AsyncFd<OwnedFd>>> {
    rustix::io::ioctl_fionbio(&fd, true)?;
    // SAFETY: an OwnedFd is the same open descriptor for as long as it lives, and AsyncFd lends it out only by reference.
    let registered = unsafe { AsyncFd::register(fd) };
    Ok(Arc::new(registered?))
}

/// One output stream of a command. Not reading it stops the command once 64 KiB wait.
pub struct ExecReader {
    fd: Arc<AsyncFd<OwnedFd>>,
    end: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    ended: bool,
}

impl std::fmt::Debug for ExecReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecReader")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl ExecReader {
    /// What is read after the end is what was written before it.
    pub(crate) fn new<T: Send + Sync + 'static>(
        fd: Arc<AsyncFd<OwnedFd>>,
        mut end: watch::Receiver<Option<T>>,
    ) -> Self {
        let end = Box::pin(async move {
            let _ = end.wait_for(Option::is_some).await;
        });
        Self {
            fd,
            end,
            ended: false,
        }
    }

    /// `None` when nothing is there now.
    fn read_now(&self, buffer: &mut ReadBuf<'_>) -> io::Result<Option<()>> {
        match rustix::io::read(self.fd.get_ref(), buffer.initialize_unfilled()) {
            Ok(length) => {
                buffer.advance(length);
                Ok(Some(()))
            }
            // A terminal whose other end nobody holds any more.
            Err(Errno::IO) => Ok(Some(())),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsyncRead for ExecReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if !self.ended && self.end.as_mut().poll(context).is_ready() {
                self.ended = true;
            }
            if self.ended {
                // What it had written is in the pipe by now; that the reactor has not said so yet does not matter.
                return Poll::Ready(self.read_now(buffer).map(|_| ()));
            }
            let fd = Arc::clone(&self.fd);
            let mut ready = ready!(fd.poll_read_ready(context))?;
            match self.read_now(buffer) {
                Ok(None) => ready.clear_ready(),
                Ok(Some(())) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// The input of a command.
#[derive(Debug)]
pub struct ExecWriter {
    fd: Option<Arc<AsyncFd<OwnedFd>>>,
}

impl ExecWriter {
    pub(crate) fn new(fd: Arc<AsyncFd<OwnedFd>>) -> Self {
        Self { fd: Some(fd) }
    }
}

impl AsyncWrite for ExecWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Some(fd) = &self.fd else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        loop {
            let mut ready = ready!(fd.poll_write_ready(context))?;
            match rustix::io::write(fd.get_ref(), bytes) {
                Ok(length) => return Poll::Ready(Ok(length)),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Closes the command's stdin; a terminal stays open.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fd = None;
        Poll::Ready(Ok(()))
    }
}
