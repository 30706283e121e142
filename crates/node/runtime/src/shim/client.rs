//! One connection to the shim.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use serde::Serialize;

use crate::protocol::{self, FRAME_FDS_MAX, FrameBuffer};

/// What a connection is waiting for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The next request.
    Idle,
    /// Changes of the state. `behind`: the last one did not fit and must be told again.
    Watching { behind: bool },
    /// The end of a container.
    Stopping { name: String, attempt: u32 },
    /// The end of every process.
    StoppingSandbox,
    /// The end of a command, by pid.
    Commanding { pid: i32 },
    /// The end of a container whose streams it takes part in.
    Attached { name: String, attempt: u32 },
}

#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    inbox: FrameBuffer,
    pub(crate) fds: Vec<OwnedFd>,
    outbox: VecDeque<Outgoing>,
    pub(crate) mode: Mode,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

impl Client {
    /// Takes a connection of our own uid; others are closed.
    pub(crate) fn accept(stream: UnixStream) -> io::Result<Self> {
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid != rustix::process::geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            inbox: FrameBuffer::default(),
            fds: Vec::new(),
            outbox: VecDeque::new(),
            mode: Mode::Idle,
        })
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Reads what is there, as much as `buffer` takes. An error means that the connection is over.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match protocol::receive_with_fds(&self.stream, buffer, &mut self.fds) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if self.fds.len() > FRAME_FDS_MAX => Err(io::ErrorKind::InvalidData.into()),
            Ok(length) => {
                self.inbox.extend(&buffer[..length]);
                if self.inbox.is_overfull() {
                    Err(io::ErrorKind::InvalidData.into())
                } else {
                    Ok(())
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next request, unless one is still being carried out.
    pub(crate) fn next_request(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.mode == Mode::Idle {
            self.inbox.next_frame()
        } else {
            Ok(None)
        }
    }

    /// Queues a reply and sends what the socket takes.
    pub(crate) fn send(&mut self, reply: &impl Serialize, fds: Vec<OwnedFd>) -> io::Result<()> {
        self.outbox.push_back(Outgoing {
            bytes: protocol::encode(reply)?,
            sent: 0,
            fds,
        });
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while let Some(first) = self.outbox.front_mut() {
            let fds: Vec<_> = first.fds.iter().map(AsFd::as_fd).collect();
            match protocol::send_with_fds(&self.stream, &first.bytes[first.sent..], &fds) {
                Ok(sent) => {
                    first.fds.clear();
                    first.sent += sent;
                    if first.sent == first.bytes.len() {
                        self.outbox.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends what is left even if that blocks: the last reply before the shim ends.
    pub(crate) fn flush_blocking(&mut self) {
        let _ = self
            .stream
            .set_write_timeout(Some(std::time::Duration::from_secs(1)));
        let _ = self.stream.set_nonblocking(false).and_then(|()| self.flush());
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
