//! Takes away what a pod has written. Whoever wrote it may have nested directories as deep as the disk takes them.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Removes a tree; one that is not there is fine. Links are removed, never followed. What is deeper than the second level is moved
/// up first, so depth costs neither stack nor descriptors, and nothing that a pod does can overflow either.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let top = match open(CWD, path) {
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => return fs::remove_file(path),
        result => result?,
    };
    let mut removal = Removal { top, lifted: 0 };
    removal.empty()?;
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

struct Removal {
    top: OwnedFd,
    lifted: u64,
}

impl Removal {
    fn empty(&mut self) -> io::Result<()> {
        // What was moved up while the directory was read may have been missed.
        loop {
            let mut is_empty = true;
            for name in names(&self.top)? {
                is_empty = false;
                self.remove(&name?)?;
            }
            if is_empty {
                return Ok(());
            }
        }
    }

    fn remove(&mut self, name: &CStr) -> io::Result<()> {
        if unlinked(&self.top, name)? {
            return Ok(());
        }
        let directory = open(&self.top, name)?;
        loop {
            match rustix::fs::unlinkat(&self.top, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            for below in names(&directory)? {
                let below = below?;
                if !unlinked(&directory, &below)? {
                    self.lift(&directory, &below)?;
                }
            }
        }
    }

    fn lift(&mut self, from: &OwnedFd, name: &CStr) -> io::Result<()> {
        loop {
            self.lifted += 1;
            let lifted = format!("..lifted.{}", self.lifted);
            match rustix::fs::renameat_with(from, name, &self.top, lifted, RenameFlags::NOREPLACE) {
                // A name that the pod has thought of too.
                Err(Errno::EXIST) => {}
                result => return Ok(result?),
            }
        }
    }
}

/// Removes what is no directory, or an empty one; false for one that is not empty.
fn unlinked(parent: &OwnedFd, name: &CStr) -> io::Result<bool> {
    let removed = match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR),
        result => result,
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn open(at: impl std::os::fd::AsFd, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

fn names(directory: &OwnedFd) -> io::Result<impl Iterator<Item = io::Result<CString>> + use<>> {
    let entries = Dir::read_from(directory)?;
    Ok(entries.filter_map(|entry| match entry {
        Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => None,
        Ok(entry) => Some(Ok(entry.file_name().to_owned())),
        Err(error) => Some(Err(error.into())),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deeper than the descriptors that a process usually has, or a small stack, would last, were one needed for each level.
    const DEPTH: usize = 2_000;

    #[test]
    fn depth_costs_neither_stack_nor_descriptors() {
        let place = tempfile::tempdir().expect("a directory");
        let tree = place.path().join("tree");
        fs::create_dir(&tree).expect("made");
        let mut at = open(CWD, &tree).expect("opened");
        for level in 0..DEPTH {
            // Now and then a name that the removal would have used.
            let name = if level % 7 == 0 {
                format!("..lifted.{level}")
            } else {
                "d".to_owned()
            };
            rustix::fs::mkdirat(&at, &name, Mode::from(0o000)).expect("made");
            if level % 500 == 0 {
                rustix::fs::symlinkat("/etc", &at, "link").expect("linked");
            }
            let next = open(&at, &name);
            at = match next {
                Ok(next) => next,
                // Only root enters a directory of mode 0.
                Err(_) => {
                    rustix::fs::chmodat(&at, &name, Mode::from(0o700), AtFlags::empty()).expect("changed");
                    open(&at, &name).expect("opened")
                }
            };
        }
        drop(at);
        let removing = std::thread::Builder::new().stack_size(128 << 10);
        let removing = removing.spawn({
            let tree = tree.clone();
            move || remove_tree(&tree)
        });
        removing
            .expect("spawned")
            .join()
            .expect("no overflow")
            .expect("removed");
        assert!(!tree.exists());
        remove_tree(&tree).expect("nothing is there");
    }

    #[test]
    fn links_are_removed_and_what_they_lead_to_is_not() {
        let place = tempfile::tempdir().expect("a directory");
        let (tree, kept) = (place.path().join("tree"), place.path().join("kept"));
        fs::create_dir_all(tree.join("a/b/c")).expect("made");
        fs::create_dir(&kept).expect("made");
        fs::write(kept.join("file"), "x").expect("written");
        for link in ["link", "a/link", "a/b/c/link"] {
            std::os::unix::fs::symlink(&kept, tree.join(link)).expect("linked");
        }
        std::os::unix::fs::symlink(&tree, place.path().join("way")).expect("linked");
        remove_tree(&place.path().join("way")).expect("only the link");
        assert!(tree.join("a/b/c").exists());
        remove_tree(&tree).expect("removed");
        assert!(!tree.exists() && kept.join("file").exists());
    }
}
