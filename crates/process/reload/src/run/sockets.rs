//! Listening sockets that outlive the program: `run` binds them, and every start of the program gets the same ones
//! (`sd_listen_fds(3)`). While none accepts, the kernel keeps connections in the queue.

use std::env;
use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::spawn::LISTEN_FDS_START;

/// Connections that wait while nobody accepts; the kernel cuts it to `net.core.somaxconn` (4,096 by default).
const BACKLOG: i32 = 4_096;
/// The name of a socket that has none (`sd_listen_fds_with_names(3)`).
const NO_NAME: &str = "unknown";

/// `[NAME=]ADDRESS`: where `run` listens, and what the program knows the socket by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    name: Option<String>,
    address: Address,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(raw: &str) -> Result<Self, String> {
        let (name, address) = match raw.split_once('=') {
            Some((name, address)) if !name.contains(['/', ':']) => (Some(name.to_owned()), address),
            _ => (None, raw),
        };
        let bad_name = |name: &&String| {
            name.is_empty() || name.len() > 255 || !name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if let Some(name) = name.as_ref().filter(bad_name) {
            return Err(format!(
                "{name:?} is no name of a socket: 1 to 255 visible ASCII characters other than ':'"
            ));
        }
        let address = if let Some(path) = address.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(
                    "the path of a unix socket has to be absolute: unix:/run/app/app.sock".to_owned(),
                );
            }
            Address::Unix(PathBuf::from(path))
        } else {
            let tcp = address.strip_prefix("tcp:").unwrap_or(address);
            let any = tcp.strip_prefix(':').and_then(|port| port.parse().ok());
            let any = any.map(|port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
            let parsed = any.or_else(|| tcp.parse().ok());
            Address::Tcp(parsed.ok_or("write 127.0.0.1:8080, [::1]:8080, :8080 or unix:/path/of/the.sock")?)
        };
        Ok(Self { name, address })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    #[error("--listen {address}: {source}")]
    Bind { address: String, source: io::Error },
    #[error("--listen unix:{}: another process listens there", .path.display())]
    InUse { path: PathBuf },
    #[error("--listen unix:{}: there is something that is no socket", .path.display())]
    NoSocket { path: PathBuf },
}

/// Sockets for the program, in the order of the flags, behind those that `run` itself was handed.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Vec<Socket>);

#[derive(Debug)]
struct Socket {
    name: String,
    address: String,
    descriptor: OwnedFd,
}

impl Sockets {
    /// Binds them all.
    ///
    /// # Errors
    /// [`ListenError`]: the first that cannot be.
    pub(crate) fn bind(listens: &[Listen]) -> Result<Self, ListenError> {
        let mut sockets = Self(inherited());
        for listen in listens {
            sockets.0.push(Socket {
                name: listen.name.clone().unwrap_or_else(|| NO_NAME.to_owned()),
                address: listen.to_string(),
                descriptor: bind(listen)?,
            });
        }
        Ok(sockets)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The descriptors, in order.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.0.iter().map(|socket| socket.descriptor.as_fd()).collect()
    }

    /// The same sockets once more, each with the address that a person knows it by.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn duplicates(&self) -> io::Result<Vec<(String, OwnedFd)>> {
        let duplicate = |socket: &Socket| Ok((socket.address.clone(), socket.descriptor.try_clone()?));
        self.0.iter().map(duplicate).collect()
    }

    /// `LISTEN_FDS` and `LISTEN_FDNAMES`; `LISTEN_PID` is known in the child only.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        let names: Vec<&str> = self.0.iter().map(|socket| socket.name.as_str()).collect();
        [
            ("LISTEN_FDS", names.len().to_string()),
            ("LISTEN_FDNAMES", names.join(":")),
        ]
    }
}

/// The variables of the protocol, which are never handed on as they are.
pub(crate) const LISTEN_VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// What systemd has handed to `run`, if anything.
fn inherited() -> Vec<Socket> {
    let number = |name| env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Vec::new();
    }
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let count = i32::try_from(number("LISTEN_FDS").unwrap_or(0)).unwrap_or(0);
    (LISTEN_FDS_START..LISTEN_FDS_START.saturating_add(count))
        .map_while(|descriptor| {
            let name = names
                .next()
                .filter(|name| !name.is_empty())
                .unwrap_or(NO_NAME)
                .to_owned();
            // SAFETY: it is only duplicated, and a number that stands for nothing is refused there.
            let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
            let descriptor = rustix::io::fcntl_dupfd_cloexec(descriptor, LISTEN_FDS_START).ok()?;
            let address = format!("the socket {name:?} that `run` was started with");
            Some(Socket {
                name,
                address,
                descriptor,
            })
        })
        .collect()
}

fn bind(listen: &Listen) -> Result<OwnedFd, ListenError> {
    let failed = |source: rustix::io::Errno| ListenError::Bind {
        address: listen.to_string(),
        source: source.into(),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = |family| rustix::net::socket_with(family, SocketType::STREAM, flags, None).map_err(failed);
    let descriptor = match &listen.address {
        Address::Tcp(address) => {
            let family = if address.is_ipv4() {
                AddressFamily::INET
            } else {
                AddressFamily::INET6
            };
            let descriptor = socket(family)?;
            sockopt::set_socket_reuseaddr(&descriptor, true).map_err(failed)?;
            rustix::net::bind(&descriptor, address).map_err(failed)?;
            descriptor
        }
        Address::Unix(path) => {
            clear(path)?;
            let descriptor = socket(AddressFamily::UNIX)?;
            let address = SocketAddrUnix::new(path).map_err(failed)?;
            rustix::net::bind(&descriptor, &address).map_err(failed)?;
            descriptor
        }
    };
    rustix::net::listen(&descriptor, BACKLOG).map_err(failed)?;
    // What a service manager hands out blocks, unless it is told otherwise; programs count on that.
    rustix::io::ioctl_fionbio(&descriptor, false).map_err(failed)?;
    Ok(descriptor)
}

/// Removes a socket that nobody listens on any more: `run` was killed.
fn clear(path: &Path) -> Result<(), ListenError> {
    let Ok(metadata) = path.symlink_metadata() else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(ListenError::NoSocket {
            path: path.to_owned(),
        });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let _ = std::fs::remove_file(path);
            Ok(())
        }
        _ => Err(ListenError::InUse {
            path: path.to_owned(),
        }),
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for socket in &self.0 {
            if let Some(path) = socket.address.strip_prefix("unix:") {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_tcp_or_unix_with_or_without_a_name() {
        for (raw, name, shown) in [
            ("127.0.0.1:80", None, "127.0.0.1:80"),
            ("tcp:[::1]:80", None, "[::1]:80"),
            (":80", None, "[::]:80"),
            ("web=:80", Some("web"), "[::]:80"),
            ("unix:/run/a.sock", None, "unix:/run/a.sock"),
            ("a=unix:/run/a=b.sock", Some("a"), "unix:/run/a=b.sock"),
        ] {
            let listen: Listen = raw.parse().expect(raw);
            assert_eq!(
                (listen.name.as_deref(), listen.to_string().as_str()),
                (name, shown),
                "{raw}"
            );
        }
        for raw in ["", "80", "localhost:80", "unix:a.sock", "=:80", "a b=:80"] {
            assert!(raw.parse::<Listen>().is_err(), "{raw}");
        }
    }

    #[test]
    fn a_socket_that_nobody_listens_on_is_replaced_and_any_other_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.sock");
        let listen: Listen = format!("unix:{}", path.display()).parse().expect("an address");
        let left = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&left, &SocketAddrUnix::new(&path).expect("short")).expect("free");
        drop(left);
        let bound = Sockets::bind(std::slice::from_ref(&listen)).expect("nobody listens");
        assert!(matches!(
            Sockets::bind(std::slice::from_ref(&listen)),
            Err(ListenError::InUse { .. })
        ));
        drop(bound);
        std::fs::write(&path, "").expect("it was removed");
        assert!(matches!(
            Sockets::bind(&[listen]),
            Err(ListenError::NoSocket { .. })
        ));
    }
}
