//! The agent's end of a connection to a shim.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::protocol::{self, Call, FrameBuffer, Reply, Request, SOCKET_FILE, VERSION};

/// A longer path does not fit into a socket address.
const SOCKET_PATH_MAX: usize = 100;

/// Bytes taken from the socket at once; replies are short.
const READ_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    inbox: FrameBuffer,
    fds: Vec<OwnedFd>,
}

impl Connection {
    pub(crate) async fn open(pod_dir: &Path) -> io::Result<Self> {
        let path = pod_dir.join(SOCKET_FILE);
        let stream = if path.as_os_str().len() <= SOCKET_PATH_MAX {
            UnixStream::connect(path).await?
        } else {
            let dir = std::fs::File::open(pod_dir)?;
            UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET_FILE}", dir.as_raw_fd())).await?
        };
        Ok(Self {
            stream,
            inbox: FrameBuffer::default(),
            fds: Vec::new(),
        })
    }

    /// One request and its answer.
    pub(crate) async fn call(&mut self, call: Call, fds: &[OwnedFd]) -> io::Result<Reply> {
        self.send(call, fds).await?;
        self.reply().await
    }

    async fn send(&mut self, call: Call, fds: &[OwnedFd]) -> io::Result<()> {
        let frame = protocol::encode(&Request {
            version: VERSION,
            call,
        })?;
        let mut fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        let mut sent = 0;
        while sent < frame.len() {
            self.stream.writable().await?;
            let send = || protocol::send_with_fds(&self.stream, &frame[sent..], &fds);
            match self.stream.try_io(Interest::WRITABLE, send) {
                Ok(length) => {
                    sent += length;
                    fds.clear();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next reply. Cancel safe.
    pub(crate) async fn reply(&mut self) -> io::Result<Reply> {
        loop {
            if let Some(frame) = self.inbox.next_frame()? {
                return protocol::decode(&frame);
            }
            self.stream.readable().await?;
            let mut bytes = [0; READ_BYTES];
            let receive = || protocol::receive_with_fds(&self.stream, &mut bytes, &mut self.fds);
            match self.stream.try_io(Interest::READABLE, receive) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.inbox.extend(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The descriptors that came with the replies so far.
    pub(crate) fn take_fds(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.fds)
    }

    /// Waits until the shim is gone.
    pub(crate) async fn closed(&mut self) {
        while self.reply().await.is_ok() {}
    }
}
