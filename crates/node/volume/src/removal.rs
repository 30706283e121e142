//! Deletes a directory tree without following links and without crossing mounts.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::directory::{Directory, require_single_name};
use crate::disk::Disk;

/// So many handles are open at once; what lies deeper is moved up first, so depth has no limit.
const OPEN_DIRECTORIES_MAX: usize = 64;

/// So many names are in memory at once per open directory; the rest is read when these are gone.
const NAMES_PER_READ: usize = 512;

/// Removes `name`, directly in `parent`, with everything beneath it. A name that does not exist is done.
///
/// Links are removed, never followed. Removal stops at the first mount point: what is mounted there is not
/// the tree's to delete. Depth and breadth are bounded by the disk only, not by memory or open files.
///
/// # Errors
/// [`RemoveError`]; what was removed until then stays removed, and calling again goes on.
pub fn remove_tree(parent: &Directory, name: impl AsRef<OsStr>) -> Result<(), RemoveError> {
    remove_tree_on(&Disk::default(), parent, name.as_ref())
}

/// Why a tree is still there, at least in part.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Something is mounted inside the tree; unmount it first.
    #[error("cannot remove {}: something is mounted there", .path.display())]
    Mounted {
        /// The mount point, beneath the parent that was given.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot remove {}", .path.display())]
    Remove {
        /// The entry, beneath the parent that was given.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

pub(crate) fn remove_tree_on(disk: &Disk, parent: &Directory, name: &OsStr) -> Result<(), RemoveError> {
    let invalid = |source| RemoveError::Remove {
        path: name.into(),
        source,
    };
    require_single_name(name.as_bytes()).map_err(invalid)?;
    let name = CString::new(name.as_bytes()).map_err(|error| invalid(error.into()))?;
    Removal {
        disk,
        parent,
        stack: Vec::new(),
        lifted: 0,
    }
    .run(name)
}

struct Removal<'a> {
    disk: &'a Disk,
    parent: &'a Directory,
    stack: Vec<Level>,
    lifted: u64,
}

/// A directory on the way down, and which of its entries are still to be looked at.
struct Level {
    directory: Directory,
    name: CString,
    pending: Vec<CString>,
}

impl Removal<'_> {
    fn run(mut self, name: CString) -> Result<(), RemoveError> {
        self.remove_entry(name)?;
        while let Some(level) = self.stack.last_mut() {
            if let Some(name) = level.pending.pop() {
                self.remove_entry(name)?;
                continue;
            }
            let more = level
                .directory
                .names(NAMES_PER_READ)
                .map_err(|error| self.failed(c"", error))?;
            if !more.is_empty() {
                let level = self.stack.last_mut().expect("only looked at until now");
                level.pending.extend(more.into_iter().map(|(name, _)| name));
                continue;
            }
            let emptied = self.stack.pop().expect("only looked at until now");
            match self.disk.remove_directory(self.innermost(), &*emptied.name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed(&emptied.name, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Unlinks what is no directory; a directory goes onto the stack.
    fn remove_entry(&mut self, name: CString) -> Result<(), RemoveError> {
        match self.disk.unlink(self.innermost(), &*name) {
            Err(error) if is(&error, Errno::ISDIR) => self.descend(name),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(&name, error)),
            _ => Ok(()),
        }
    }

    fn descend(&mut self, name: CString) -> Result<(), RemoveError> {
        if self.stack.len() >= OPEN_DIRECTORIES_MAX {
            return self.lift(&name);
        }
        match self.innermost().open_directory(&*name) {
            Ok(directory) => {
                self.stack.push(Level {
                    directory,
                    name,
                    pending: Vec::new(),
                });
                Ok(())
            }
            Err(error) => Err(self.failed(&name, error)),
        }
    }

    /// Moves a directory from the deepest level to the outermost, which is read again once the rest is gone.
    fn lift(&mut self, name: &CStr) -> Result<(), RemoveError> {
        loop {
            self.lifted += 1;
            let outermost = &self.stack[0].directory;
            match self.disk.lift(
                self.innermost(),
                name,
                outermost,
                &format!("..lifted.{}", self.lifted),
            ) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                moved => return moved.map_err(|error| self.failed(name, error)),
            }
        }
    }

    fn innermost(&self) -> &Directory {
        self.stack.last().map_or(self.parent, |level| &level.directory)
    }

    fn failed(&self, name: &CStr, source: io::Error) -> RemoveError {
        let path = self.stack.iter().map(|level| &*level.name).chain([name]);
        let path = path.map(|name| OsStr::from_bytes(name.to_bytes())).collect();
        if is(&source, Errno::XDEV) || is(&source, Errno::BUSY) {
            RemoveError::Mounted { path }
        } else {
            RemoveError::Remove { path, source }
        }
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_tree_goes_and_what_its_links_name_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let outside = temporary.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        let volumes = temporary.path().join("volumes");
        fs::create_dir_all(volumes.join("config/a/b")).unwrap();
        fs::write(volumes.join("config/a/b/file"), "x").unwrap();
        symlink(&outside, volumes.join("config/a/link")).unwrap();
        symlink("../../outside/kept", volumes.join("config/file-link")).unwrap();

        let parent = Directory::open(&volumes).unwrap();
        remove_tree(&parent, "config").unwrap();
        assert!(!volumes.join("config").exists() && outside.join("kept").exists());
        remove_tree(&parent, "config").unwrap();
    }

    #[test]
    fn a_link_in_place_of_the_tree_is_removed_and_not_followed() {
        let temporary = tempfile::tempdir().unwrap();
        fs::create_dir(temporary.path().join("outside")).unwrap();
        symlink("outside", temporary.path().join("volume")).unwrap();
        remove_tree(&Directory::open(temporary.path()).unwrap(), "volume").unwrap();
        assert!(temporary.path().join("outside").exists());
        assert!(temporary.path().join("volume").symlink_metadata().is_err());
    }

    #[test]
    fn names_that_walk_are_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let parent = Directory::open(temporary.path()).unwrap();
        for name in ["", ".", "..", "a/b", "../x", "/etc"] {
            assert!(remove_tree(&parent, name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn depth_and_breadth_have_no_limit() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Directory::open(temporary.path()).unwrap();
        let disk = Disk::default();
        let mut deep = root.create_directory(&disk, "deep").unwrap().unwrap();
        for _ in 0..3_000 {
            deep = deep.create_directory(&disk, "d").unwrap().unwrap();
        }
        for file in 0..2 * NAMES_PER_READ + 1 {
            disk.create_file(&deep, &file.to_string()).unwrap();
        }
        drop(deep);
        remove_tree(&root, "deep").unwrap();
        assert_eq!(root.names(1).unwrap().len(), 0);
    }

    /// Needs root; the mount lives in a mount namespace of the test's thread and ends with it.
    #[test]
    fn a_mount_inside_the_tree_stops_the_removal() {
        use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let temporary = tempfile::tempdir().unwrap();
        let (kept, tree) = (temporary.path().join("kept"), temporary.path().join("tree"));
        fs::create_dir_all(tree.join("a/mounted")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let root = Directory::open(temporary.path()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: the thread was just made, and nobody else shares its file system attributes after.
                unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
                mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
                mount_bind(&kept, tree.join("a/mounted")).unwrap();
                // A handle of the new namespace: the old one does not see the mount.
                let root = Directory::open(temporary.path()).unwrap();
                let error = remove_tree(&root, "tree").expect_err("a mount is in the way");
                let RemoveError::Mounted { path } = error else {
                    panic!("{error}")
                };
                assert_eq!(path, std::path::Path::new("tree/a/mounted"));
            });
        });
        assert!(kept.join("file").exists());
        remove_tree(&root, "tree").unwrap();
    }
}
