//! A Unix socket that nobody can take over, and that takes over nobody's.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use tokio::net::{UnixListener, UnixStream as AsyncUnixStream};

/// `.` and eight hex digits.
pub(crate) const STAGED_SUFFIX_BYTES: usize = 9;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// A socket is not listened on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("somebody listens on {} already: stop that process, or choose another path", .0.display())]
    Taken(PathBuf),
    #[error("{} is there and is no socket: remove it, or choose another path", .0.display())]
    NoSocket(PathBuf),
    #[error("cannot listen on {}: its directory must be there and writable: {source}", .path.display())]
    Bind { path: PathBuf, source: io::Error },
}

/// A bound socket. Removed from its directory when dropped, unless another has taken its place.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: whether the socket at the path is still this one.
    identity: (u64, u64),
}

impl UnixSocket {
    /// Listens at `path`. A socket that nobody listens on is replaced, in one step.
    pub(crate) fn bind(path: &Path, mode: u32) -> Result<Self, SocketError> {
        refuse_what_is_in_use(path)?;
        let failed = |source: io::Error| SocketError::Bind {
            path: path.to_owned(),
            source,
        };
        let mut staged = path.as_os_str().to_owned();
        let random = getrandom::u32().map_err(|error| failed(io::Error::other(error.to_string())))?;
        staged.push(format!(".{random:08x}"));
        let staged = PathBuf::from(staged);
        let bound = Self::bind_staged(&staged, path, mode);
        if bound.is_err() {
            // Best effort: the reason for which it cannot be bound is what counts.
            let _ = fs::remove_file(&staged);
        }
        bound.map_err(failed)
    }

    fn bind_staged(staged: &Path, path: &Path, mode: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrUnix::new(staged)?)?;
        // Before anybody can connect: a socket that does not listen refuses.
        fs::set_permissions(staged, fs::Permissions::from_mode(mode))?;
        listen(&socket, BACKLOG)?;
        let identity = identity(staged)?;
        fs::rename(staged, path)?;
        let listener = UnixListener::from_std(socket.into())?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            identity,
        })
    }

    /// The next client.
    pub(crate) async fn accept(&self) -> io::Result<AsyncUnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Nobody is left to hear of it; the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn refuse_what_is_in_use(path: &Path) -> Result<(), SocketError> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NoSocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        // Also where connecting is not permitted, or the queue is full: somebody may be there.
        _ => Err(SocketError::Taken(path.to_owned())),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_taken_over_only_from_nobody_and_removed_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hotmap.sock");
        let first = UnixSocket::bind(&path, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = UnixSocket::bind(&path, 0o600).unwrap_err();
        assert!(matches!(error, SocketError::Taken(_)), "{error}");
        UnixStream::connect(&path).expect("the first one still listens");
        first.accept().await.unwrap();
        drop(first);
        assert!(!path.exists());

        // What a killed process leaves.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let second = UnixSocket::bind(&path, 0o666).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        // Somebody else has put theirs in its place: that one stays.
        fs::remove_file(&path).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(second);
        assert!(path.exists());
        drop(other);
        let names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["hotmap.sock"], "nothing staged is left");
    }

    #[tokio::test]
    async fn what_is_no_socket_or_cannot_be_bound_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "kept").unwrap();
        let error = UnixSocket::bind(&file, 0o600).unwrap_err();
        assert!(matches!(error, SocketError::NoSocket(_)), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        let error = UnixSocket::bind(&directory.path().join("absent/hotmap.sock"), 0o600).unwrap_err();
        assert!(
            error.to_string().contains("its directory must be there"),
            "{error}"
        );
    }
}
