//! What the program says of itself over `NOTIFY_SOCKET` (`sd_notify(3)`): `READY=1`, and what is for a service manager.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::sys;

/// Longer messages are cut; what is asked for stands in a line of its own.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// What a service manager is told in the program's words. Not what is of the program's own process (`MAINPID`) or of its end
/// and its reloads, which are not those of `run`.
const PASSED_ON: [&[u8]; 3] = [b"STATUS=", b"WATCHDOG=", b"EXTEND_TIMEOUT_USEC="];

/// A socket for messages, with a name that no file has: it works in a root that cannot be written to.
pub(crate) struct NotifySocket {
    socket: AsyncFd<OwnedFd>,
    name: String,
}

/// Somebody has said something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Who, by the kernel's word; zero if it is a process outside of this pid namespace.
    pub(crate) pid: i32,
    /// Whether it was `READY=1`.
    pub(crate) is_ready: bool,
    /// The lines that a service manager is told as they are; `None` without any.
    pub(crate) passed_on: Option<String>,
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
                Ok(Notice::of(pid, text))
            })
            .await
    }
}

impl Notice {
    fn of(pid: i32, text: &[u8]) -> Self {
        let lines = || text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let passed_on: Vec<_> = lines()
            .filter(|line| PASSED_ON.iter().any(|name| line.starts_with(name)))
            .map(String::from_utf8_lossy)
            .collect();
        Self {
            pid,
            is_ready: lines().any(|line| line == b"READY=1"),
            passed_on: (!passed_on.is_empty()).then(|| passed_on.join("\n")),
        }
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
        for (message, is_ready, passed_on) in [
            ("READY=1", true, None),
            ("STATUS=READY=1", false, Some("STATUS=READY=1")),
            ("STATUS=up\nREADY=1\n", true, Some("STATUS=up")),
            (
                "WATCHDOG=1\nMAINPID=1\nSTOPPING=1\nEXTEND_TIMEOUT_USEC=9",
                false,
                Some("WATCHDOG=1\nEXTEND_TIMEOUT_USEC=9"),
            ),
            ("", false, None),
        ] {
            sender
                .send_to_addr(message.as_bytes(), &address)
                .expect("it is bound");
            let notice = socket.next().await.expect("it came");
            let passed_on = passed_on.map(str::to_owned);
            let expected = Notice {
                pid,
                is_ready,
                passed_on,
            };
            assert_eq!(notice, expected, "{message:?}");
        }
    }
}
