//! Lets the server reach the node of this process: logs, commands, streams and ports.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
};

use futures_util::{FutureExt, future::BoxFuture};
use hotmap_agent::{Access, LogError, LogOptions};
use hotmap_object::{GroupResource, Status};
use hotmap_runtime::{AttachConfig, AttachError, AttachSession, ExecConfig, ExecError, ExecSession};
use hotmap_server::{
    AttachRequest, Duplex, ExecRequest, ExecStreams, ExitStatus, LogRequest, LogStream, NodeAccess, PodPorts,
    PortForward, PortForwardRequest, TerminalSize,
};
use tokio::sync::mpsc;

const PODS: GroupResource = GroupResource::fixed("", "pods");
/// Sizes of a terminal that wait; a user does not drag faster.
const RESIZES_MAX: usize = 8;

/// The node of this process; empty until it has started.
#[derive(Default)]
pub(crate) struct LocalNode(OnceLock<Access>);

impl LocalNode {
    /// A node that is there already.
    pub(crate) fn of(access: Access) -> Self {
        Self(OnceLock::from(access))
    }

    /// The node is there from now on.
    pub(crate) fn attach(&self, access: Access) {
        assert!(self.0.set(access).is_ok(), "one node is started");
    }

    fn access(&self) -> Result<&Access, Status> {
        let starting =
            || Status::new(503, "ServiceUnavailable", "the node is starting; try again").retry_after(1);
        self.0.get().ok_or_else(starting)
    }
}

impl NodeAccess for LocalNode {
    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, Status>> {
        let options = LogOptions {
            follow: request.follow,
            tail_lines: request.tail_lines,
            since: request.since,
            timestamps: request.timestamps,
            limit_bytes: request.limit_bytes,
            stream: None,
        };
        let read = move || {
            let access = self.access()?;
            let uid = uid(access, request.uid, &request.namespace, &request.pod)?;
            let log = access.logs(&uid, &request.container, request.previous, options);
            log.map_err(|error| log_status(&error, &request.pod))
        };
        async move { read() }.boxed()
    }

    fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        let config = ExecConfig {
            argv: request.command,
            tty: request.tty,
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
            size: None,
        };
        async move {
            let access = self.access()?;
            let uid = uid(access, request.uid, &request.namespace, &request.pod)?;
            let session = access.exec(&uid, &request.container, config).await;
            session
                .map(|session| streams(session, request.tty))
                .map_err(|error| exec_status(&error))
        }
        .boxed()
    }

    fn attach(&self, request: AttachRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        let config = AttachConfig {
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
        };
        async move {
            let access = self.access()?;
            let uid = uid(access, request.uid, &request.namespace, &request.pod)?;
            let session = access.attach(&uid, &request.container, config).await;
            session.map(attached).map_err(|error| attach_status(&error))
        }
        .boxed()
    }

    fn port_forward(&self, request: PortForwardRequest) -> BoxFuture<'_, Result<PortForward, Status>> {
        let find = move || {
            let access = self.access()?;
            let uid = uid(access, request.uid, &request.namespace, &request.pod)?;
            if !access.has_ports(&uid) {
                let message = format!("pod {} is not running, so none of its ports is open", request.pod);
                return Err(Status::bad_request(message));
            }
            let access = access.clone();
            Ok(PortForward::Ports(Arc::new(Ports { access, uid })))
        };
        async move { find() }.boxed()
    }
}

/// The ports of a pod of this node.
struct Ports {
    access: Access,
    uid: String,
}

impl PodPorts for Ports {
    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Duplex>, String>> {
        async move {
            let connected = self.access.connect(&self.uid, port).await;
            connected
                .map(|stream| Box::new(stream) as Box<dyn Duplex>)
                .map_err(|error| error.to_string())
        }
        .boxed()
    }
}

/// The pod's uid; who does not say one means the pod that has the name now.
fn uid(access: &Access, asked: String, namespace: &str, pod: &str) -> Result<String, Status> {
    match asked.is_empty() {
        false => Ok(asked),
        true => access
            .uid_of(namespace, pod)
            .ok_or_else(|| Status::not_found(&PODS, pod)),
    }
}

fn streams(mut session: ExecSession, tty: bool) -> ExecStreams {
    let (sizes, mut resizes) = mpsc::channel::<TerminalSize>(RESIZES_MAX);
    let stdin = session.stdin.take();
    let stdout = session.stdout.take();
    let stderr = session.stderr.take();
    let exit = async move {
        loop {
            tokio::select! {
                ended = session.wait() => return ended.map(ExitStatus).map_err(|error| exec_status(&error)),
                Some(size) = resizes.recv() => told(session.resize(runtime_size(size))),
            }
        }
    };
    ExecStreams {
        stdin: stdin.map(|stdin| Box::pin(stdin) as _),
        stdout: stdout.map(|stdout| Box::pin(stdout) as _),
        stderr: stderr.map(|stderr| Box::pin(stderr) as _),
        resize: tty.then_some(sizes),
        exit: Box::pin(exit) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>,
    }
}

/// A part in a container's streams ends well when the container does, however that ended: its status tells.
fn attached(mut session: AttachSession) -> ExecStreams {
    let (sizes, mut resizes) = mpsc::channel::<TerminalSize>(RESIZES_MAX);
    let resize = session.has_terminal().then_some(sizes);
    let stdin = session.stdin.take();
    let stdout = session.stdout.take();
    let stderr = session.stderr.take();
    let exit = async move {
        loop {
            tokio::select! {
                ended = session.wait() => {
                    return ended.map(|()| ExitStatus(0)).map_err(|error| attach_status(&error));
                }
                Some(size) = resizes.recv() => told(session.resize(runtime_size(size))),
            }
        }
    };
    ExecStreams {
        stdin: stdin.map(|stdin| Box::pin(stdin) as _),
        stdout: stdout.map(|stdout| Box::pin(stdout) as _),
        stderr: stderr.map(|stderr| Box::pin(stderr) as _),
        resize,
        exit: Box::pin(exit),
    }
}

fn runtime_size(size: TerminalSize) -> hotmap_runtime::TerminalSize {
    hotmap_runtime::TerminalSize {
        columns: size.width,
        rows: size.height,
    }
}

fn told(resized: std::io::Result<()>) {
    if let Err(error) = resized {
        tracing::debug!(%error, "terminal not resized");
    }
}

fn log_status(error: &LogError, pod: &str) -> Status {
    match error {
        LogError::NoPod(_) => Status::not_found(&PODS, pod),
        LogError::Waiting { .. } | LogError::NoPrevious { .. } => Status::bad_request(error.to_string()),
    }
}

fn attach_status(error: &AttachError) -> Status {
    let sentence = error.to_string();
    match error {
        AttachError::NoSandbox(_) | AttachError::NotRunning(_) | AttachError::OldShim => {
            Status::bad_request(sentence)
        }
        AttachError::TooMany { .. } => Status::too_many_requests(sentence, 1),
        AttachError::TooSlow => Status::new(503, "ServiceUnavailable", sentence),
        error => Status::internal(error),
    }
}

fn exec_status(error: &ExecError) -> Status {
    match error {
        ExecError::NoSandbox(_) | ExecError::NotRunning(_) | ExecError::Invalid(_) => {
            Status::bad_request(error.to_string())
        }
        ExecError::TooMany(_) => Status::too_many_requests(error.to_string(), 1),
        error => Status::internal(error),
    }
}
