//! What the server asks of the node that runs a pod: its logs, a command inside it, its streams and its ports.

use std::{io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use hotmap_object::Status;
use jiff::Timestamp;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

/// Reaches the containers of a node. Implemented by whoever runs them.
pub trait NodeAccess: Send + Sync + 'static {
    /// The log of a container, from now on too if asked to follow.
    ///
    /// # Errors
    ///
    /// A `Status` for the client: 400 for a container that has not started, 404 for one that is not there.
    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, Status>>;

    /// Starts a command in a running container.
    ///
    /// # Errors
    ///
    /// A `Status` for the client: the command never started.
    fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecStreams, Status>>;

    /// Takes part in the streams of a running container: what it prints from now on, and what it reads.
    ///
    /// # Errors
    ///
    /// A `Status` for the client: nobody attached.
    fn attach(&self, request: AttachRequest) -> BoxFuture<'_, Result<ExecStreams, Status>>;

    /// The way to the ports of a running pod.
    ///
    /// # Errors
    ///
    /// A `Status` for the client: there is none.
    fn port_forward(&self, request: PortForwardRequest) -> BoxFuture<'_, Result<PortForward, Status>>;
}

/// A container whose streams are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Its uid.
    pub uid: String,
    /// The node it is bound to.
    pub node: String,
    /// Name of a container of the pod.
    pub container: String,
    /// Whether the client sends input.
    pub stdin: bool,
    /// Whether the client wants output.
    pub stdout: bool,
    /// Whether the client wants error output; never together with `tty`.
    pub stderr: bool,
    /// Whether the client's end is a terminal, whose sizes it tells.
    pub tty: bool,
}

/// A pod whose ports are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortForwardRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Its uid.
    pub uid: String,
    /// The node it is bound to.
    pub node: String,
}

/// Bytes both ways; shutting it down ends one of them.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// How the ports of a pod are reached.
pub enum PortForward {
    /// A connection at a time, by whoever speaks to the client.
    Ports(Arc<dyn PodPorts>),
    /// An agent speaks to the client itself: everything is passed on as it is.
    Agent(Box<dyn Duplex>),
}

impl std::fmt::Debug for PortForward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ports(_) => "Ports",
            Self::Agent(_) => "Agent",
        })
    }
}

/// The ports of one pod.
pub trait PodPorts: Send + Sync + 'static {
    /// Connects to a port on the pod's loopback.
    ///
    /// # Errors
    ///
    /// A sentence for the client.
    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Duplex>, String>>;
}

/// A log in pieces of any size. An error ends it; what was sent before stands.
pub type LogStream = BoxStream<'static, io::Result<Bytes>>;

/// Which lines of which log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Its uid: a pod re-created under the name is another one.
    pub uid: String,
    /// The node it is bound to.
    pub node: String,
    /// Name of a container of the pod, init containers included.
    pub container: String,
    /// Go on until the container ends or the client leaves.
    pub follow: bool,
    /// The log of the container's previous instance.
    pub previous: bool,
    /// Each line begins with its time, RFC 3339 with nanoseconds, and a space.
    pub timestamps: bool,
    /// Begin this many lines before the end.
    pub tail_lines: Option<u64>,
    /// Leave out lines older than this.
    pub since: Option<Timestamp>,
    /// Stop after this many bytes.
    pub limit_bytes: Option<u64>,
}

/// A command to run in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRequest {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Its uid.
    pub uid: String,
    /// The node it is bound to.
    pub node: String,
    /// Name of a container of the pod.
    pub container: String,
    /// Program and arguments; at least one.
    pub command: Vec<String>,
    /// Whether the client sends input.
    pub stdin: bool,
    /// Whether the client wants output.
    pub stdout: bool,
    /// Whether the client wants error output; never together with `tty`.
    pub stderr: bool,
    /// Whether the command gets a terminal.
    pub tty: bool,
}

/// A running command. Dropping it means that nobody listens any more.
pub struct ExecStreams {
    /// Takes input; shutting it down is the end of input. `None` where `stdin` was not asked for.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// Gives output. It is read to its end before the exit status is reported.
    pub stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Gives error output.
    pub stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Takes the terminal's sizes. `None` without a terminal.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// How the command ended.
    ///
    /// # Errors
    ///
    /// A `Status`: it could not be run to its end.
    pub exit: BoxFuture<'static, Result<ExitStatus, Status>>,
}

impl std::fmt::Debug for ExecStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExecStreams")
    }
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// How a command ended: the code as a shell sees it, 128 + n after signal n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitStatus(pub i32);
