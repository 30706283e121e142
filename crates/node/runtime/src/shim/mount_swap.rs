//! Shows something else at a place where a container has a mount, while the container runs.
//!
//! ```text
//!   before         stub ◀── old
//!   move beneath   stub ◀── new ◀── old     the container still sees the old one
//!   unmount top    stub ◀── new             one step later the new one; never the stub
//! ```
//!
//! The shim enters the container's mount namespace and comes back: it has one thread, so it needs no helper. What is mounted
//! there is known by the number the kernel gave the mount, so nothing that a container rearranges in its tree leads us elsewhere.
//!
//! Two mounts at one place are dangerous: if the lower one's file is unlinked on the host, the kernel drops the upper one. So every
//! swap begins with exactly one, and a swap that stopped between its two steps is put right first.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags};

use super::namespaces::Namespaces;
use super::rootfs::{OVERLAYFS_MAGIC, Setup, what};
use crate::mount_beneath::can_mount_beneath;
use crate::mountinfo::{self, Mount};
use crate::protocol::{Refusal, SwapCall, SwapOutcome};
use crate::sys::{self, MountChange};

/// Links followed from the path of a mount to its place; the kernel's own limit.
const LINKS_MAX: usize = 40;

const TMPFS_MAGIC: u64 = 0x0102_1994;

/// One of the mounts that a container was started with.
pub(crate) struct BoundMount {
    target: PathBuf,
    /// The kernel's number of what is mounted there now.
    mount_id: u64,
    /// A swap stopped between its steps: there may be two.
    is_unsettled: bool,
    place: Option<Place>,
}

/// Where a mount is, found once: later the container may rename what leads there.
struct Place {
    parent: OwnedFd,
    name: OsString,
    /// The parent's directory without what is mounted in it, if the container's own layer is what it shows.
    bare: Option<OwnedFd>,
}

/// A file or directory, and the mount through which it is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    mount_id: u64,
    device: (u32, u32),
    inode: u64,
    is_dir: bool,
}

/// The container's first process.
pub(crate) struct Process<'a> {
    pub(crate) pid: i32,
    pub(crate) pidfd: &'a OwnedFd,
}

impl BoundMount {
    /// Takes note of a mount that is about to be attached.
    pub(crate) fn of(target: &Path, tree: &OwnedFd) -> Setup<Self> {
        let shown = what(Shown::at(tree, OsStr::new("")), || {
            format!("cannot look at the mount for {}", target.display())
        })?;
        Ok(Self {
            target: target.to_owned(),
            mount_id: shown.mount_id,
            is_unsettled: false,
            place: None,
        })
    }
}

/// Makes a mount show what `source` shows. The same thing again is fine.
pub(crate) fn swap(
    namespaces: &Namespaces,
    process: &Process<'_>,
    mounts: &mut [BoundMount],
    call: &SwapCall,
    source: &OwnedFd,
) -> Result<SwapOutcome, Refusal> {
    let setup = |message| Refusal::Setup { message };
    let found = mounts.iter().position(|mount| mount.target == call.target);
    let index = found.ok_or_else(|| Refusal::Invalid {
        message: format!("nothing is mounted at {}", call.target.display()),
    })?;
    // Before we leave: what is cloned has to lie in the namespace we are in.
    let tree = clone_tree(source, call.read_only).map_err(setup)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = what(rustix::fs::open("/proc", flags, Mode::empty()), || {
        "cannot open /proc".to_owned()
    })
    .map_err(setup)?;
    namespaces.inside_mounts_of(process.pidfd, || {
        Swap {
            process,
            proc: &proc,
            tree: &tree,
        }
        .carry_out(mounts, index, call.verify)
    })?
}

fn clone_tree(source: &OwnedFd, read_only: bool) -> Setup<OwnedFd> {
    let failed = || "cannot clone what is to be shown".to_owned();
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = what(rustix::mount::open_tree(source, "", flags), failed)?;
    let mut set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    if read_only {
        set |= libc::MOUNT_ATTR_RDONLY;
    }
    let change = MountChange {
        set,
        private: true,
        ..MountChange::default()
    };
    what(sys::mount_setattr(&tree, &change), failed)?;
    Ok(tree)
}

struct Swap<'a> {
    process: &'a Process<'a>,
    /// The host's.
    proc: &'a OwnedFd,
    tree: &'a OwnedFd,
}

impl Swap<'_> {
    fn carry_out(
        &self,
        mounts: &mut [BoundMount],
        index: usize,
        verify: bool,
    ) -> Result<SwapOutcome, Refusal> {
        let setup = |message| Refusal::Setup { message };
        let target = mounts[index].target.clone();
        let shown = || target.display();
        let failed = |doing: &str, error: Errno| Refusal::Setup {
            message: format!("cannot {doing} {}: {error}", shown()),
        };
        let place = match mounts[index].place.take() {
            Some(place) => place,
            None => self.find(mounts, &target)?,
        };
        let mount = &mut mounts[index];
        let place = mount.place.insert(place);
        let look =
            |place: &Place| Shown::at(&place.parent, &place.name).map_err(|error| failed("look at", error));
        let mut old = look(place)?;
        if verify || mount.is_unsettled || old.mount_id != mount.mount_id {
            self.settle(place, old.mount_id, mount.mount_id)?;
            old = look(place)?;
            (mount.mount_id, mount.is_unsettled) = (old.mount_id, false);
        }
        let new =
            Shown::at(self.tree, OsStr::new("")).map_err(|error| failed("look at what is for", error))?;
        if (new.device, new.inode) == (old.device, old.inode) {
            return Ok(SwapOutcome::Unchanged);
        }
        if new.is_dir != old.is_dir {
            let word = |is_dir| if is_dir { "directory" } else { "file" };
            return Err(Refusal::Unavailable {
                message: format!(
                    "{} was a {} when the container started and would be a {} now",
                    shown(),
                    word(old.is_dir),
                    word(new.is_dir)
                ),
            });
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_BENEATH;
        match rustix::mount::move_mount(self.tree, "", &place.parent, &place.name, flags) {
            Err(Errno::INVAL) => {
                return Err(Refusal::Unavailable {
                    message: refused_by_kernel(&target),
                });
            }
            moved => moved.map_err(|error| failed("mount beneath", error))?,
        }
        mount.is_unsettled = true;
        place
            .unmount_top()
            .map_err(|error| failed("unmount the old", error))?;
        (mount.mount_id, mount.is_unsettled) = (new.mount_id, false);
        let is_told = place.tell(old.is_dir).map_err(setup).unwrap_or(false);
        Ok(SwapOutcome::Swapped { is_told })
    }

    /// Finds where a mount is, as the start of the container found it.
    fn find(&self, mounts: &[BoundMount], target: &Path) -> Result<Place, Refusal> {
        let (parent, name) = resolve(target).map_err(|error| Refusal::Setup {
            message: format!("cannot find the place of {}: {error}", target.display()),
        })?;
        let failed = |error: io::Error| Refusal::Setup {
            message: format!("cannot look around {}: {error}", target.display()),
        };
        let own = Shown::at(&parent, OsStr::new("")).map_err(|error| failed(error.into()))?;
        let table = self.mount_table().map_err(failed)?;
        let is_own_layer = mountinfo::ancestors(&table, own.mount_id)
            .all(|above| mounts.iter().all(|mount| mount.mount_id != above.id));
        let bare = if is_own_layer { bare_copy(&parent) } else { None };
        Ok(Place { parent, name, bare })
    }

    /// Leaves one mount at the place: of several the lowest, which is the newest. `known`: it must be among them.
    fn settle(&self, place: &Place, top: u64, known: u64) -> Result<(), Refusal> {
        let failed = |error: io::Error| Refusal::Setup {
            message: format!("cannot count the mounts at {}: {error}", place.name.display()),
        };
        let table = self.mount_table().map_err(failed)?;
        let stack: Vec<u64> = mountinfo::stack(&table, top).map(|mount| mount.id).collect();
        if !stack.contains(&known) {
            return Err(Refusal::Unavailable {
                message: "the container's first process has left the mounts it was started with".to_owned(),
            });
        }
        for _ in 1..stack.len() {
            place.unmount_top().map_err(|error| failed(error.into()))?;
        }
        Ok(())
    }

    fn mount_table(&self) -> io::Result<Vec<Mount>> {
        let path = format!("{}/mountinfo", self.process.pid);
        let file = rustix::fs::openat(self.proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = Vec::new();
        io::Read::read_to_end(&mut std::fs::File::from(file), &mut text)?;
        Ok(mountinfo::parse(&text))
    }
}

impl Shown {
    fn at(dir: &OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW
            | if name.is_empty() {
                AtFlags::EMPTY_PATH
            } else {
                AtFlags::empty()
            };
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
        let found = rustix::fs::statx(dir, name, flags, wanted)?;
        Ok(Self {
            mount_id: found.stx_mnt_id,
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            is_dir: FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory,
        })
    }
}

impl Place {
    fn unmount_top(&self) -> Result<(), Errno> {
        // A mount is only taken away by its path.
        rustix::process::fchdir(&self.parent)?;
        rustix::mount::unmount(&self.name, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
    }

    /// Tells who watches the directory: no event comes from a mount. The file that is covered is written to, as far as it is the
    /// container's own; a covered directory gets a new time. False if it is not, and nobody can be told.
    fn tell(&self, is_dir: bool) -> Setup<bool> {
        let Some(bare) = &self.bare else { return Ok(false) };
        let failed = || format!("cannot tell watchers of {}", self.name.display());
        if is_dir {
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: libc::UTIME_NOW,
            };
            let times = Timestamps {
                last_access: now,
                last_modification: now,
            };
            what(
                rustix::fs::utimensat(bare, &self.name, &times, AtFlags::SYMLINK_NOFOLLOW),
                failed,
            )?;
            return Ok(true);
        }
        let stat = what(
            rustix::fs::statat(bare, &self.name, AtFlags::SYMLINK_NOFOLLOW),
            failed,
        )?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(false);
        }
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let stub = what(rustix::fs::openat(bare, &self.name, flags, Mode::empty()), failed)?;
        // MODIFY, and CLOSE_WRITE with the end of this scope.
        what(rustix::io::pwrite(&stub, b"\n", 0), failed)?;
        Ok(true)
    }
}

/// The directory of a mount and its name in there, links followed. The root is the container's: no link leaves it.
fn resolve(target: &Path) -> io::Result<(OwnedFd, OsString)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut parent = rustix::fs::open("/", flags, Mode::empty())?;
    let mut path = target.to_owned();
    for _ in 0..LINKS_MAX {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let above = match path.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        parent = rustix::fs::openat2(&parent, above, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?;
        match rustix::fs::readlinkat(&parent, &name, Vec::new()) {
            Ok(text) => path = OsString::from_vec(text.into_bytes()).into(),
            Err(Errno::INVAL) => return Ok((parent, name)),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::LOOP.into())
}

/// A copy of the directory's mount alone, writable, if it is of the container's own layer. Without it nobody is told, and that is all.
fn bare_copy(parent: &OwnedFd) -> Option<OwnedFd> {
    let kind = rustix::fs::fstatfs(parent).ok()?.f_type as u64;
    if ![OVERLAYFS_MAGIC, TMPFS_MAGIC].contains(&kind) {
        return None;
    }
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let bare = rustix::mount::open_tree(parent, "", flags).ok()?;
    let change = MountChange {
        clear: libc::MOUNT_ATTR_RDONLY,
        private: true,
        ..MountChange::default()
    };
    sys::mount_setattr(bare.as_fd(), &change).ok()?;
    Some(bare)
}

/// The kernel has one word for everything it does not do; the release tells the likeliest reason.
fn refused_by_kernel(target: &Path) -> String {
    match can_mount_beneath() {
        Err(too_old) => too_old.to_string(),
        Ok(()) => format!(
            "the kernel does not mount beneath {} (EINVAL): the mount is locked",
            target.display()
        ),
    }
}
