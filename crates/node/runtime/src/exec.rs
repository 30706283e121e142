//! Commands in a running container.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::ExecError;

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
}

/// One output stream of a command. Not reading it stops the command once 64 KiB wait.
#[derive(Debug)]
pub struct ExecReader {}

/// The input of a command.
#[derive(Debug)]
pub struct ExecWriter {}

impl ExecSession {
    /// Changes the size of the terminal; nothing without one.
    pub fn resize(&self, _size: TerminalSize) -> io::Result<()> {
        Ok(())
    }

    /// Waits for the command's end: 0 to 255, or 128 + the signal. Cancel safe; read the streams at the
    /// same time, or the command may wait for you.
    pub async fn wait(&mut self) -> Result<i32, ExecError> {
        Err(ExecError::Timeout(Duration::ZERO))
    }
}

impl AsyncRead for ExecReader {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ExecWriter {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
