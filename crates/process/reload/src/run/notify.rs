//! What the program says of itself over `NOTIFY_SOCKET` (`sd_notify(3)`): `READY=1`.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::sys;

/// Longer messages are cut; what is asked for stands in a line of its own.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// A socket for messages, with a name that no file has: it works in a root that cannot be written to.
pub(crate) struct NotifySocket {
    socket: AsyncFd<OwnedFd>,
    name: String,
}

/// Somebody has said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Who, by the kernel's word; zero if it is a process outside of this pid namespace.
    pub(crate) pid: i32,
    /// Whether it was `READY=1`.
    pub(crate) is_ready: bool,
}

impl NotifySocket {
    /// Binds one. Call it on the runtime.
    pub(crate) fn bind() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        sockopt::set_socket_passcred(&socket, true)?;
        let draw = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("hotmap-run-{}-{draw:016x}", std::process::id());
        rustix::net::bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        // SAFETY: an owned descriptor stays the same one for as long as it is owned.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        Ok(Self { socket, name })
    }

    /// The value of `NOTIFY_SOCKET`.
    pub(crate) fn variable(&self) -> String {
        format!("@{}", self.name)
    }

    /// The next message.
    pub(crate) async fn next(&self) -> io::Result<Notice> {
        self.socket
            .async_io(Interest::READABLE, |socket| {
                let mut message = [0; MESSAGE_BYTES_MAX];
                let (length, pid) = sys::receive_from_process(socket, &mut message)?;
                let text = message.get(..length).unwrap_or_default();
                let is_ready = text
                    .split(|byte| *byte == b'\n')
                    .any(|line| line.trim_ascii() == b"READY=1");
                Ok(Notice { pid, is_ready })
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use super::*;

    #[tokio::test]
    async fn a_message_tells_who_is_ready() {
        let socket = NotifySocket::bind().expect("a socket");
        let name = socket.variable();
        let address = SocketAddr::from_abstract_name(&name[1..]).expect("a name");
        let sender = UnixDatagram::unbound().expect("a socket");
        let pid = std::process::id() as i32;
        for (message, is_ready) in [
            ("READY=1", true),
            ("STATUS=READY=1", false),
            ("STATUS=up\nREADY=1\n", true),
            ("", false),
        ] {
            sender
                .send_to_addr(message.as_bytes(), &address)
                .expect("it is bound");
            let notice = socket.next().await.expect("it came");
            assert_eq!(notice, Notice { pid, is_ready }, "{message:?}");
        }
    }
}
