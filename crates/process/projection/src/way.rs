//! From a path to what it leads to: link by link, each place on the way watched before it is looked at.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

use crate::ground::Role;
use crate::layout::DATA_LINK;
use crate::look::{LookError, Surroundings};
use crate::revision::Revision;

/// As many as the kernel follows (`MAXSYMLINKS`, Linux 6.18).
const LINKS_MAX: u32 = 40;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Without links.
    pub(crate) path: PathBuf,
    pub(crate) kind: FileType,
    /// The target of the last link `..data` on the way.
    pub(crate) revision: Option<Revision>,
}

/// Walks from `from` (a directory without links) along `path`.
///
/// # Errors
/// [`LookError::Missing`] if it ends somewhere, [`LookError::Restless`] if it changes below the feet.
pub(crate) fn walk(
    from: &Path,
    path: &Path,
    surroundings: &mut dyn Surroundings,
) -> Result<Destination, LookError> {
    let mut walk = Walk {
        here: from.to_owned(),
        rest: VecDeque::new(),
        links: 0,
        revision: None,
    };
    walk.prepend(path);
    while let Some(name) = walk.rest.pop_front() {
        if let Some((path, kind)) = walk.step(&name, surroundings)? {
            return Ok(Destination {
                path,
                kind,
                revision: walk.revision,
            });
        }
    }
    Ok(Destination {
        path: walk.here,
        kind: FileType::Directory,
        revision: walk.revision,
    })
}

struct Walk {
    here: PathBuf,
    rest: VecDeque<OsString>,
    links: u32,
    revision: Option<Revision>,
}

impl Destination {
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }
}

impl Walk {
    /// `path` comes before what is still to be walked.
    fn prepend(&mut self, path: &Path) {
        for component in path.components().rev() {
            match component {
                Component::RootDir => self.here = PathBuf::from("/"),
                Component::ParentDir => self.rest.push_front("..".into()),
                Component::Normal(name) => self.rest.push_front(name.to_owned()),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    /// One name on; if it is the last and no directory, what it is.
    fn step(
        &mut self,
        name: &OsString,
        surroundings: &mut dyn Surroundings,
    ) -> Result<Option<(PathBuf, FileType)>, LookError> {
        if name == ".." {
            self.here.pop();
            return Ok(None);
        }
        let next = self.here.join(name);
        let mut kind = kind_of(&next)?;
        if kind.is_none() {
            surroundings.watch(&self.here, Role::Holds(name.clone()));
            kind = kind_of(&next)?;
        }
        match kind {
            None => Err(LookError::Missing {
                missing: next,
                watched: std::mem::take(&mut self.here),
            }),
            Some(FileType::Symlink) => {
                surroundings.watch(&self.here, Role::HoldsLink(name.clone()));
                self.links += 1;
                if self.links > LINKS_MAX {
                    return Err(LookError::unseen(&next, Errno::LOOP.into()));
                }
                let target = match rustix::fs::readlink(&next, Vec::new()) {
                    Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
                    Err(Errno::INVAL | Errno::NOENT) => return Err(LookError::Restless),
                    Err(errno) => return Err(LookError::unseen(&next, errno.into())),
                };
                if name == DATA_LINK {
                    self.revision = Some(Revision::new(target.to_string_lossy().into_owned()));
                }
                self.prepend(&target);
                Ok(None)
            }
            Some(FileType::Directory) => {
                if self.rest.is_empty() {
                    // Whoever asked for the way watches its end as what it is.
                    surroundings.watch(&self.here, Role::Parent(name.clone()));
                } else {
                    surroundings.watch(&next, Role::Ancestor);
                }
                self.here = next;
                Ok(None)
            }
            Some(kind) if self.rest.is_empty() => {
                surroundings.watch(&self.here, Role::Holds(name.clone()));
                if kind == FileType::RegularFile {
                    surroundings.watch(&next, Role::File);
                }
                Ok(Some((next, kind)))
            }
            Some(_) => {
                surroundings.watch(&self.here, Role::Holds(name.clone()));
                let missing = next.join(&self.rest[0]);
                let watched = std::mem::take(&mut self.here);
                Err(LookError::Missing { missing, watched })
            }
        }
    }
}

/// What a path is, a link not followed; `None`: nothing.
fn kind_of(path: &Path) -> Result<Option<FileType>, LookError> {
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(LookError::unseen(path, io::Error::from(errno))),
    }
}
