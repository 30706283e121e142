//! Where volumes are on the host, and how they come and go.
//!
//! ```text
//!   <data-dir>/volumes/          one tmpfs of this instance
//!     <pod uid>/<volume>/        configMap, secret, downwardAPI, projected; a Memory emptyDir is a tmpfs of its own here
//!   <data-dir>/empty-dirs/
//!     <pod uid>/<volume>/        emptyDir on disk
//!   <data-dir>/termination-messages/
//!     <pod uid>/<container>.<attempt>
//! ```

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, lchown},
    path::{Path, PathBuf},
};

use hotmap_volume::{Directory, Ownership, remove_tree};
use rustix::{
    fs::CWD,
    mount::{MountFlags, UnmountFlags, mount, unmount},
};

use super::host_path::{self, HostPath};
use crate::pod::{EmptyDirSource, HostPathSource};

/// Bytes that all projected volumes of a node may take: 1,000 objects of the largest size.
const VOLUMES_BYTES_MAX: u64 = 1 << 30;
/// Mode of an emptyDir, as upstream makes it.
const EMPTY_DIR_MODE: u32 = 0o777;
/// How many ids a pod has.
const POD_IDS: u32 = 65_536;

/// Why a volume could not be placed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlacementError {
    #[error("cannot {what} {}: {source}", .path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("hostPath type check failed: {} is not a {expected}", .path.display())]
    WrongType { path: PathBuf, expected: &'static str },
    #[error("hostPath {} is in the data directory of this node, of which no pod is shown anything", .0.display())]
    Own(PathBuf),
}

/// The places of one instance.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    data_dir: PathBuf,
    volumes: PathBuf,
    empty_dirs: PathBuf,
    messages: PathBuf,
}

impl Placement {
    /// Mounts the instance's tmpfs, unless it is there from before.
    pub(crate) fn prepare(data_dir: &Path) -> Result<Self, PlacementError> {
        let placement = Self {
            data_dir: data_dir.to_owned(),
            volumes: data_dir.join("volumes"),
            empty_dirs: data_dir.join("empty-dirs"),
            messages: data_dir.join("termination-messages"),
        };
        for path in placement.roots() {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|source| io_error("create", path, source))?;
        }
        if !is_mount_point(&placement.volumes)
            .map_err(|source| io_error("look at", &placement.volumes, source))?
        {
            mount_tmpfs(&placement.volumes, &format!("mode=0711,size={VOLUMES_BYTES_MAX}"))
                .map_err(|source| io_error("mount a tmpfs on", &placement.volumes, source))?;
        }
        Ok(placement)
    }

    /// The tmpfs of all projected volumes.
    pub(crate) fn volumes(&self) -> &Path {
        &self.volumes
    }

    /// Where the containers of a pod leave their termination messages.
    pub(crate) fn messages(&self, pod_uid: &str) -> PathBuf {
        self.messages.join(pod_uid)
    }

    fn roots(&self) -> [&PathBuf; 3] {
        [&self.volumes, &self.empty_dirs, &self.messages]
    }

    /// Makes an emptyDir that its pod owns; keeps one that is there. In memory it takes `memory_bytes` at most, rounded up to
    /// pages, or half of the machine's memory.
    pub(crate) fn empty_dir(
        &self,
        pod_uid: &str,
        volume: &str,
        source: &EmptyDirSource,
        memory_bytes: Option<u64>,
        owner: Ownership,
        fs_group: Option<u32>,
    ) -> Result<PathBuf, PlacementError> {
        let in_memory = source.is_in_memory();
        let root = if in_memory {
            &self.volumes
        } else {
            &self.empty_dirs
        };
        let path = root.join(pod_uid).join(volume);
        let failed = |what| {
            move |source| PlacementError::Io {
                what,
                path: root.join(pod_uid).join(volume),
                source,
            }
        };
        match fs::symlink_metadata(&path) {
            // What a container made of it stays.
            Ok(found) if is_of(&owner, found.uid()) => return Ok(path),
            // The pod had other ids before a reboot.
            Ok(found) if !in_memory && found.uid() >= POD_IDS => {
                shift_owner(&path, found.uid() - found.uid() % POD_IDS, owner.uid)
                    .map_err(failed("give to its pod"))?;
                return Ok(path);
            }
            // Begun and not finished.
            Ok(_) => self.remove_volume(root, pod_uid, volume)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("look at")(error)),
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(&path)
            .map_err(failed("create"))?;
        if in_memory && !is_mount_point(&path).map_err(failed("look at"))? {
            let size = memory_bytes.map_or_else(String::new, |bytes| format!(",size={bytes}"));
            mount_tmpfs(&path, &format!("mode=0777{size}")).map_err(failed("mount a tmpfs on"))?;
        }
        let mode = if fs_group.is_some() {
            EMPTY_DIR_MODE | 0o2000
        } else {
            EMPTY_DIR_MODE
        };
        // The owner comes last: it says that all is done.
        chown(&path, None, Some(fs_group.unwrap_or(owner.gid))).map_err(failed("give to its pod"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed("open up"))?;
        chown(&path, Some(owner.uid), None).map_err(failed("give to its pod"))?;
        Ok(path)
    }

    fn remove_volume(&self, root: &Path, pod_uid: &str, volume: &str) -> Result<(), PlacementError> {
        let pod = root.join(pod_uid);
        let path = pod.join(volume);
        let failed = |source| io_error("remove", &path, source);
        if is_mount_point(&path).map_err(failed)? {
            unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
                .map_err(|error| failed(error.into()))?;
        }
        let directory = Directory::open(&pod).map_err(failed)?;
        remove_tree(&directory, volume).map_err(|error| failed(io::Error::other(error)))
    }

    /// Finds what of the host a pod names, and pins it.
    pub(crate) fn host_path(&self, source: &HostPathSource) -> Result<HostPath, PlacementError> {
        host_path::find(source, &self.data_dir)
    }

    /// Where an emptyDir on disk is, or would be.
    pub(crate) fn empty_dir_on_disk(&self, pod_uid: &str, volume: &str) -> PathBuf {
        self.empty_dirs.join(pod_uid).join(volume)
    }

    /// Removes every volume of a pod. Nobody may write them any more.
    pub(crate) fn remove(&self, pod_uid: &str) -> Result<(), PlacementError> {
        for root in self.roots() {
            let path = root.join(pod_uid);
            let failed = |source| io_error("remove", &path, source);
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            for entry in entries {
                let volume = entry.map_err(failed)?.path();
                if is_mount_point(&volume).map_err(failed)? {
                    unmount(&volume, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
                        .map_err(|error| failed(error.into()))?;
                }
            }
            let directory = Directory::open(root).map_err(failed)?;
            remove_tree(&directory, pod_uid).map_err(|error| failed(io::Error::other(error)))?;
        }
        Ok(())
    }

    /// Uids of the pods that have volumes here.
    pub(crate) fn pods(&self) -> io::Result<Vec<String>> {
        let mut pods = Vec::new();
        for root in self.roots() {
            for entry in fs::read_dir(root)? {
                pods.push(entry?.file_name().to_string_lossy().into_owned());
            }
        }
        pods.sort_unstable();
        pods.dedup();
        Ok(pods)
    }

    /// Takes the instance's tmpfs and every volume away: nothing of a directory that is purged may stay mounted.
    pub(crate) fn purge(data_dir: &Path) -> Result<(), PlacementError> {
        let volumes = data_dir.join("volumes");
        let failed = |source| io_error("unmount", &volumes, source);
        let mounted = fs::read_to_string("/proc/self/mountinfo").map_err(failed)?;
        let beneath = |line: &str| {
            line.split(' ')
                .nth(4)
                .map(PathBuf::from)
                .filter(|point| point.starts_with(&volumes))
        };
        let mut points: Vec<PathBuf> = mounted.lines().filter_map(beneath).collect();
        // The innermost first.
        points.sort_unstable_by_key(|point| std::cmp::Reverse(point.components().count()));
        for point in points {
            unmount(&point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
                .map_err(|error| failed(error.into()))?;
        }
        Ok(())
    }
}

/// The directory of a pod beneath the tmpfs: others of the host may pass through it, not list it.
pub(super) fn pod_directory(root: &Directory, pod_uid: &str) -> io::Result<Directory> {
    match rustix::fs::mkdirat(root, pod_uid, rustix::fs::Mode::from_raw_mode(0o711)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => root.open_directory(pod_uid),
        Err(error) => Err(error.into()),
    }
}

/// Whether a host id is one of the pod's: its containers may have given the directory to another of theirs.
fn is_of(owner: &Ownership, uid: u32) -> bool {
    (owner.uid..=owner.uid.saturating_add(POD_IDS - 1)).contains(&uid)
}

/// Gives what belongs to the range of ids that begins at `from` to the one that begins at `to`. Nobody uses the tree.
fn shift_owner(root: &Path, from: u32, to: u32) -> io::Result<()> {
    let shifted = |id: u32| id.checked_sub(from).filter(|id| *id < POD_IDS).map(|id| to + id);
    let mut left = vec![root.to_owned()];
    // The root comes last: it says whether all is done.
    let mut done = Vec::new();
    while let Some(path) = left.pop() {
        if fs::symlink_metadata(&path)?.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
        done.push(path);
    }
    for path in done.into_iter().rev() {
        let found = fs::symlink_metadata(&path)?;
        lchown(&path, shifted(found.uid()), shifted(found.gid()))?;
        if !found.is_symlink() {
            // A change of owner takes the set-id bits away.
            fs::set_permissions(&path, found.permissions())?;
        }
    }
    Ok(())
}

fn mount_tmpfs(path: &Path, options: &str) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    // Linux 6.4 can keep a tmpfs out of swap; older ones refuse the word.
    let with_noswap = std::ffi::CString::new(format!("{options},noswap"))?;
    let plain = std::ffi::CString::new(options)?;
    match mount("hotmap", path, "tmpfs", flags, Some(with_noswap.as_c_str())) {
        Err(rustix::io::Errno::INVAL) => Ok(mount("hotmap", path, "tmpfs", flags, Some(plain.as_c_str()))?),
        mounted => Ok(mounted?),
    }
}

fn is_mount_point(path: &Path) -> io::Result<bool> {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
    let attributes = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())?.stx_attributes;
    Ok(attributes.contains(StatxAttributes::MOUNT_ROOT))
}

pub(super) fn io_error(what: &'static str, path: &Path, source: io::Error) -> PlacementError {
    PlacementError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_moves_to_other_ids_and_what_is_foreign_stays() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("e");
        fs::create_dir_all(root.join("sub")).expect("made");
        fs::write(root.join("sub/own"), "x").expect("written");
        fs::write(root.join("foreign"), "x").expect("written");
        symlink("/etc/passwd", root.join("link")).expect("linked");
        let (from, to) = (4 * POD_IDS, 9 * POD_IDS);
        for (path, id) in [
            ("sub", from),
            ("sub/own", from + 1_000),
            ("link", from),
            ("foreign", 7),
            ("", from),
        ] {
            lchown(root.join(path), Some(id), Some(id)).expect("owned");
        }
        fs::set_permissions(&root, fs::Permissions::from_mode(0o2700)).expect("changed");
        shift_owner(&root, from, to).expect("shifted");
        for (path, id) in [
            ("sub", to),
            ("sub/own", to + 1_000),
            ("link", to),
            ("foreign", 7),
            ("", to),
        ] {
            let found = fs::symlink_metadata(root.join(path)).expect("there");
            assert_eq!((found.uid(), found.gid()), (id, id), "{path:?}");
        }
        let mode = fs::metadata(&root).expect("there").mode();
        assert_eq!(mode & 0o7777, 0o2700);
        assert_eq!(fs::metadata("/etc/passwd").expect("there").uid(), 0);
    }
}
