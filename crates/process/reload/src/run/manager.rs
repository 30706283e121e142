//! Tells the service manager that has started `run` (systemd with `Type=notify`, Podman with `--sdnotify=container`) what the
//! program says of itself: the manager listens to `run`, the program's process is a stranger to it (`sd_notify(3)`).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tracing::warn;

/// How long a manager that does not read may hold `run` up.
const PATIENCE: Duration = Duration::from_secs(1);

/// The program is ready.
pub(crate) const READY: &str = "READY=1";
/// `run` ends.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// The socket of the service manager.
#[derive(Debug)]
pub(crate) struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Manager {
    /// The one at this value of `NOTIFY_SOCKET`.
    ///
    /// # Errors
    /// It is no Unix socket (`vsock:` is none), or no socket can be made.
    pub(crate) fn at(notify_socket: &OsStr) -> io::Result<Self> {
        let address = match notify_socket.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(notify_socket)?,
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "it is no Unix socket")),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { socket, address })
    }

    /// Says something; that nobody hears it is a line in the log.
    pub(crate) fn tell(&self, message: &str) {
        if let Err(error) = self.socket.send_to_addr(message.as_bytes(), &self.address) {
            warn!(%error, "the service manager of NOTIFY_SOCKET cannot be told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_told_at_a_path_or_at_a_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notify");
        let name = format!("hotmap-test-manager-{}", std::process::id());
        let named = SocketAddr::from_abstract_name(&name).expect("a name");
        for (socket, value) in [
            (
                UnixDatagram::bind(&path).expect("a socket"),
                path.display().to_string(),
            ),
            (
                UnixDatagram::bind_addr(&named).expect("a socket"),
                format!("@{name}"),
            ),
        ] {
            Manager::at(OsStr::new(&value)).expect("a socket").tell(READY);
            let mut heard = [0; 64];
            let length = socket.recv(&mut heard).expect("it was told");
            assert_eq!(&heard[..length], b"READY=1", "{value}");
        }
        for wrong in ["vsock:2:1234", "notify", ""] {
            assert!(Manager::at(OsStr::new(wrong)).is_err(), "{wrong:?}");
        }
    }
}
