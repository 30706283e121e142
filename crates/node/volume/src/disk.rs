//! Every call of this crate that changes the disk, in one place, so that a test can stop or fail each of them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::path::Arg;

use crate::directory::Directory;

/// What is about to be done to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    MakeDirectory,
    CreateFile,
    WriteFile,
    SetOwner,
    SetMode,
    Symlink,
    Rename,
    Unlink,
    RemoveDirectory,
    Sync,
}

/// What was done to the disk. Names are directly in `parent`.
#[cfg_attr(not(test), expect(dead_code, reason = "only tests look at what was done"))]
pub(crate) enum Change<'a> {
    MakeDirectory {
        parent: BorrowedFd<'a>,
        name: Cow<'a, str>,
    },
    /// The path may have directories in it.
    CreateFile {
        parent: BorrowedFd<'a>,
        path: &'a str,
        file: BorrowedFd<'a>,
    },
    WriteFile {
        file: BorrowedFd<'a>,
        bytes: &'a [u8],
    },
    SetMode {
        of: BorrowedFd<'a>,
        bits: u32,
    },
    Symlink {
        parent: BorrowedFd<'a>,
        name: &'a str,
        target: &'a str,
    },
    Rename {
        parent: BorrowedFd<'a>,
        from: &'a str,
        to: &'a str,
    },
    /// A file, a link or a directory.
    Remove {
        parent: BorrowedFd<'a>,
        name: Cow<'a, str>,
    },
    Sync {
        of: BorrowedFd<'a>,
    },
}

/// The seam for faults.
pub(crate) trait Faults: Send + Sync {
    /// Called before each operation; an error is returned in place of doing it.
    fn before(&self, operation: Operation) -> io::Result<()>;

    /// Called after each operation that did what it should, but for those on owners.
    fn after(&self, _change: Change<'_>) {}
}

/// The disk as it is, or with faults.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    faults: Option<Arc<dyn Faults>>,
}

impl Disk {
    #[cfg(test)]
    pub(crate) fn with_faults(faults: Arc<dyn Faults>) -> Self {
        Self { faults: Some(faults) }
    }

    fn before(&self, operation: Operation) -> io::Result<()> {
        self.faults
            .as_ref()
            .map_or(Ok(()), |faults| faults.before(operation))
    }

    fn after<'a>(&self, change: impl FnOnce() -> Change<'a>) {
        if let Some(faults) = &self.faults {
            faults.after(change());
        }
    }

    pub(crate) fn make_directory(&self, parent: &Directory, name: impl Arg + Copy) -> io::Result<()> {
        self.before(Operation::MakeDirectory)?;
        rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
        self.after(|| Change::MakeDirectory {
            parent: parent.as_fd(),
            name: Cow::Owned(name.to_string_lossy().into_owned()),
        });
        Ok(())
    }

    /// Creates a file that must not exist yet, readable by nobody else until its mode is set.
    pub(crate) fn create_file(&self, parent: &Directory, path: &str) -> io::Result<File> {
        self.before(Operation::CreateFile)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = File::from(parent.open_beneath(path, flags, Mode::RUSR | Mode::WUSR)?);
        self.after(|| Change::CreateFile {
            parent: parent.as_fd(),
            path,
            file: file.as_fd(),
        });
        Ok(file)
    }

    pub(crate) fn write_file(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        self.before(Operation::WriteFile)?;
        file.write_all(bytes)?;
        self.after(|| Change::WriteFile {
            file: file.as_fd(),
            bytes,
        });
        Ok(())
    }

    pub(crate) fn set_owner(&self, fd: impl AsFd, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.before(Operation::SetOwner)?;
        Ok(rustix::fs::fchown(
            fd,
            uid.map(Uid::from_raw),
            gid.map(Gid::from_raw),
        )?)
    }

    /// Changes the owner of a name itself: a link is not followed.
    pub(crate) fn set_link_owner(
        &self,
        parent: &Directory,
        name: &str,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        self.before(Operation::SetOwner)?;
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        Ok(rustix::fs::chownat(
            parent,
            name,
            uid,
            gid,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    pub(crate) fn set_mode(&self, fd: impl AsFd, bits: u32) -> io::Result<()> {
        self.before(Operation::SetMode)?;
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(bits))?;
        self.after(|| Change::SetMode { of: fd.as_fd(), bits });
        Ok(())
    }

    pub(crate) fn symlink(&self, target: &str, parent: &Directory, name: &str) -> io::Result<()> {
        self.before(Operation::Symlink)?;
        rustix::fs::symlinkat(target, parent, name)?;
        self.after(|| Change::Symlink {
            parent: parent.as_fd(),
            name,
            target,
        });
        Ok(())
    }

    pub(crate) fn rename(&self, parent: &Directory, from: &str, to: &str) -> io::Result<()> {
        self.before(Operation::Rename)?;
        rustix::fs::renameat(parent, from, parent, to)?;
        self.after(|| Change::Rename {
            parent: parent.as_fd(),
            from,
            to,
        });
        Ok(())
    }

    /// Moves `name` of `from` into `to`, where `new_name` must be free.
    pub(crate) fn lift(
        &self,
        from: &Directory,
        name: impl Arg,
        to: &Directory,
        new_name: &str,
    ) -> io::Result<()> {
        self.before(Operation::Rename)?;
        Ok(rustix::fs::renameat_with(
            from,
            name,
            to,
            new_name,
            rustix::fs::RenameFlags::NOREPLACE,
        )?)
    }

    pub(crate) fn unlink(&self, parent: &Directory, name: impl Arg + Copy) -> io::Result<()> {
        self.before(Operation::Unlink)?;
        self.remove(parent, name, AtFlags::empty())
    }

    pub(crate) fn remove_directory(&self, parent: &Directory, name: impl Arg + Copy) -> io::Result<()> {
        self.before(Operation::RemoveDirectory)?;
        self.remove(parent, name, AtFlags::REMOVEDIR)
    }

    fn remove(&self, parent: &Directory, name: impl Arg + Copy, flags: AtFlags) -> io::Result<()> {
        rustix::fs::unlinkat(parent, name, flags)?;
        self.after(|| Change::Remove {
            parent: parent.as_fd(),
            name: Cow::Owned(name.to_string_lossy().into_owned()),
        });
        Ok(())
    }

    pub(crate) fn sync(&self, fd: impl AsFd) -> io::Result<()> {
        self.before(Operation::Sync)?;
        rustix::fs::fsync(&fd)?;
        self.after(|| Change::Sync { of: fd.as_fd() });
        Ok(())
    }
}
