//! `pods/portforward`: any number of connections to a pod's ports, over SPDY in one WebSocket.
//!
//! ```text
//!   client ── data 3 ──▶ reader ──▶ queue of the connection ──▶ pod       a connection is two streams that name the same
//!   client ◀─ data 3 ─── frames ◀── read by the connection ◀─── pod       request: `data`, and `error`, which ends last and
//!   client ◀─ error 1 ── frames ◀── what came of it                       empty if all went well
//! ```
//!
//! As upstream's nodes do it (`cri-streaming/pkg/streaming/portforward/httpstream.go`, Kubernetes 1.36). Nothing here holds
//! more than a few pieces of 32 KiB for a side that does not read; as upstream, a connection whose pod does not read holds up
//! the others of its session.

use std::{collections::HashMap, io, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream::SplitStream};
use hotmap_object::Status;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, copy_bidirectional, split},
    sync::mpsc,
    task::JoinSet,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};
use tokio_util::sync::CancellationToken;

use super::{
    exec::{OUTPUT_BYTES_MAX, QUEUE_FRAMES_MAX, send, socket_config},
    pod::PodFacts,
    spdy::{self, Frame, FrameReader, ReplyWriter, ResetReason, SpdyError},
};
use crate::node_access::{Duplex, PodPorts, PortForward, PortForwardRequest};

/// Streams at once: two for each connection, and a browser opens a few dozen of these.
const STREAMS_MAX: usize = 1_024;
/// Pieces that wait for the pod, of each connection.
const WAITING_PIECES_MAX: usize = 8;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What the node is asked for.
///
/// # Errors
///
/// 400 for a pod that no node has.
pub(crate) fn port_forward_request(pod: &Value) -> Result<PortForwardRequest, Status> {
    let facts = PodFacts::of(pod);
    facts.require_node()?;
    Ok(PortForwardRequest {
        namespace: facts.namespace.to_owned(),
        pod: facts.name.to_owned(),
        uid: facts.uid.to_owned(),
        node: facts.node.to_owned(),
    })
}

/// Carries connections until the client has left.
pub(crate) async fn port_forward_session(upgrade: OnUpgrade, request: PortForwardRequest, way: PortForward) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => TokioIo::new(upgraded),
        Err(error) => return tracing::debug!(%error, "the client left before its session began"),
    };
    let ports = match way {
        PortForward::Ports(ports) => ports,
        PortForward::Agent(mut agent) => {
            let mut client = upgraded;
            if let Err(error) = copy_bidirectional(&mut client, &mut agent).await {
                tracing::debug!(%error, "a tunnel to an agent broke");
            }
            return;
        }
    };
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, Some(socket_config())).await;
    let (to_client, from_client) = socket.split();
    let (frames, queued) = mpsc::channel(QUEUE_FRAMES_MAX);
    let session = Session {
        pod: Arc::new(request),
        ports,
        frames,
        replies: ReplyWriter::new(),
        streams: HashMap::new(),
        halves: HashMap::new(),
        connections: JoinSet::new(),
        newest: 0,
    };
    // Whoever ends first ends the other: with the session go its connections.
    let ended = tokio::select! {
        ended = session.run(from_client) => ended,
        sent = send(to_client, queued) => sent.map_err(|error| Ended::Left(error.to_string())),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "the client of forwarded ports left");
    }
}

/// Why a session ends.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Left(String),
    #[error("the client sent {0}")]
    Broken(#[from] SpdyError),
}

/// One client.
struct Session {
    pod: Arc<PortForwardRequest>,
    ports: Arc<dyn PodPorts>,
    frames: mpsc::Sender<Bytes>,
    replies: ReplyWriter,
    /// What is open, by number.
    streams: HashMap<u32, Stream>,
    /// Connections of which one stream has come, by the name of their request.
    halves: HashMap<String, Half>,
    /// Each ends with the numbers of its streams.
    connections: JoinSet<[u32; 2]>,
    newest: u32,
}

enum Stream {
    Error,
    Data {
        /// Gone once the client has said all.
        to_pod: Option<mpsc::Sender<Bytes>>,
        is_reset: CancellationToken,
    },
}

#[derive(Default)]
struct Half {
    error: Option<u32>,
    data: Option<Data>,
}

/// The data stream of a connection to come.
struct Data {
    stream: u32,
    port: u16,
    from_client: mpsc::Receiver<Bytes>,
    is_reset: CancellationToken,
}

impl Session {
    async fn run(mut self, mut from_client: SplitStream<Socket>) -> Result<(), Ended> {
        let mut reader = FrameReader::new();
        loop {
            let message = tokio::select! {
                message = from_client.next() => message,
                Some(ended) = self.connections.join_next() => {
                    // A connection that panicked has no streams to name; they go with the session.
                    for stream in ended.into_iter().flatten() {
                        self.streams.remove(&stream);
                    }
                    continue;
                }
            };
            match message {
                Some(Ok(Message::Binary(bytes))) => reader.extend(&bytes),
                Some(Ok(Message::Close(_))) | None => return Ok(()),
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Err(Ended::Left(error.to_string())),
            }
            while let Some(frame) = reader.next_frame()? {
                self.take(frame).await;
            }
        }
    }

    async fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Open {
                stream,
                is_finished,
                headers,
            } => self.open(stream, is_finished, &headers).await,
            Frame::Data {
                stream,
                is_last,
                data,
            } => {
                let Some(Stream::Data { to_pod, .. }) = self.streams.get_mut(&stream) else {
                    return;
                };
                if let Some(open) = to_pod.as_ref().filter(|_| !data.is_empty()) {
                    // A connection that has ended takes no more.
                    let _ = open.send(data).await;
                }
                if is_last {
                    *to_pod = None;
                }
            }
            Frame::Reset { stream } => {
                if let Some(Stream::Data { to_pod, is_reset }) = self.streams.get_mut(&stream) {
                    *to_pod = None;
                    is_reset.cancel();
                }
            }
            // Ours would be even.
            Frame::Ping(id) if id % 2 == 1 => self.send(spdy::ping(id)).await,
            Frame::Ping(_) | Frame::GoAway | Frame::Other => {}
        }
    }

    async fn open(&mut self, stream: u32, is_finished: bool, headers: &[(String, String)]) {
        if stream.is_multiple_of(2) || stream <= self.newest {
            return self.send(spdy::reset(stream, ResetReason::Protocol)).await;
        }
        self.newest = stream;
        if self.streams.len() >= STREAMS_MAX {
            return self.send(spdy::reset(stream, ResetReason::Refused)).await;
        }
        let header = |name: &str| {
            let mut named = headers.iter().filter(|(held, _)| held == name);
            named.next().map(|(_, value)| value.as_str())
        };
        let port = header("port").and_then(|port| port.parse().ok());
        let (Some(kind), Some(request), Some(port @ 1..)) = (header("streamtype"), header("requestid"), port)
        else {
            return self.send(spdy::reset(stream, ResetReason::Protocol)).await;
        };
        let half = self.halves.entry(request.to_owned()).or_default();
        match kind {
            "error" if half.error.is_none() => {
                half.error = Some(stream);
                self.streams.insert(stream, Stream::Error);
            }
            "data" if half.data.is_none() => {
                let (to_pod, from_client) = mpsc::channel(WAITING_PIECES_MAX);
                let is_reset = CancellationToken::new();
                half.data = Some(Data {
                    stream,
                    port,
                    from_client,
                    is_reset: is_reset.clone(),
                });
                let to_pod = (!is_finished).then_some(to_pod);
                self.streams.insert(stream, Stream::Data { to_pod, is_reset });
            }
            _ => return self.send(spdy::reset(stream, ResetReason::Protocol)).await,
        }
        let reply = self.replies.reply(stream);
        self.send(reply).await;
        self.begin(request);
    }

    /// Starts a connection that has both streams.
    fn begin(&mut self, request: &str) {
        let is_whole = |half: &Half| half.error.is_some() && half.data.is_some();
        if !self.halves.get(request).is_some_and(is_whole) {
            return;
        }
        let Some(Half {
            error: Some(error),
            data: Some(data),
        }) = self.halves.remove(request)
        else {
            return;
        };
        let connection = Connection {
            pod: self.pod.clone(),
            ports: self.ports.clone(),
            frames: self.frames.clone(),
            error,
        };
        self.connections.spawn(connection.run(data));
    }

    async fn send(&self, frame: Bytes) {
        // Nobody takes frames any more: the session ends by that.
        let _ = self.frames.send(frame).await;
    }
}

/// One connection to a port.
struct Connection {
    pod: Arc<PortForwardRequest>,
    ports: Arc<dyn PodPorts>,
    frames: mpsc::Sender<Bytes>,
    error: u32,
}

impl Connection {
    async fn run(self, data: Data) -> [u32; 2] {
        let streams = [self.error, data.stream];
        let (stream, is_reset) = (data.stream, data.is_reset.clone());
        let said = tokio::select! {
            connected = self.connect(data) => connected.err(),
            () = is_reset.cancelled() => Some(String::new()),
        };
        if said.is_some() {
            // Else its end is out already.
            let _ = self.frames.send(spdy::data(stream, b"", true)).await;
        }
        // The client waits for the end of this one, whatever became of the other.
        let said = said.unwrap_or_default();
        let _ = self
            .frames
            .send(spdy::data(self.error, said.as_bytes(), true))
            .await;
        streams
    }

    /// What is said on the error stream.
    async fn connect(&self, data: Data) -> Result<(), String> {
        let port = data.port;
        let connected = self.ports.connect(port).await.map_err(|error| {
            let PortForwardRequest { pod, uid, .. } = &*self.pod;
            format!("error forwarding port {port} to pod {pod}, uid {uid}: {error}")
        })?;
        let (from_pod, to_pod) = split(connected);
        let (sent, received) =
            tokio::join!(write(to_pod, data.from_client), self.read(from_pod, data.stream));
        if let Err(error) = sent.and(received) {
            // Both sides see that it broke off; said on the error stream it would end the client's other connections too.
            tracing::debug!(%error, port, "a forwarded connection broke");
        }
        Ok(())
    }

    async fn read(&self, mut from_pod: ReadHalf<Box<dyn Duplex>>, stream: u32) -> io::Result<()> {
        let mut piece = BytesMut::with_capacity(OUTPUT_BYTES_MAX);
        let mut read = from_pod.read_buf(&mut piece).await;
        while let Ok(1..) = read {
            if self.frames.send(spdy::data(stream, &piece, false)).await.is_err() {
                return Ok(());
            }
            piece.clear();
            piece.reserve(OUTPUT_BYTES_MAX);
            read = from_pod.read_buf(&mut piece).await;
        }
        // The end of this direction, at once: the other one may go on.
        let _ = self.frames.send(spdy::data(stream, b"", true)).await;
        read.map(drop)
    }
}

async fn write(
    mut to_pod: WriteHalf<Box<dyn Duplex>>,
    mut from_client: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    while let Some(data) = from_client.recv().await {
        to_pod.write_all(&data).await?;
    }
    to_pod.shutdown().await
}
