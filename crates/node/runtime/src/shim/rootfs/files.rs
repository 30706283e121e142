//! Small files of the container's own, such as `/etc/hosts`, in the place of the host's.

use std::fs::File;
use std::io::Write;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{Root, Setup, what};
use crate::spec::FileConfig;

impl Root {
    /// Makes each file anew. What was there goes first: the host's may be a link to a place that no container has.
    pub(super) fn files(&self, files: &[FileConfig]) -> Setup<()> {
        for file in files {
            let path = file.path.display();
            let (Some(parent), Some(name)) = (file.path.parent(), file.path.file_name()) else {
                return Err(format!("the path {path} is not that of a file"));
            };
            let parent = self.dir(parent)?;
            match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(format!("cannot replace {path}: {error}")),
            }
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let failed = || format!("cannot make the file {path}");
            let made = what(
                rustix::fs::openat(&parent, name, flags, Mode::from(0o644)),
                failed,
            )?;
            let (uid, gid) = self.owner.ids();
            what(rustix::fs::fchown(&made, uid, gid), failed)?;
            what(File::from(made).write_all(file.content.as_bytes()), failed)?;
        }
        Ok(())
    }
}
