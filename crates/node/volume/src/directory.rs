//! A directory by handle: the only way this crate names a place on disk.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::path::Arg;

use crate::atomic_writer::Options;
use crate::disk::Disk;
use crate::payload::PayloadPath;

/// Nothing that is opened through a [`Directory`] leaves it: no `..`, no links, no `/proc` magic, no other mount.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Mode of every directory inside a volume, before the rules of an fsGroup.
pub(crate) const DIRECTORY_MODE: u32 = 0o755;

/// Mode of a volume's own directory, as a kubelet gives it; what lies above it keeps others out.
const VOLUME_MODE: u32 = 0o777;

/// An open directory. What is reached through it stays beneath it, whatever links are planted there.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
}

impl Directory {
    /// Opens a directory by path. The path is trusted: links in it are followed, and only here.
    ///
    /// # Errors
    /// The system's, among them `NotADirectory`.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(CWD, path.as_ref(), flags, Mode::empty())?,
        })
    }

    /// A second handle on the directory behind `fd`, which may be an `O_PATH` handle.
    ///
    /// # Errors
    /// The system's, among them `NotADirectory`.
    pub fn from_fd(fd: impl AsFd) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(fd, c".", flags, Mode::empty())?,
        })
    }

    /// Opens a directory beneath this one.
    ///
    /// # Errors
    /// `NotFound`; an error too when a link or a mount point is on the way.
    pub fn open_directory(&self, path: impl Arg) -> io::Result<Self> {
        let fd = self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { fd })
    }

    /// Makes the directory of a volume and opens it, or opens the one that is there, and gives it the mode a
    /// kubelet gives: 0777, with an fsGroup 02777 and that group; the owner of `options` when there is one.
    ///
    /// # Errors
    /// `InvalidInput` unless `name` is a single path element, else the system's.
    pub fn create_volume(&self, name: &str, options: &Options) -> io::Result<Self> {
        require_single_name(name.as_bytes())?;
        let disk = Disk::default();
        match disk.make_directory(self, name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let volume = self.open_directory(name)?;
        let uid = options.user();
        let gid = options.group();
        if uid.is_some() || gid.is_some() {
            disk.set_owner(&volume, uid, gid)?;
        }
        disk.set_mode(
            &volume,
            if options.fs_group.is_some() {
                0o2000 | VOLUME_MODE
            } else {
                VOLUME_MODE
            },
        )?;
        Ok(volume)
    }

    /// Makes a directory beneath this one, with those above it, 0755 each; what exists is left as it is.
    /// For mount points that lie inside a read-only volume.
    ///
    /// # Errors
    /// The system's; an error too when a link or a file is on the way.
    pub fn create_directories(&self, path: &PayloadPath) -> io::Result<()> {
        for directory in path.parents().chain([path.as_str()]) {
            let made = self.create_directory(&Disk::default(), directory)?;
            if let Some(made) = made {
                Disk::default().set_mode(&made, DIRECTORY_MODE)?;
            }
        }
        Ok(())
    }

    /// Makes one directory whose parent exists; `None` when it is there already.
    pub(crate) fn create_directory(&self, disk: &Disk, path: &str) -> io::Result<Option<Directory>> {
        let (parent, name) = match path.rsplit_once('/') {
            Some((above, name)) => (Some(self.open_directory(above)?), name),
            None => (None, path),
        };
        let parent = parent.as_ref().unwrap_or(self);
        match disk.make_directory(parent, name) {
            Ok(()) => parent.open_directory(name).map(Some),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn open_beneath(&self, path: impl Arg, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat2(
            &self.fd,
            path,
            flags | OFlags::CLOEXEC,
            mode,
            BENEATH,
        )?)
    }

    /// The target of the link `name` directly in this directory; `None` when it is not UTF-8, which none of
    /// ours is.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` when `name` is no link.
    pub(crate) fn read_link(&self, name: &str) -> io::Result<Option<String>> {
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new())?;
        Ok(target.into_string().ok())
    }

    /// What `name` directly in this directory is; a link is not followed.
    pub(crate) fn stat(&self, name: impl Arg) -> io::Result<rustix::fs::Stat> {
        Ok(rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Up to `limit` names in this directory, in no order, without `.` and `..`.
    pub(crate) fn names(&self, limit: usize) -> io::Result<Vec<(CString, FileType)>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                names.push((name.to_owned(), entry.file_type()));
            }
            if names.len() >= limit {
                break;
            }
        }
        Ok(names)
    }
}

impl From<Directory> for OwnedFd {
    fn from(directory: Directory) -> Self {
        directory.fd
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name that one directory entry can have, so that no path walk hides in it.
pub(crate) fn require_single_name(name: &[u8]) -> io::Result<()> {
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a single path element",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_volume_directory_has_the_kubelets_mode_and_is_one_name() {
        let temporary = tempfile::tempdir().unwrap();
        let parent = Directory::open(temporary.path()).unwrap();
        parent.create_volume("config", &Options::default()).unwrap();
        parent.create_volume("config", &Options::default()).unwrap();
        let mode = std::fs::metadata(temporary.path().join("config"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o777);
        for name in ["", ".", "..", "a/b", "/etc"] {
            assert!(
                parent.create_volume(name, &Options::default()).is_err(),
                "{name:?}"
            );
        }
    }

    #[test]
    fn what_is_no_directory_cannot_be_opened() {
        let temporary = tempfile::tempdir().unwrap();
        std::fs::write(temporary.path().join("file"), "x").unwrap();
        for (name, kind) in [
            ("none", io::ErrorKind::NotFound),
            ("file", io::ErrorKind::NotADirectory),
        ] {
            let error = Directory::open(temporary.path().join(name)).expect_err(name);
            assert_eq!(error.kind(), kind);
        }
    }

    #[test]
    fn links_never_lead_out_of_a_directory() {
        let temporary = tempfile::tempdir().unwrap();
        std::fs::create_dir(temporary.path().join("outside")).unwrap();
        std::fs::create_dir(temporary.path().join("inside")).unwrap();
        let inside = Directory::open(temporary.path().join("inside")).unwrap();
        symlink("../outside", temporary.path().join("inside/link")).unwrap();
        symlink("/etc", temporary.path().join("inside/etc")).unwrap();
        for path in ["link", "etc", "../outside", "/etc", "link/x"] {
            assert!(inside.open_directory(path).is_err(), "{path}");
        }
        let planted: PayloadPath = "link/made".parse().unwrap();
        assert!(inside.create_directories(&planted).is_err());
        assert!(!temporary.path().join("outside/made").exists());
    }

    #[test]
    fn mount_points_are_made_with_their_parents() {
        let temporary = tempfile::tempdir().unwrap();
        let volume = Directory::open(temporary.path()).unwrap();
        let path: PayloadPath = "a/b/c".parse().unwrap();
        volume.create_directories(&path).unwrap();
        volume.create_directories(&path).unwrap();
        let mode = std::fs::metadata(temporary.path().join("a/b/c"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o755);
    }
}
