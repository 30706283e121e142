//! `pods/exec` and `pods/attach`: a command's or a container's streams over one WebSocket.
//!
//! ```text
//!   client ──frames──▶ input ──▶ stdin, resize          one task per session; every step waits for the next one,
//!   client ◀──frames── queue ◀── stdout, stderr, exit    so a slow side holds up the command and nothing else
//! ```

use std::{io, pin::Pin, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use hotmap_object::Status;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{
    channels::{self, Received, STDERR, STDOUT},
    pod::PodFacts,
    websocket::Protocol,
};
use crate::{
    node_access::{AttachRequest, ExecRequest, ExecStreams},
    request::Query,
};

/// kubectl sends at most 32 KiB a frame; a larger one than this ends the session.
const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Output is read in pieces of this size at most.
pub(super) const OUTPUT_BYTES_MAX: usize = 32 * 1024;
/// Frames that wait for a slow client: with the piece size above at most 256 KiB a session.
pub(super) const QUEUE_FRAMES_MAX: usize = 8;

/// A session in which nothing is printed for so long is asked whether somebody is there.
const PING_AFTER: Duration = Duration::from_secs(10);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What the node is asked for.
///
/// # Errors
///
/// 400 for options that make no sense and for pods that no node has; texts follow `ValidatePodExecOptions` and
/// `pkg/registry/core/pod/strategy.go`, Kubernetes 1.36.
pub(crate) fn exec_request(pod: &Value, query: &Query) -> Result<ExecRequest, Status> {
    let facts = PodFacts::of(pod);
    let container = facts.container(query.text("container"))?;
    facts.require_node()?;
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return Err(Status::bad_request(format!(
            "cannot exec into a container in a completed pod; current phase is {}",
            pod["status"]["phase"].as_str().unwrap_or_default()
        )));
    }
    let command: Vec<String> = query.all("command").map(str::to_owned).collect();
    if command.is_empty() {
        return Err(Status::bad_request(
            "you must specify at least one command for the container",
        ));
    }
    let (stdin, stdout, stderr, tty) = wanted_streams(query, ["stdin", "stdout", "stderr"])?;
    Ok(ExecRequest {
        namespace: facts.namespace.to_owned(),
        pod: facts.name.to_owned(),
        uid: facts.uid.to_owned(),
        node: facts.node.to_owned(),
        container: container.to_owned(),
        command,
        stdin,
        stdout,
        stderr,
        tty,
    })
}

/// What the node is asked for by who attaches. Whether there is a terminal is the container's own business.
///
/// # Errors
///
/// As [`exec_request`].
pub(crate) fn attach_request(pod: &Value, query: &Query) -> Result<AttachRequest, Status> {
    let facts = PodFacts::of(pod);
    let container = facts.container(query.text("container"))?;
    facts.require_node()?;
    let (stdin, stdout, stderr, tty) = wanted_streams(query, ["stdin", "stdout", "stderr"])?;
    Ok(AttachRequest {
        namespace: facts.namespace.to_owned(),
        pod: facts.name.to_owned(),
        uid: facts.uid.to_owned(),
        node: facts.node.to_owned(),
        container: container.to_owned(),
        stdin,
        stdout,
        stderr,
        tty,
    })
}

/// Which of the streams a client wants, by the parameters that name them, and whether its end is a terminal.
///
/// # Errors
///
/// 400 for none.
pub(crate) fn wanted_streams(query: &Query, names: [&str; 3]) -> Result<(bool, bool, bool, bool), Status> {
    let [stdin, stdout, stderr] = names.map(|name| query.flag(name));
    if !stdin && !stdout && !stderr {
        return Err(Status::bad_request(
            "you must specify at least 1 of stdin, stdout, stderr",
        ));
    }
    let tty = query.flag("tty");
    // A terminal has one output.
    Ok((stdin, stdout, stderr && !tty, tty))
}

/// Carries a command's streams until it has ended and all was sent, or the client has left.
///
/// What kept the command from starting is said here and not in place of the upgrade: clients take a refused upgrade
/// for a server without WebSockets, try SPDY, and show what became of that.
pub(crate) async fn session(upgrade: OnUpgrade, protocol: Protocol, started: Result<ExecStreams, Status>) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "the client left before its session began"),
    };
    let socket =
        WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(socket_config())).await;
    match started {
        Ok(running) => carry(socket, protocol, running).await,
        Err(status) => refuse(socket, status).await,
    }
}

/// The limits of a session, whichever side of it we are.
pub(crate) fn socket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_frame_size(Some(FRAME_BYTES_MAX))
        .max_message_size(Some(FRAME_BYTES_MAX))
        .max_write_buffer_size(4 * OUTPUT_BYTES_MAX)
        .write_buffer_size(0)
}

async fn refuse(socket: Socket, status: Status) {
    let (to_client, _) = socket.split();
    let (queue, queued) = mpsc::channel(1);
    let _ = queue.send(channels::ended(&Err(status))).await;
    drop(queue);
    if let Err(error) = send(to_client, queued).await {
        tracing::debug!(%error, "the client of a session left");
    }
}

async fn carry(socket: Socket, protocol: Protocol, running: ExecStreams) {
    let (to_client, from_client) = socket.split();
    let (queue, queued) = mpsc::channel(QUEUE_FRAMES_MAX);
    let ExecStreams {
        stdin,
        stdout,
        stderr,
        resize,
        exit,
    } = running;
    let sending = send(to_client, queued);
    let receiving = receive(from_client, protocol, stdin, resize);
    let producing = async move {
        // The exit is waited for beside the outputs: until then it also takes the terminal's sizes.
        let ((), (), exit) = tokio::join!(
            output(STDOUT, stdout, &queue),
            output(STDERR, stderr, &queue),
            exit
        );
        // A client that has left needs no exit code.
        let _ = queue.send(channels::ended(&exit)).await;
    };
    let talking = async { tokio::join!(producing, sending) };
    tokio::select! {
        (_, sent) = talking => {
            if let Err(error) = sent {
                tracing::debug!(%error, "the client of a session left");
            }
        }
        () = receiving => tracing::debug!("the client of a session left"),
    }
}

/// Sends what is queued, then says goodbye. A client that has left while nothing is printed, and while its input is not
/// taken either, shows by the second ping.
pub(super) async fn send(
    mut to_client: SplitSink<Socket, Message>,
    mut queued: mpsc::Receiver<Bytes>,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    loop {
        match timeout(PING_AFTER, queued.recv()).await {
            Ok(Some(frame)) => to_client.send(Message::Binary(frame)).await?,
            Ok(None) => break,
            Err(_) => to_client.send(Message::Ping(Bytes::new())).await?,
        }
    }
    let goodbye = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    to_client.send(Message::Close(Some(goodbye))).await?;
    to_client.close().await
}

/// Takes input and sizes until the client leaves. Pings are answered while it reads.
async fn receive(
    mut from_client: SplitStream<Socket>,
    protocol: Protocol,
    mut stdin: Option<Pin<Box<dyn tokio::io::AsyncWrite + Send>>>,
    resize: Option<mpsc::Sender<crate::node_access::TerminalSize>>,
) {
    while let Some(Ok(message)) = from_client.next().await {
        let frame = match message {
            Message::Binary(frame) => frame,
            Message::Text(text) => text.into(),
            Message::Close(_) => return,
            _ => continue,
        };
        match channels::read(frame, protocol) {
            Received::Input(data) => {
                if let Some(input) = &mut stdin
                    && let Err(error) = write(input, &data).await
                {
                    // The command reads no more: what follows is thrown away, as a shell's pipe would.
                    tracing::debug!(%error, "a command closed its input");
                    stdin = None;
                }
            }
            Received::EndOfInput => {
                if let Some(mut input) = stdin.take() {
                    // It may have ended already.
                    let _ = input.shutdown().await;
                }
            }
            Received::Resize(size) => {
                if let Some(resize) = &resize {
                    // Nobody takes sizes any more: the command has ended.
                    let _ = resize.send(size).await;
                }
            }
            Received::Nothing => {}
        }
    }
}

async fn write(input: &mut Pin<Box<dyn tokio::io::AsyncWrite + Send>>, data: &[u8]) -> io::Result<()> {
    input.write_all(data).await?;
    input.flush().await
}

/// Queues an output to its end; an error is an end.
async fn output(channel: u8, source: Option<Pin<Box<dyn AsyncRead + Send>>>, queue: &mpsc::Sender<Bytes>) {
    let Some(mut source) = source else { return };
    let mut piece = BytesMut::with_capacity(OUTPUT_BYTES_MAX);
    while let Ok(1..) = source.read_buf(&mut piece).await {
        if queue.send(channels::frame(channel, &piece)).await.is_err() {
            return;
        }
        piece.clear();
        piece.reserve(OUTPUT_BYTES_MAX);
    }
}
