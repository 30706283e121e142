//! Lets the server reach the node of this process: logs and commands.

use std::{future::Future, sync::OnceLock};

use futures_util::{FutureExt, future::BoxFuture};
use hotmap_agent::{Access, LogError, LogOptions};
use hotmap_object::{GroupResource, Status};
use hotmap_runtime::{ExecConfig, ExecError, ExecSession};
use hotmap_server::{ExecRequest, ExecStreams, ExitStatus, LogRequest, LogStream, NodeAccess, TerminalSize};
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
                Some(size) = resizes.recv() => resize(&session, size),
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

fn resize(session: &ExecSession, size: TerminalSize) {
    let size = hotmap_runtime::TerminalSize {
        columns: size.width,
        rows: size.height,
    };
    if let Err(error) = session.resize(size) {
        tracing::debug!(%error, "terminal not resized");
    }
}

fn log_status(error: &LogError, pod: &str) -> Status {
    match error {
        LogError::NoPod(_) => Status::not_found(&PODS, pod),
        LogError::Waiting { .. } | LogError::NoPrevious { .. } => Status::bad_request(error.to_string()),
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
