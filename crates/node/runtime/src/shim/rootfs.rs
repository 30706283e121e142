//! A container's root, built in its own mount namespace by root of the host, before the process becomes anybody.
//!
//! ```text
//! /                     overlay: lower the host's /, upper the layer; / /etc /var … belong to the pod in the upper
//! real submounts        read-only binds; an overlay of their own where the pod must own something in them
//! masked paths          empty and read-only
//! /proc /sys /dev       new, with containerd's masked and read-only paths
//! /tmp /run, writable   tmpfs
//! mounts                binds, nosuid, nodev
//! ```
//!
//! Paths inside are looked up with `RESOLVE_IN_ROOT`: a link, whoever planted it, does not leave the root.

mod files;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, XattrFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use crate::mountinfo;
use crate::spec::ContainerConfig;
use crate::status::SandboxRecord;
use crate::sys::{self, MountChange};

/// Directories that belong to the pod's root, besides `/`.
const OWNED: [&str; 10] = [
    "/etc",
    "/home",
    "/opt",
    "/srv",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/mnt",
];

/// containerd's `MaskedPaths` and `ReadonlyPaths`, release 2.
const MASKED: [&str; 11] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

pub(super) const OVERLAYFS_MAGIC: u64 = 0x794c_7630;
const PROC_MAGIC: u64 = 0x9fa0;

/// A sentence that says what could not be made.
pub(crate) type Setup<T> = Result<T, String>;

pub(crate) fn what<T, E: Into<io::Error>>(result: Result<T, E>, doing: impl FnOnce() -> String) -> Setup<T> {
    result.map_err(|error| format!("{}: {}", doing(), error.into()))
}

/// What the shim opened beforehand, while it was still in the host's mount namespace.
pub(crate) struct Sources {
    /// One tree per entry of `ContainerConfig::mounts`, and whether it is a directory.
    pub(crate) mounts: Vec<(OwnedFd, bool)>,
    /// The pod's `/dev/shm`.
    pub(crate) shared_memory: OwnedFd,
}

/// Opens what a container mounts, as a private copy of each tree, with its restrictions already set.
pub(crate) fn open_mounts(config: &ContainerConfig, users: &OwnedFd) -> Setup<Vec<(OwnedFd, bool)>> {
    let open = |mount: &crate::spec::MountConfig| {
        let shown = mount.source.display();
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let tree = what(rustix::mount::open_tree(CWD, &mount.source, flags), || {
            format!("cannot open {shown}")
        })?;
        let stat = what(rustix::fs::fstat(&tree), || format!("cannot look at {shown}"))?;
        let mut set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        if mount.read_only {
            set |= libc::MOUNT_ATTR_RDONLY;
        }
        let change = MountChange {
            set,
            private: true,
            recursive: true,
            id_map: mount.id_mapped.then(|| users.as_fd()),
            ..MountChange::default()
        };
        what(sys::mount_setattr(&tree, &change), || {
            format!("cannot restrict the mount of {shown}")
        })?;
        Ok((tree, FileType::from_raw_mode(stat.st_mode) == FileType::Directory))
    };
    config.mounts.iter().map(open).collect()
}

/// Builds the root and makes it `/`. The working directory must be the container's layer directory.
pub(crate) fn enter(
    record: &SandboxRecord,
    config: &ContainerConfig,
    sources: &Sources,
    hidden: &[PathBuf],
) -> Setup<()> {
    what(
        rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE),
        || "cannot leave the host's mount propagation".to_owned(),
    )?;
    let owner = Owner {
        uid: record.ids.base,
        gid: record.ids.base,
    };
    let mut root = Root::build(owner, hidden)?;
    root.mask_all(hidden.iter().map(PathBuf::as_path))?;
    root.kernel_trees(config, sources)?;
    root.scratch(config, record)?;
    root.files(&config.files)?;
    for (mount, (tree, is_dir)) in config.mounts.iter().zip(&sources.mounts) {
        root.bind(tree, *is_dir, &mount.target)?;
    }
    if config.cwd.components().count() > 1 {
        root.dir(&config.cwd)?;
    }
    if config.read_only_root {
        root.make_read_only()?;
    }
    root.pivot()
}

/// Who owns what is made inside, in host ids.
#[derive(Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    fn ids(self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
    }
}

struct Root {
    fd: OwnedFd,
    owner: Owner,
    /// What is writable besides the root itself, and is no volume.
    layers: Vec<OwnedFd>,
}

impl Root {
    fn build(owner: Owner, hidden: &[PathBuf]) -> Setup<Self> {
        let mounts = what(mountinfo::current(), || "cannot read the mount table".to_owned())?;
        let submounts: Vec<PathBuf> = mountinfo::shown(&mounts, hidden)
            .into_iter()
            .filter(|path| reachable_by_others(path))
            .collect();
        let here = what(rustix::fs::statfs("."), || {
            "cannot look at the layer directory".to_owned()
        })?;
        if here.f_type as u64 == OVERLAYFS_MAGIC {
            // An overlay cannot be the upper of another.
            attach(&filesystem("tmpfs", &[("mode", "0700")], 0)?, CWD, ".")?;
            // The new mount is over the working directory, which still is the old one.
            let again = what(rustix::process::getcwd(Vec::new()), || {
                "cannot name the layer directory".to_owned()
            })?;
            what(rustix::process::chdir(again), || {
                "cannot enter the layer directory".to_owned()
            })?;
        }
        make_dir(Path::new("m"), 0o755, None)?;
        let upper = Upper {
            dir: "u".into(),
            work: "w".into(),
            place: "/".into(),
        };
        upper.prepare(owner, &submounts)?;
        attach(&upper.overlay()?, CWD, "m")?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = what(rustix::fs::open("m", flags, Mode::empty()), || {
            "cannot open the root".to_owned()
        })?;
        let mut root = Self {
            fd,
            owner,
            layers: Vec::new(),
        };
        for (index, place) in submounts.iter().enumerate() {
            root.submount(index, place, &submounts)?;
        }
        Ok(root)
    }

    /// Shows a file system that is mounted on the host below its root.
    fn submount(&mut self, index: usize, place: &Path, all: &[PathBuf]) -> Setup<()> {
        // A place that the pod cannot see, such as one in an empty /root, needs nothing.
        let Ok(target) = self.open(place) else {
            return Ok(());
        };
        if OWNED.iter().any(|owned| Path::new(owned).starts_with(place)) {
            let upper = Upper {
                dir: format!("u{index}").into(),
                work: format!("w{index}").into(),
                place: place.into(),
            };
            upper.prepare(self.owner, all)?;
            let overlay = upper.overlay()?;
            attach(&overlay, &target, "")?;
            self.layers.push(overlay);
            return Ok(());
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = what(rustix::mount::open_tree(CWD, place, flags), || {
            format!("cannot open {}", place.display())
        })?;
        let set = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        what(
            sys::mount_setattr(
                &tree,
                &MountChange {
                    set,
                    ..MountChange::default()
                },
            ),
            || format!("cannot restrict {}", place.display()),
        )?;
        attach(&tree, &target, "")
    }

    /// `/proc`, `/sys`, `/dev`.
    fn kernel_trees(&self, config: &ContainerConfig, sources: &Sources) -> Setup<()> {
        let plain = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
        attach(
            &filesystem("proc", &[], plain)?,
            self.dir(Path::new("/proc"))?,
            "",
        )?;
        let sys_attributes = if config.privileged {
            plain
        } else {
            plain | libc::MOUNT_ATTR_RDONLY
        };
        attach(
            &filesystem("sysfs", &[], sys_attributes)?,
            self.dir(Path::new("/sys"))?,
            "",
        )?;
        self.devices(sources)?;
        if config.privileged {
            return Ok(());
        }
        for path in READ_ONLY {
            let Ok(target) = self.open(Path::new(path)) else {
                continue;
            };
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC
                | OpenTreeFlags::AT_EMPTY_PATH;
            let tree = what(rustix::mount::open_tree(&target, "", flags), || {
                format!("cannot open {path}")
            })?;
            let change = MountChange {
                set: libc::MOUNT_ATTR_RDONLY,
                ..MountChange::default()
            };
            what(sys::mount_setattr(&tree, &change), || {
                format!("cannot make {path} read-only")
            })?;
            attach(&tree, &target, "")?;
        }
        self.mask_all(MASKED.iter().map(Path::new))
    }

    fn devices(&self, sources: &Sources) -> Setup<()> {
        let noexec = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
        let (uid, gid) = (self.owner.uid.to_string(), self.owner.gid.to_string());
        // Not the default mode 1777: with it the kernel refuses `> /dev/null` to anybody but the owner of the node.
        let options = [
            ("mode", "0755"),
            ("size", "64k"),
            ("uid", uid.as_str()),
            ("gid", gid.as_str()),
        ];
        attach(
            &filesystem("tmpfs", &options, noexec)?,
            self.dir(Path::new("/dev"))?,
            "",
        )?;
        let dev = self.dir(Path::new("/dev"))?;
        for (name, major, minor) in [
            ("null", 1, 3),
            ("zero", 1, 5),
            ("full", 1, 7),
            ("random", 1, 8),
            ("urandom", 1, 9),
            ("tty", 5, 0),
        ] {
            let device = rustix::fs::makedev(major, minor);
            what(
                rustix::fs::mknodat(&dev, name, FileType::CharacterDevice, Mode::from(0o666), device),
                || format!("cannot make /dev/{name}"),
            )?;
        }
        for (name, text) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            what(rustix::fs::symlinkat(text, &dev, name), || {
                format!("cannot link /dev/{name}")
            })?;
        }
        let tty_group = (self.owner.gid + 5).to_string();
        let options = [
            ("mode", "0620"),
            ("ptmxmode", "0666"),
            ("gid", tty_group.as_str()),
            // Of the 4096 that the kernel has for all.
            ("max", "256"),
        ];
        attach(
            &filesystem("devpts", &options, noexec)?,
            self.dir(Path::new("/dev/pts"))?,
            "",
        )?;
        attach(&sources.shared_memory, self.dir(Path::new("/dev/shm"))?, "")?;
        match rustix::mount::fsopen("mqueue", FsOpenFlags::FSOPEN_CLOEXEC) {
            // A kernel without POSIX message queues has nothing to show here.
            Err(Errno::NODEV) => Ok(()),
            _ => {
                let queues = filesystem("mqueue", &[], noexec | libc::MOUNT_ATTR_NODEV)?;
                attach(&queues, self.dir(Path::new("/dev/mqueue"))?, "")
            }
        }
    }

    /// `/tmp`, `/run`, what the image writes to, and the links.
    fn scratch(&mut self, config: &ContainerConfig, record: &SandboxRecord) -> Setup<()> {
        self.tmpfs(Path::new("/tmp"), "1777", self.owner)?;
        self.tmpfs(Path::new("/run"), "0755", self.owner)?;
        let lock = self.dir(Path::new("/run/lock"))?;
        what(
            rustix::fs::chmodat(&lock, ".", Mode::from(0o1777), AtFlags::empty()),
            || "cannot open up /run/lock".to_owned(),
        )?;
        let user = Owner {
            uid: record.ids.base + config.user.uid,
            gid: record.ids.base + config.user.gid,
        };
        for path in &config.writable {
            self.tmpfs(path, "0755", user)?;
        }
        for (link, text) in &config.links {
            let (Some(parent), Some(name)) = (link.parent(), link.file_name()) else {
                return Err(format!("cannot link {}: not a path of a file", link.display()));
            };
            let parent = self.dir(parent)?;
            match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(format!("cannot replace {}: {error}", link.display())),
            }
            what(rustix::fs::symlinkat(text, &parent, name), || {
                format!("cannot link {}", link.display())
            })?;
            let (uid, gid) = user.ids();
            what(
                rustix::fs::chownat(&parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
                || format!("cannot own {}", link.display()),
            )?;
        }
        Ok(())
    }

    fn tmpfs(&mut self, path: &Path, mode: &str, owner: Owner) -> Setup<()> {
        let flags = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
        let (uid, gid) = (owner.uid.to_string(), owner.gid.to_string());
        let options = [("mode", mode), ("uid", uid.as_str()), ("gid", gid.as_str())];
        let tmpfs = filesystem("tmpfs", &options, flags)?;
        attach(&tmpfs, self.dir(path)?, "")?;
        self.layers.push(tmpfs);
        Ok(())
    }

    /// Last, for the points of mounts are made in what is read-only then. `/dev` and the volumes keep their own mode.
    fn make_read_only(&self) -> Setup<()> {
        let change = MountChange {
            set: libc::MOUNT_ATTR_RDONLY,
            ..MountChange::default()
        };
        for layer in self.layers.iter().chain([&self.fd]) {
            what(sys::mount_setattr(layer, &change), || {
                "cannot make the root read-only".to_owned()
            })?;
        }
        Ok(())
    }

    fn bind(&self, tree: &OwnedFd, is_dir: bool, target: &Path) -> Setup<()> {
        let point = if is_dir {
            self.dir(target)?
        } else {
            self.file(target)?
        };
        let at = what(rustix::fs::fstatfs(&point), || {
            format!("cannot look at {}", target.display())
        })?;
        if at.f_type as u64 == PROC_MAGIC {
            return Err(format!("cannot mount at {}: it is in /proc", target.display()));
        }
        attach(tree, &point, "").map_err(|reason| format!("cannot mount at {}: {reason}", target.display()))
    }

    /// Hides each path that exists: a directory under an empty one, a file under `/dev/null`.
    fn mask_all<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Setup<()> {
        for path in paths {
            let Ok(target) = self.open(path) else { continue };
            let stat = what(rustix::fs::fstat(&target), || {
                format!("cannot look at {}", path.display())
            })?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
                attach(
                    &filesystem("tmpfs", &[("mode", "0"), ("size", "4k")], attributes)?,
                    &target,
                    "",
                )?;
            } else {
                let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
                let null = what(rustix::mount::open_tree(CWD, "/dev/null", flags), || {
                    "cannot open /dev/null".to_owned()
                })?;
                attach(&null, &target, "")?;
            }
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.open_as(path, OFlags::PATH | OFlags::CLOEXEC)
    }

    fn open_as(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = path.strip_prefix("/").unwrap_or(path);
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        rustix::fs::openat2(
            &self.fd,
            relative,
            flags,
            Mode::empty(),
            ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
        )
    }

    /// Opens a directory, making what is missing of its path; that then belongs to the pod.
    fn dir(&self, path: &Path) -> Setup<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let failed = |error: Errno| format!("cannot make the directory {}: {error}", path.display());
        let mut so_far = PathBuf::from("/");
        let mut parent = self.open_as(&so_far, flags).map_err(failed)?;
        for component in path.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::RootDir | Component::CurDir => continue,
                _ => {
                    return Err(format!(
                        "the path {} must be absolute and without ..",
                        path.display()
                    ));
                }
            };
            so_far.push(name);
            parent = match self.open_as(&so_far, flags) {
                Err(Errno::NOENT) => {
                    rustix::fs::mkdirat(&parent, name, Mode::from(0o755)).map_err(failed)?;
                    let (uid, gid) = self.owner.ids();
                    rustix::fs::chownat(&parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
                        .map_err(failed)?;
                    self.open_as(&so_far, flags).map_err(failed)?
                }
                result => result.map_err(failed)?,
            };
        }
        Ok(parent)
    }

    /// Opens a file, making an empty one when it is missing.
    fn file(&self, path: &Path) -> Setup<OwnedFd> {
        let failed = |error: Errno| format!("cannot make the file {}: {error}", path.display());
        match self.open(path) {
            Err(Errno::NOENT) => {}
            result => return result.map_err(failed),
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(format!("the path {} is not that of a file", path.display()));
        };
        let parent = self.dir(parent)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&parent, name, flags, Mode::from(0o644)).map_err(failed)?;
        let (uid, gid) = self.owner.ids();
        rustix::fs::fchown(&made, uid, gid).map_err(failed)?;
        self.open(path).map_err(failed)
    }

    /// Makes this the root and lets go of the host's.
    fn pivot(self) -> Setup<()> {
        what(rustix::process::fchdir(&self.fd), || {
            "cannot enter the root".to_owned()
        })?;
        what(rustix::process::pivot_root(".", "."), || {
            "cannot change the root".to_owned()
        })?;
        what(rustix::mount::unmount(".", UnmountFlags::DETACH), || {
            "cannot leave the host's root".to_owned()
        })?;
        what(rustix::process::chdir("/"), || {
            "cannot enter the new root".to_owned()
        })
    }
}

/// The writable layer of the root, or of a file system below it.
struct Upper {
    dir: PathBuf,
    work: PathBuf,
    place: PathBuf,
}

impl Upper {
    /// Makes the directories that the pod owns before there is an overlay: each has the mode of the one below.
    fn prepare(&self, owner: Owner, submounts: &[PathBuf]) -> Setup<()> {
        make_dir(&self.work, 0o700, None)?;
        if self.place == Path::new("/") {
            make_dir(&self.dir, 0o755, Some(owner))?;
            // An empty one: the host's is nobody's business.
            let home = self.dir.join("root");
            make_dir(&home, 0o700, Some(owner))?;
            opaque(&home)?;
        } else {
            make_dir(&self.dir, 0o755, None)?;
        }
        for owned in OWNED.iter().map(Path::new) {
            // It belongs to the innermost file system that it lies in.
            let home = submounts
                .iter()
                .filter(|place| owned.starts_with(place))
                .max_by_key(|place| place.as_os_str().len());
            if home.map_or(Path::new("/"), PathBuf::as_path) != self.place {
                continue;
            }
            let below = fs::symlink_metadata(owned);
            let mode = match &below {
                Ok(metadata) if metadata.is_dir() => metadata.mode() & 0o7777,
                Ok(_) => continue, // a link: what it leads to is owned, or not, by its own name
                Err(_) => 0o755,
            };
            let relative = owned.strip_prefix(&self.place).unwrap_or(owned);
            let path = if relative.as_os_str().is_empty() {
                self.dir.clone()
            } else {
                self.dir.join(relative)
            };
            make_dir(&path, mode, Some(owner))?;
            // Owning it must not show names that others on the host cannot list.
            if mode & 0o005 != 0o005 {
                opaque(&path)?;
            }
        }
        Ok(())
    }

    fn overlay(&self) -> Setup<OwnedFd> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (lower, upper, work) = (text(&self.place), text(&self.dir), text(&self.work));
        if lower.contains([':', ',', '\\']) {
            return Err(format!("cannot overlay {lower}: its name has one of : , \\"));
        }
        let options = [
            ("lowerdir", lower.as_str()),
            ("upperdir", upper.as_str()),
            ("workdir", work.as_str()),
        ];
        filesystem("overlay", &options, libc::MOUNT_ATTR_NODEV)
    }
}

fn opaque(dir: &Path) -> Setup<()> {
    what(
        rustix::fs::setxattr(dir, "trusted.overlay.opaque", b"y", XattrFlags::empty()),
        || format!("cannot mark {} as opaque", dir.display()),
    )
}

fn make_dir(path: &Path, mode: u32, owner: Option<Owner>) -> Setup<()> {
    let failed = || format!("cannot make {}", path.display());
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        result => what(result, failed)?,
    }
    if let Some(owner) = owner {
        what(
            std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid)),
            failed,
        )?;
        // After the owner, or the set-id bits would be gone.
        what(
            fs::set_permissions(path, fs::Permissions::from_mode(mode)),
            failed,
        )?;
    }
    Ok(())
}

/// Whether every directory above lets others pass.
fn reachable_by_others(path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .all(|dir| fs::metadata(dir).is_ok_and(|metadata| metadata.mode() & 0o001 != 0))
}

/// A new file system instance, not yet attached anywhere.
pub(crate) fn filesystem(kind: &str, options: &[(&str, &str)], attributes: u64) -> Setup<OwnedFd> {
    let make = || -> Result<OwnedFd, Errno> {
        let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            rustix::mount::fsconfig_set_string(&context, *key, *value)?;
        }
        rustix::mount::fsconfig_create(&context)?;
        let attributes = MountAttrFlags::from_bits_retain(attributes as u32);
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    what(make(), || format!("cannot make a file system of type {kind}"))
}

/// Attaches a mount to a path below a directory, or with an empty path to the descriptor itself.
pub(crate) fn attach(mount: &OwnedFd, at: impl AsFd, path: &str) -> Setup<()> {
    let mut flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    if path.is_empty() {
        flags |= MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    }
    what(rustix::mount::move_mount(mount, "", at, path, flags), || {
        "cannot attach a mount".to_owned()
    })
}
