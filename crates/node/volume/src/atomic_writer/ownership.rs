//! Who owns what a writer makes, and with which mode.

use std::io;

use crate::atomic_writer::{AtomicWriter, Durability, Removal};
use crate::directory::{DIRECTORY_MODE, Directory};
use crate::payload::FileMode;

/// How a writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// What a write survives.
    pub durability: Durability,
    /// Who owns files, directories and links; the process itself when absent. Ids are the host's: for a pod
    /// with a user namespace, the ids its root is mapped to.
    pub owner: Option<Ownership>,
    /// The pod's fsGroup, as an id of the host: the group of everything, files additionally 0440, directories
    /// additionally 0550 and setgid. Source: Kubernetes 1.36 `pkg/volume/volume_linux.go`.
    pub fs_group: Option<u32>,
    /// When a replaced revision goes.
    pub removal: Removal,
}

/// A user and a group, by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// The user id.
    pub uid: u32,
    /// The group id, unless there is an fsGroup.
    pub gid: u32,
}

impl Options {
    /// The user that is asked for.
    pub(crate) fn user(&self) -> Option<u32> {
        self.owner.map(|owner| owner.uid)
    }

    /// The group that is asked for: the fsGroup before the owner's.
    pub(crate) fn group(&self) -> Option<u32> {
        self.fs_group.or(self.owner.map(|owner| owner.gid))
    }

    pub(crate) fn file_bits(&self, mode: FileMode) -> u32 {
        mode.bits() | if self.fs_group.is_some() { 0o440 } else { 0 }
    }

    pub(crate) fn directory_bits(&self) -> u32 {
        DIRECTORY_MODE | if self.fs_group.is_some() { 0o2550 } else { 0 }
    }

    /// The same with another user, if one is named: a file may have an owner of its own.
    pub(crate) fn owned_by(&self, user: Option<u32>) -> Self {
        let Some(uid) = user else { return *self };
        // Without an owner of the volume the group is this process's own, as on everything else it makes.
        let gid = self
            .owner
            .map_or_else(|| rustix::process::getegid().as_raw(), |owner| owner.gid);
        Self {
            owner: Some(Ownership { uid, gid }),
            ..*self
        }
    }

    /// Whether an entry with these ids is owned as asked for.
    pub(crate) fn owns(&self, uid: u32, gid: u32) -> bool {
        self.user().is_none_or(|wanted| wanted == uid) && self.group().is_none_or(|wanted| wanted == gid)
    }
}

impl AtomicWriter {
    /// Makes a link in the volume, owned as asked for.
    pub(super) fn create_link(&self, target: &str, name: &str) -> io::Result<()> {
        self.create_owned(name, || self.disk.symlink(target, &self.root, name))
    }

    /// Makes an entry of the volume's own directory, owned as asked for from its first moment.
    ///
    /// A chown afterwards would do too, but everybody who watches the directory would see one ATTRIB event
    /// more than a kubelet causes.
    pub(super) fn create_owned(&self, name: &str, create: impl Fn() -> io::Result<()>) -> io::Result<()> {
        let created = creating_as(self.options.user(), self.options.group(), &create);
        match created {
            // The owner may not write here, we may.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => create()?,
            other => other?,
        }
        let is = self.root.stat(name)?;
        if !self.options.owns(is.st_uid, is.st_gid) {
            let owned = self
                .disk
                .set_link_owner(&self.root, name, self.options.user(), self.options.group());
            if let Err(error) = owned {
                let _ = self
                    .disk
                    .unlink(&self.root, name)
                    .or_else(|_| self.disk.remove_directory(&self.root, name));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives the volume's own directory the group and mode of the fsGroup, before the new revision shows.
    pub(super) fn apply_fs_group_to_root(&self) -> io::Result<()> {
        let Some(group) = self.options.fs_group else {
            return Ok(());
        };
        let is = rustix::fs::fstat(&self.root)?;
        if is.st_gid != group {
            self.disk.set_owner(&self.root, None, Some(group))?;
        }
        if is.st_mode & 0o2550 != 0o2550 {
            self.disk.set_mode(&self.root, is.st_mode & 0o7777 | 0o2550)?;
        }
        Ok(())
    }

    /// Gives a file or directory inside a revision its owner, then its mode: chown may clear mode bits.
    pub(super) fn own(&self, fd: impl std::os::fd::AsFd, options: &Options, bits: u32) -> io::Result<()> {
        let (user, group) = (options.user(), options.group());
        if user.is_some() || group.is_some() {
            self.disk.set_owner(&fd, user, group)?;
        }
        self.disk.set_mode(&fd, bits)
    }

    pub(super) fn root(&self) -> &Directory {
        &self.root
    }
}

/// Runs `create` with the thread's file system ids changed, when the process is root; others cannot.
///
/// File system ids are a property of the thread (setfsuid(2)): nobody else in the process is affected.
fn creating_as<T>(uid: Option<u32>, gid: Option<u32>, create: impl FnOnce() -> T) -> T {
    if !rustix::process::geteuid().is_root() || (uid.is_none() && gid.is_none()) {
        return create();
    }
    let _restored_on_drop = FileSystemIds::switch(uid, gid);
    create()
}

struct FileSystemIds {
    uid: Option<u32>,
    gid: Option<u32>,
}

impl FileSystemIds {
    /// The calls report no failure; whoever relies on the ids looks at what was made.
    fn switch(uid: Option<u32>, gid: Option<u32>) -> Self {
        let saved_gid = gid.map(set_fs_gid);
        Self {
            uid: uid.map(set_fs_uid),
            gid: saved_gid,
        }
    }
}

impl Drop for FileSystemIds {
    fn drop(&mut self) {
        // The user first: with it come back the capabilities that setfsuid dropped.
        self.uid.map(set_fs_uid);
        self.gid.map(set_fs_gid);
    }
}

/// Returns the id before.
fn set_fs_uid(uid: u32) -> u32 {
    // SAFETY: takes an integer and changes an attribute of the calling thread only.
    unsafe { libc::setfsuid(uid) }.cast_unsigned()
}

/// Returns the id before.
fn set_fs_gid(gid: u32) -> u32 {
    // SAFETY: takes an integer and changes an attribute of the calling thread only.
    unsafe { libc::setfsgid(gid) }.cast_unsigned()
}
