//! How much disk a tree of files takes.

use std::{ffi::CString, io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, openat2, statat},
    io::Errno,
};

/// So many directories are open at once on the way down.
const OPEN_DIRECTORIES_MAX: usize = 64;

/// So many deeper ones are kept open to be looked at later. Beyond that the tree is not counted to its end.
const DEEPER_MAX: usize = 512;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Blocks in use, those of directories included: what `du` counts. A file with several names counts once.
    pub(crate) bytes: u64,
    /// False if there is more, in directories too deep and too many.
    pub(crate) is_complete: bool,
}

/// Walks the tree below `root`; nothing is there if it is not. Neither a link nor a mount leads out of it. Blocks; memory and
/// open files are bounded whatever is in the tree, and what vanishes while it is walked is not counted.
pub(crate) fn disk_usage(root: &Path) -> io::Result<Usage> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = match rustix::fs::open(root, flags, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => {
            return Ok(Usage {
                bytes: 0,
                is_complete: true,
            });
        }
        Err(error) => return Err(error.into()),
    };
    let mut usage = Usage {
        bytes: blocks(&rustix::fs::fstat(&root)?),
        is_complete: true,
    };
    let mut deeper = vec![root];
    while let Some(directory) = deeper.pop() {
        walk(directory, &mut deeper, &mut usage)?;
    }
    Ok(usage)
}

fn walk(top: OwnedFd, deeper: &mut Vec<OwnedFd>, usage: &mut Usage) -> io::Result<()> {
    let mut open = vec![Dir::new(top)?];
    while let Some(directory) = open.last_mut() {
        let Some(entry) = directory.read() else {
            open.pop();
            continue;
        };
        let entry = match entry {
            Ok(entry) => entry,
            // Removed under our hands.
            Err(Errno::NOENT) => {
                open.pop();
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let name: CString = entry.file_name().to_owned();
        if [c".", c".."].contains(&name.as_c_str()) {
            continue;
        }
        let at = directory.fd()?;
        let Ok(stat) = statat(at, &name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT) else {
            continue;
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            // All its names are in the tree: links do not cross mounts.
            usage.bytes += blocks(&stat) / u64::from(stat.st_nlink as u32).max(1);
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NOATIME | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let below = match openat2(at, &name, flags, Mode::empty(), resolve) {
            Ok(below) => below,
            Err(Errno::NOENT | Errno::XDEV | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(error) => return Err(error.into()),
        };
        usage.bytes += blocks(&stat);
        if open.len() < OPEN_DIRECTORIES_MAX {
            open.push(Dir::new(below)?);
        } else if deeper.len() < DEEPER_MAX {
            deeper.push(below);
        } else {
            usage.is_complete = false;
        }
    }
    Ok(())
}

/// In bytes; the unit of `st_blocks` is 512, whatever the file system's own is.
fn blocks(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or_default() * 512
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn links_lead_nowhere_and_names_of_one_file_count_once() {
        let outside = tempfile::tempdir().expect("a directory");
        fs::write(outside.path().join("large"), vec![1; 1 << 20]).expect("written");
        let tree = tempfile::tempdir().expect("a directory");
        let empty = disk_usage(tree.path()).expect("measured").bytes;
        symlink(outside.path(), tree.path().join("directory")).expect("linked");
        symlink(outside.path().join("large"), tree.path().join("file")).expect("linked");
        let linked = disk_usage(tree.path()).expect("measured").bytes;
        assert!(linked < empty + (64 << 10), "{linked}");
        fs::create_dir(tree.path().join("sub")).expect("made");
        fs::write(tree.path().join("sub/one"), vec![1; 256 << 10]).expect("written");
        fs::hard_link(tree.path().join("sub/one"), tree.path().join("two")).expect("linked");
        let sparse = fs::File::create(tree.path().join("sparse")).expect("made");
        sparse.set_len(1 << 30).expect("sparse");
        let usage = disk_usage(tree.path()).expect("measured");
        assert!(usage.is_complete);
        let grown = usage.bytes - linked;
        assert!((256 << 10..320 << 10).contains(&grown), "{grown}");
        assert_eq!(
            disk_usage(&tree.path().join("nowhere")).expect("nothing").bytes,
            0
        );
    }

    #[test]
    fn depth_has_no_limit() {
        let tree = tempfile::tempdir().expect("a directory");
        let deep = tree.path().join(["d"; 3 * OPEN_DIRECTORIES_MAX].join("/"));
        fs::create_dir_all(&deep).expect("made");
        let before = disk_usage(tree.path()).expect("measured");
        fs::write(deep.join("file"), vec![1; 128 << 10]).expect("written");
        let after = disk_usage(tree.path()).expect("measured");
        assert!(before.is_complete && after.is_complete);
        assert!(after.bytes - before.bytes >= 128 << 10);
    }

    #[test]
    fn too_many_deep_directories_are_told_of() {
        let tree = tempfile::tempdir().expect("a directory");
        let deep = tree.path().join(["d"; OPEN_DIRECTORIES_MAX - 1].join("/"));
        for number in 0..=DEEPER_MAX {
            fs::create_dir_all(deep.join(number.to_string())).expect("made");
        }
        assert!(!disk_usage(tree.path()).expect("measured").is_complete);
    }
}
