//! Every call of this crate that changes the disk, in one place, so that a test can stop or fail each of them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
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

/// The seam for faults: called before each operation, an error is returned in place of doing it.
pub(crate) trait Faults: Send + Sync {
    fn before(&self, operation: Operation) -> io::Result<()>;
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

    pub(crate) fn make_directory(&self, parent: &Directory, name: impl Arg) -> io::Result<()> {
        self.before(Operation::MakeDirectory)?;
        Ok(rustix::fs::mkdirat(parent, name, Mode::RWXU)?)
    }

    /// Creates a file that must not exist yet, readable by nobody else until its mode is set.
    pub(crate) fn create_file(&self, parent: &Directory, path: &str) -> io::Result<File> {
        self.before(Operation::CreateFile)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        Ok(File::from(parent.open_beneath(
            path,
            flags,
            Mode::RUSR | Mode::WUSR,
        )?))
    }

    pub(crate) fn write_file(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        self.before(Operation::WriteFile)?;
        file.write_all(bytes)
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
        Ok(rustix::fs::fchmod(fd, Mode::from_raw_mode(bits))?)
    }

    pub(crate) fn symlink(&self, target: &str, parent: &Directory, name: &str) -> io::Result<()> {
        self.before(Operation::Symlink)?;
        Ok(rustix::fs::symlinkat(target, parent, name)?)
    }

    pub(crate) fn rename(&self, parent: &Directory, from: &str, to: &str) -> io::Result<()> {
        self.before(Operation::Rename)?;
        Ok(rustix::fs::renameat(parent, from, parent, to)?)
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

    pub(crate) fn unlink(&self, parent: &Directory, name: impl Arg) -> io::Result<()> {
        self.before(Operation::Unlink)?;
        Ok(rustix::fs::unlinkat(parent, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_directory(&self, parent: &Directory, name: impl Arg) -> io::Result<()> {
        self.before(Operation::RemoveDirectory)?;
        Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
    }

    pub(crate) fn sync(&self, fd: impl AsFd) -> io::Result<()> {
        self.before(Operation::Sync)?;
        Ok(rustix::fs::fsync(fd)?)
    }
}
