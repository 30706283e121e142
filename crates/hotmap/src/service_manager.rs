//! What a service manager is told over `NOTIFY_SOCKET` (`sd_notify(3)`): that we are ready, and that we stop.

use std::{
    env, io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice<'a> {
    /// Everything is up; where, for `systemctl status`.
    Ready(&'a str),
    /// We have been asked to stop.
    Stopping,
}

/// Says it to whoever started us as a service; nobody else is told. A manager that does not listen is no reason to fail.
pub(crate) fn notify(notice: Notice<'_>) {
    let Some(socket) = env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else {
        return;
    };
    if let Err(error) = send(socket.as_bytes(), notice) {
        tracing::warn!(%error, socket = %socket.display(), "service manager not told");
    }
}

fn send(socket: &[u8], notice: Notice<'_>) -> io::Result<()> {
    let message = match notice {
        Notice::Ready(status) => format!("READY=1\nSTATUS={}", status.replace('\n', " ")),
        Notice::Stopping => "STOPPING=1".to_owned(),
    };
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    let sender = UnixDatagram::unbound()?;
    // A manager that does not read must not hold us up.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(message.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_with_or_without_a_file_hears_it() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("notify");
        let name = format!("hotmap-test-notify-{}", std::process::id());
        let of_name = SocketAddr::from_abstract_name(&name).expect("a name");
        for (listener, socket) in [
            (UnixDatagram::bind(&path), path.as_os_str().as_bytes().to_vec()),
            (UnixDatagram::bind_addr(&of_name), format!("@{name}").into_bytes()),
        ] {
            let listener = listener.expect("free");
            for (notice, message) in [
                (Notice::Ready("a\nb"), "READY=1\nSTATUS=a b"),
                (Notice::Stopping, "STOPPING=1"),
            ] {
                send(&socket, notice).expect("somebody listens");
                let mut heard = [0; 64];
                let length = listener.recv(&mut heard).expect("a message");
                assert_eq!(&heard[..length], message.as_bytes());
            }
        }
        assert!(send(b"/nonexistent/notify", Notice::Stopping).is_err());
    }
}
