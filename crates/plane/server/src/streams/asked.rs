//! A command's streams over a WebSocket that we asked for: the other side of [`super::session`].
//!
//! ```text
//!   ExecStreams.stdin ──▶ pipe ──▶ frames ──▶ node        the pipes hold one piece each: whoever is slow holds
//!   ExecStreams.stdout ◀─ pipe ◀── frames ◀── node        up the command and nothing else
//! ```

use std::pin::Pin;

use bytes::Bytes;
use futures_util::{FutureExt, SinkExt, StreamExt, stream::SplitStream};
use hotmap_object::Status;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex},
    sync::{mpsc, oneshot},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};
use tokio_util::task::AbortOnDropHandle;

use super::{
    channels::{self, ERROR, STDERR, STDIN, STDOUT},
    exec::{OUTPUT_BYTES_MAX, QUEUE_FRAMES_MAX},
};
use crate::node_access::{ExecStreams, ExitStatus, TerminalSize};

/// Sizes of a terminal that wait; a user does not drag faster.
const RESIZES_MAX: usize = 8;

type Exit = Result<ExitStatus, Status>;

/// Which streams were asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
}

/// The streams of what runs at the other end of `socket`. Dropping them ends the session.
pub(crate) fn running<S>(socket: WebSocketStream<S>, wanted: Wanted) -> ExecStreams
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut to_node, from_node) = socket.split();
    let (frames, mut queued) = mpsc::channel::<Bytes>(QUEUE_FRAMES_MAX);
    let sending = AbortOnDropHandle::new(tokio::spawn(async move {
        while let Some(frame) = queued.recv().await {
            if to_node.send(Message::Binary(frame)).await.is_err() {
                return;
            }
        }
    }));
    let (stdin, input) = pipe(wanted.stdin);
    let (stdout, output) = pipe(wanted.stdout);
    let (stderr, error_output) = pipe(wanted.stderr);
    let (exit_sender, exit) = oneshot::channel();
    let (sizes, resizes) = mpsc::channel(RESIZES_MAX);
    let receiving = AbortOnDropHandle::new(tokio::spawn(receive(
        from_node,
        output,
        error_output,
        exit_sender,
    )));
    let typing = AbortOnDropHandle::new(tokio::spawn(forward(input, resizes, frames)));
    let exit = async move {
        let _tasks = (sending, receiving, typing);
        exit.await.unwrap_or_else(|_| {
            Err(Status::internal(
                "the node ended the session and did not say how the command ended",
            ))
        })
    };
    ExecStreams {
        stdin: stdin.map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncWrite + Send>>),
        stdout: stdout.map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncRead + Send>>),
        stderr: stderr.map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncRead + Send>>),
        resize: wanted.tty.then_some(sizes),
        exit: exit.boxed(),
    }
}

/// Two ends, if that stream was asked for.
fn pipe(is_wanted: bool) -> (Option<DuplexStream>, Option<DuplexStream>) {
    let ends = is_wanted.then(|| duplex(OUTPUT_BYTES_MAX));
    ends.unzip()
}

/// Carries input and sizes to the node until nobody has any more.
async fn forward(
    input: Option<DuplexStream>,
    mut resizes: mpsc::Receiver<TerminalSize>,
    frames: mpsc::Sender<Bytes>,
) {
    let typed = async {
        let Some(mut input) = input else { return };
        let mut piece = vec![0; OUTPUT_BYTES_MAX];
        loop {
            // Reading from a pipe in memory does not fail.
            let frame = match input.read(&mut piece).await {
                Ok(0) | Err(_) => channels::end_of_input(),
                Ok(read) => channels::frame(STDIN, &piece[..read]),
            };
            let is_end = frame == channels::end_of_input();
            if frames.send(frame).await.is_err() || is_end {
                return;
            }
        }
    };
    let sized = async {
        while let Some(size) = resizes.recv().await {
            if frames.send(channels::resized(size)).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(typed, sized);
}

/// Takes output until the node says how the command ended.
async fn receive<S>(
    mut from_node: SplitStream<WebSocketStream<S>>,
    mut output: Option<DuplexStream>,
    mut error_output: Option<DuplexStream>,
    exit: oneshot::Sender<Exit>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ended = loop {
        let frame = match from_node.next().await {
            Some(Ok(Message::Binary(frame))) => frame,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Close(_))) | None => {
                break Err(Status::internal(
                    "the node ended the session and did not say how the command ended",
                ));
            }
            Some(Err(error)) => {
                break Err(Status::internal(format_args!(
                    "the session with the node broke: {error}"
                )));
            }
        };
        let Some((channel, data)) = frame.split_first() else {
            continue;
        };
        let pipe = match *channel {
            STDOUT => &mut output,
            STDERR => &mut error_output,
            ERROR => break channels::exit(data),
            _ => continue,
        };
        // A reader that has left wants no more of this stream; the exit code still counts.
        if let Some(open) = pipe
            && open.write_all(data).await.is_err()
        {
            *pipe = None;
        }
    };
    // Nobody may wait for it any more.
    let _ = exit.send(ended);
}
