//! What agent and shim say to each other, over a unix stream socket in the pod's state directory.
//!
//! The socket is mode 0600 and the shim serves only its own uid (`SO_PEERCRED`). A frame is a length
//! (32 bits, big endian, at most [`FRAME_BYTES_MAX`]) and that many bytes of JSON. Descriptors travel as `SCM_RIGHTS`
//! with the first byte of their frame.
//!
//! | agent says | descriptors | shim answers |
//! |---|---|---|
//! | `start` | – | `started`, once the program is executed |
//! | `start_beside` | – | as `start`, with the processes of another container around it |
//! | `stop` | – | `done`, once the process has ended |
//! | `remove` | – | `done` |
//! | `swap_mount` | what is to be shown, as one `O_PATH` descriptor | `swapped` |
//! | `compare_env` | – | `env_differs`: names, never values |
//! | `exec` | stdin, stdout, stderr as far as asked for | `exec_started` (with a terminal: its master), then `exec_ended` |
//! | `attach` | stdout, stderr as far as asked for | `attached` (with the writable end of stdin, or a terminal's master), then `attach_ended` |
//! | `open_socket` | – | `socket_opened`, with a TCP socket of the pod's network that is not connected |
//! | `watch` | – | `state` at once and after every change |
//! | `stop_sandbox` | – | `done`, once every process has ended |
//! | `shutdown` | – | `done`; the shim ends and the socket closes |
//!
//! Any request may be answered by `refused`. A connection carries one request after another, except that
//! `exec`, `attach` and `watch` take it over; closing an `exec` connection kills the command, closing an `attach` one detaches.
//!
//! **Versions.** Every request carries [`VERSION`]. A release understands the requests of the one before it, and an agent speaks
//! to the shims of the release before it: fields are only added, with a default; an unknown field is ignored; an unknown
//! request is refused as `unsupported`.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exec::TerminalSize;
use crate::spec::ContainerConfig;
use crate::status::{ContainerStatus, PodState};

/// The version of this protocol and of the state files.
pub(crate) const VERSION: u32 = 1;

/// A longer frame ends the connection. Linux takes 2 MiB of arguments and environment at most, and JSON needs up to six
/// bytes for one of them.
pub(crate) const FRAME_BYTES_MAX: usize = 16 << 20;

/// Descriptors with one frame: the three standard streams.
pub(crate) const FRAME_FDS_MAX: usize = 3;

/// The environment and the place of the socket, the state and the log of a shim in the pod's directory.
pub(crate) const SOCKET_FILE: &str = "shim.sock";
pub(crate) const STATE_FILE: &str = "state.json";
pub(crate) const RECORD_FILE: &str = "sandbox.json";
pub(crate) const SHIM_LOG_FILE: &str = "shim.log";
pub(crate) const LAYERS_DIR: &str = "c";

/// The first argument of a process that is a shim; the instance and the pod's uid follow. People and scripts find them by these.
pub(crate) const SHIM_ARGUMENT: &str = "__hotmap-shim";

/// The first argument of the process that shims are forked from. Agent and zygote are one program, executed from one file: what they say
/// to each other has no versions.
pub(crate) const ZYGOTE_ARGUMENT: &str = "__hotmap-zygote";

/// The zygote's one message to the agent.
pub(crate) const ZYGOTE_READY: &[u8; 1] = b".";

/// The agent's message to the zygote is a pod's uid, and nothing is longer. The pod's directory, its shim's log and the pipe of the
/// greeting come along.
pub(crate) const POD_UID_BYTES_MAX: usize = 63;

/// What may be part of paths, arguments and cgroups as the uid of a pod.
pub(crate) fn is_pod_uid(uid: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=POD_UID_BYTES_MAX).contains(&uid.len()) && uid.bytes().all(safe)
}

/// One request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) version: u32,
    #[serde(flatten)]
    pub(crate) call: Call,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(crate) enum Call {
    Start {
        container: Box<ContainerConfig>,
    },
    /// Since the third release: the start of a container with a target. A call of its own, so that an older shim refuses it as
    /// `unsupported` and does not start it alone.
    StartBeside {
        container: Box<ContainerConfig>,
    },
    Stop {
        name: String,
        /// This attempt and no later one; whichever runs without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        signal: i32,
        grace_ms: u64,
    },
    Remove {
        name: String,
        attempt: u32,
    },
    Exec(ExecCall),
    /// Since the second release; a shim of the first one refuses it as `unsupported`.
    Attach(AttachCall),
    /// Since the second release: who asks connects it, so that nobody waits here.
    OpenSocket {
        ipv6: bool,
    },
    /// Since the second release; a shim of the first one refuses it as `unsupported`.
    SwapMount(SwapCall),
    /// Since the second release: what a start of the container with this environment would have otherwise.
    CompareEnv {
        name: String,
        attempt: u32,
        env: Vec<(String, String)>,
    },
    Watch,
    StopSandbox,
    Shutdown,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExecCall {
    pub(crate) container: String,
    pub(crate) argv: Vec<String>,
    pub(crate) tty: bool,
    /// Which of the descriptors came along, in this order.
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    #[serde(default)]
    pub(crate) size: Option<TerminalSize>,
}

/// Takes part in the streams of a container that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttachCall {
    pub(crate) container: String,
    /// Whether something is going to be written.
    pub(crate) stdin: bool,
    /// Which of the descriptors came along, in this order: pipes to write to.
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

/// Why a client sees nothing more of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AttachEnd {
    /// The container has ended, and all its output is in the pipes.
    Ended,
    /// A pipe was full: neither the container nor its log waits for a client.
    TooSlow,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SwapCall {
    pub(crate) name: String,
    pub(crate) attempt: u32,
    /// As `ContainerConfig::mounts` named it.
    pub(crate) target: PathBuf,
    pub(crate) read_only: bool,
    /// Count the mounts at the place first, whatever is remembered of it.
    #[serde(default)]
    pub(crate) verify: bool,
}

/// What came of a [`SwapCall`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum SwapOutcome {
    /// It shows that already.
    Unchanged,
    /// `is_told`: watchers of its directory were.
    Swapped { is_told: bool },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub(crate) enum Reply {
    Done,
    Started {
        container: ContainerStatus,
    },
    State {
        state: PodState,
    },
    ExecStarted,
    ExecEnded {
        exit_code: i32,
    },
    /// `has_input`: the descriptor that came along is to be written to. Without, one of a terminal is there for its size.
    Attached {
        has_input: bool,
        is_terminal: bool,
    },
    AttachEnded {
        end: AttachEnd,
    },
    SocketOpened,
    Swapped(SwapOutcome),
    EnvDiffers {
        names: Vec<String>,
    },
    Refused {
        refusal: Refusal,
    },
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub(crate) enum Refusal {
    Exists,
    NotRunning,
    Running,
    TooMany,
    Stopped,
    Privileged,
    Invalid {
        message: String,
    },
    Setup {
        message: String,
    },
    /// The kernel, or the container, stands in the way: trying again is of no use.
    Unavailable {
        message: String,
    },
    Exec {
        message: String,
        exit_code: i32,
    },
    Unsupported,
}

/// The first thing a shim says, as one line on the pipe that is its stdout until then.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Greeting {
    Ready,
    Failed(String),
}

/// The bytes of a frame.
pub(crate) fn encode<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - 4;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the request is longer than 16 MiB",
        ));
    }
    frame[..4].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(frame)
}

/// How long a frame is that begins with these four bytes, themselves not counted.
pub(crate) fn frame_length(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(head) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a frame is longer than 16 MiB",
        ));
    }
    Ok(length)
}

/// What a frame says.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    serde_json::from_slice(body).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The frames in a growing buffer.
#[derive(Debug, Default)]
pub(crate) struct FrameBuffer {
    bytes: Vec<u8>,
}

impl FrameBuffer {
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// More than one frame can have: the other side does not wait for its answer.
    pub(crate) fn is_overfull(&self) -> bool {
        self.bytes.len() > 4 + FRAME_BYTES_MAX + (1 << 20)
    }

    /// Takes the first frame if it is complete.
    pub(crate) fn next_frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(head) = self.bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let end = 4 + frame_length(*head)?;
        if self.bytes.len() < end {
            return Ok(None);
        }
        let body = self.bytes[4..end].to_vec();
        self.bytes.drain(..end);
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
        Ok(Some(body))
    }
}

/// Sends bytes and descriptors; how many bytes went is returned, the descriptors went with the first.
pub(crate) fn send_with_fds(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FRAME_FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "too many descriptors for one frame",
        ));
    }
    Ok(rustix::net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?)
}

/// Receives bytes and the descriptors that came with them, close-on-exec.
pub(crate) fn receive_with_fds(
    socket: impl AsFd,
    bytes: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FRAME_FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(received.bytes)
}

/// Where the layers of an attempt are, under the pod's directory.
pub(crate) fn layer_dir(name: &str, attempt: u32) -> PathBuf {
    PathBuf::from(LAYERS_DIR).join(format!("{name}-{attempt}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_keep_their_form_across_releases() {
        // The text on the left is what a shim of this release was sent; it must stay readable.
        for (text, name) in [
            (r#"{"version":1,"call":"watch"}"#, "Watch"),
            (
                r#"{"version":1,"call":"shutdown","added_later":true}"#,
                "Shutdown",
            ),
            (
                r#"{"version":1,"call":"stop","name":"web","signal":15,"grace_ms":30000}"#,
                "Stop",
            ),
            (
                r#"{"version":2,"call":"remove","name":"web","attempt":3}"#,
                "Remove",
            ),
            (
                r#"{"version":1,"call":"exec","container":"web","argv":["id"],"tty":false,"stdin":false,"stdout":true,"stderr":true}"#,
                "Exec",
            ),
        ] {
            let request: Request = decode(text.as_bytes()).expect(text);
            assert!(format!("{:?}", request.call).starts_with(name), "{text}");
        }
        let swap = r#"{"version":1,"call":"swap_mount","name":"web","attempt":0,"target":"/etc/a","read_only":true}"#;
        let request: Request = decode(swap.as_bytes()).expect("a swap");
        assert!(matches!(request.call, Call::SwapMount(call) if !call.verify));
        assert!(
            decode::<Request>(br#"{"version":1,"call":"freeze"}"#).is_err(),
            "an unknown request is told apart"
        );
    }

    #[test]
    fn a_frame_longer_than_the_limit_is_refused_by_its_head() {
        assert!(frame_length((FRAME_BYTES_MAX as u32).to_be_bytes()).is_ok());
        assert!(frame_length((FRAME_BYTES_MAX as u32 + 1).to_be_bytes()).is_err());
        let mut buffer = FrameBuffer::default();
        buffer.extend(&[0xff; 4]);
        assert!(buffer.next_frame().is_err());
    }

    proptest! {
        #[test]
        fn frames_survive_any_cut(texts in prop::collection::vec(".{0,40}", 1..6), cut in 1usize..7) {
            let stream: Vec<u8> = texts.iter().flat_map(|text| encode(text).expect("short")).collect();
            let mut buffer = FrameBuffer::default();
            let mut seen = Vec::new();
            for chunk in stream.chunks(cut) {
                buffer.extend(chunk);
                while let Some(frame) = buffer.next_frame().expect("valid") {
                    seen.push(decode::<String>(&frame).expect("a string"));
                }
            }
            prop_assert_eq!(seen, texts);
        }
    }
}
