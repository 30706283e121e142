//! Reads one revision of a path, whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::content::Content;
use crate::digest::Digester;
use crate::ground::Role;
use crate::limits::Limits;
use crate::look::{self, LookError, Surroundings, digest_of, read_data_link};
use crate::revision::Revision;
use crate::way;

/// Nothing that is opened through a revision leaves it: no `..`, no links, no `/proc` magic, no other mount.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// A writer that overtakes a reader this often between a few system calls of its own is no writer of configuration.
const LOOKS_MAX: u32 = 100;

/// One revision of a directory or a file.
///
/// Two files that are read by two walks through `..data` can be of two revisions; through one snapshot they never are.
///
/// - Of a projected volume (a directory with `..data`) it holds the revision's directory open. Files are read beneath
///   that handle: a link that somebody planted there leads nowhere. They stay readable until the writer removes the
///   revision; from then on they are [`SnapshotError::Replaced`].
/// - Of plain files, which have no revisions, it remembers a digest of each. Opening reads all files until two readings in
///   a row agree; reading a file later gives the bytes it had then, or [`SnapshotError::Replaced`].
///
/// After `Replaced` open another snapshot and read all files again.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    limits: Limits,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Projected {
        volume: OwnedFd,
        revision: Revision,
        directory: OwnedFd,
        keys: Vec<Arc<str>>,
    },
    Plain {
        content: Content,
        is_directory: bool,
    },
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The path leads nowhere.
    #[error("{} is not there", .path.display())]
    Missing {
        /// The first part of it that does not exist, links resolved.
        path: PathBuf,
    },
    /// The file is not part of this revision.
    #[error("no file {key:?} in revision {revision}")]
    NoFile {
        /// The file that was asked for.
        key: String,
        /// Where.
        revision: Revision,
    },
    /// Another revision has taken the place of this one: open a new snapshot.
    #[error("the revision was replaced")]
    Replaced,
    /// There was no moment at which nobody wrote: a writer of plain files that never rests, or one of `..data` that is
    /// faster than its readers.
    #[error("{} changes faster than it can be read; try again, or have it written by one rename", .path.display())]
    Restless {
        /// The path.
        path: PathBuf,
    },
    /// A limit of [`Limits`].
    #[error("{} is too large: {limit}", .path.display())]
    TooMuch {
        /// The path.
        path: PathBuf,
        /// Which limit, with its number.
        limit: String,
    },
    /// The system refused. `ENOSYS` and `EPERM` on every file mean that there is no `openat2`: Linux 5.6 has it, and some
    /// sandboxes forbid it.
    #[error("cannot read {}", .path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Snapshot {
    /// Opens what is there now, within the default [`Limits`].
    ///
    /// # Errors
    /// [`SnapshotError`], never [`SnapshotError::Replaced`]: a swap in between is followed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::open_within(path, Limits::default())
    }

    /// Opens what is there now, within `limits`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_within(path: impl AsRef<Path>, limits: Limits) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let absolute = std::path::absolute(path).map_err(|source| failed(path, source))?;
        for _ in 0..LOOKS_MAX {
            match open(&absolute, &limits) {
                Ok(kind) => {
                    return Ok(Self {
                        path: absolute,
                        limits,
                        kind,
                    });
                }
                Err(LookError::Restless) => {}
                Err(error) => return Err(SnapshotError::of(&absolute, error)),
            }
        }
        Err(SnapshotError::Restless { path: absolute })
    }

    /// Which revision this is; the same name as in a [`Change`](crate::Change) of the same process.
    pub fn revision(&self) -> &Revision {
        match &self.kind {
            Kind::Projected { revision, .. } => revision,
            Kind::Plain { content, .. } => &content.revision,
        }
    }

    /// The files, as paths relative to the opened path, sorted; of a file its name alone.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        let keys: Vec<&str> = match &self.kind {
            Kind::Projected { keys, .. } => keys.iter().map(AsRef::as_ref).collect(),
            Kind::Plain { content, .. } => content.keys().map(AsRef::as_ref).collect(),
        };
        keys.into_iter()
    }

    /// The content of a file.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn read(&self, key: &str) -> Result<Vec<u8>, SnapshotError> {
        self.read_at_most(key, self.limits.bytes)
    }

    /// All files, by key.
    ///
    /// # Errors
    /// [`SnapshotError`]; [`SnapshotError::TooMuch`] if they have more bytes together than the limits allow.
    pub fn read_all(&self) -> Result<BTreeMap<String, Vec<u8>>, SnapshotError> {
        let mut rest = self.limits.bytes;
        let mut files = BTreeMap::new();
        for key in self.keys() {
            let bytes = self.read_at_most(key, rest)?;
            rest -= bytes.len() as u64;
            files.insert(key.to_owned(), bytes);
        }
        Ok(files)
    }

    fn read_at_most(&self, key: &str, bytes_max: u64) -> Result<Vec<u8>, SnapshotError> {
        match &self.kind {
            Kind::Projected { directory, .. } => self.read_projected(directory, key, bytes_max),
            Kind::Plain {
                content,
                is_directory,
            } => self.read_plain(content, *is_directory, key, bytes_max),
        }
    }

    fn read_projected(
        &self,
        directory: &OwnedFd,
        key: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, SnapshotError> {
        let path = || self.path.join(key);
        let none = || {
            if self.is_replaced() {
                SnapshotError::Replaced
            } else {
                self.no_file(key)
            }
        };
        // NONBLOCK: what somebody planted here may be a FIFO.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat2(directory, key, flags, Mode::empty(), BENEATH) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(none()),
            Err(errno) => return Err(failed(&path(), errno.into())),
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| failed(&path(), errno.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(none());
        }
        self.bytes(file.into(), key, bytes_max)
    }

    fn read_plain(
        &self,
        content: &Content,
        is_directory: bool,
        key: &str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, SnapshotError> {
        let Some((_, known)) = content.get(key) else {
            return Err(self.no_file(key));
        };
        let path = if is_directory {
            self.path.join(key)
        } else {
            self.path.clone()
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(SnapshotError::Replaced),
            Err(errno) => return Err(failed(&path, errno.into())),
        };
        let bytes = self.bytes(file.into(), key, bytes_max)?;
        let digester = Digester::of_this_process().map_err(|error| failed(&path, error))?;
        if digest_of(&bytes, &digester) == known.digest {
            Ok(bytes)
        } else {
            Err(SnapshotError::Replaced)
        }
    }

    fn bytes(&self, file: File, key: &str, bytes_max: u64) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::new();
        file.take(bytes_max.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|source| failed(&self.path.join(key), source))?;
        if bytes.len() as u64 > bytes_max {
            return Err(SnapshotError::TooMuch {
                path: self.path.clone(),
                limit: format!("there are more than {} bytes", self.limits.bytes),
            });
        }
        Ok(bytes)
    }

    fn no_file(&self, key: &str) -> SnapshotError {
        SnapshotError::NoFile {
            key: key.to_owned(),
            revision: self.revision().clone(),
        }
    }

    /// Whether the writer may have begun to remove this revision: it does so after the swap only.
    fn is_replaced(&self) -> bool {
        match &self.kind {
            Kind::Projected { volume, revision, .. } => !names(volume, revision.as_str()),
            Kind::Plain { .. } => false,
        }
    }
}

impl SnapshotError {
    fn of(path: &Path, error: LookError) -> Self {
        match error {
            LookError::Missing { missing, .. } => Self::Missing { path: missing },
            LookError::Unprojected { directory } => Self::Missing {
                path: directory.join(crate::layout::DATA_LINK),
            },
            LookError::TooMuch(limit) => Self::TooMuch {
                path: path.to_owned(),
                limit,
            },
            LookError::Unseen { path, source } => Self::Read { path, source },
            LookError::Restless => Self::Restless {
                path: path.to_owned(),
            },
        }
    }
}

fn failed(path: &Path, source: io::Error) -> SnapshotError {
    SnapshotError::Read {
        path: path.to_owned(),
        source,
    }
}

fn open(path: &Path, limits: &Limits) -> Result<Kind, LookError> {
    let found = way::walk(Path::new("/"), path, &mut Alone::default())?;
    if !found.is_directory() {
        return plain(path, limits, false);
    }
    let volume = open_directory(CWD, &found.path)?;
    let target = read_data_link(&volume).map_err(|errno| LookError::unseen(&found.path, errno.into()))?;
    let Some(target) = target else {
        return plain(path, limits, true);
    };
    let revision = way::walk(&found.path, Path::new(&target), &mut Alone::default());
    let revision = match revision {
        Ok(revision) if revision.is_directory() => revision.path,
        Ok(revision) => return Err(LookError::unseen(&revision.path, Errno::NOTDIR.into())),
        Err(LookError::Missing { .. }) if !names(&volume, &target) => return Err(LookError::Restless),
        Err(error) => return Err(error),
    };
    let directory = open_directory(CWD, &revision)?;
    let mut keys = Vec::new();
    let listed = list(&directory, "", limits.depth, limits, &mut keys);
    // A list that was made while the revision is removed has holes.
    if !names(&volume, &target) {
        return Err(LookError::Restless);
    }
    listed.map_err(|error| match error {
        ListError::TooMuch(limit) => LookError::TooMuch(limit),
        ListError::Read(errno) => LookError::unseen(&revision, errno.into()),
    })?;
    keys.sort_unstable();
    Ok(Kind::Projected {
        volume,
        revision: Revision::new(target),
        directory,
        keys,
    })
}

/// Whether `..data` of this volume still names `target`.
fn names(volume: &OwnedFd, target: &str) -> bool {
    read_data_link(volume).is_ok_and(|now| now.as_deref() == Some(target))
}

fn open_directory(at: impl AsFd, path: &Path) -> Result<OwnedFd, LookError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(at, path, flags, Mode::empty()) {
        Ok(directory) => Ok(directory),
        Err(Errno::NOENT | Errno::NOTDIR) => Err(LookError::Restless),
        Err(errno) => Err(LookError::unseen(path, errno.into())),
    }
}

enum ListError {
    TooMuch(String),
    Read(Errno),
}

impl From<Errno> for ListError {
    fn from(errno: Errno) -> Self {
        Self::Read(errno)
    }
}

fn list(
    directory: &OwnedFd,
    prefix: &str,
    depth: usize,
    limits: &Limits,
    keys: &mut Vec<Arc<str>>,
) -> Result<(), ListError> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let Ok(text) = std::str::from_utf8(name) else {
            return Err(Errno::ILSEQ.into());
        };
        let key = format!("{prefix}{text}");
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let name = std::ffi::OsStr::from_bytes(name);
            let stat = rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
            kind = FileType::from_raw_mode(stat.st_mode);
        }
        match kind {
            FileType::RegularFile if keys.len() >= limits.files => {
                return Err(ListError::TooMuch(format!(
                    "there are more than {} files",
                    limits.files
                )));
            }
            FileType::RegularFile => keys.push(key.into()),
            FileType::Directory if depth == 0 => {
                return Err(ListError::TooMuch(format!(
                    "directories are more than {} deep",
                    limits.depth
                )));
            }
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let inner = rustix::fs::openat2(directory, text, flags, Mode::empty(), BENEATH)?;
                list(&inner, &format!("{key}/"), depth - 1, limits, keys)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads all files until two readings in a row agree.
fn plain(path: &Path, limits: &Limits, is_directory: bool) -> Result<Kind, LookError> {
    let digester = Digester::of_this_process().map_err(|error| LookError::unseen(path, error))?;
    let mut alone = Alone::default();
    let first = look::look(path, limits, None, &digester, &mut alone)?.content;
    let content = look::look(path, limits, Some(&first), &digester, &mut alone)?.content;
    if let Some((path, source)) = alone.unreadable {
        return Err(LookError::Unseen { path, source });
    }
    if !content.is_same(&first) {
        return Err(LookError::Restless);
    }
    Ok(Kind::Plain {
        content,
        is_directory,
    })
}

/// A look without a watcher.
#[derive(Debug, Default)]
struct Alone {
    unreadable: Option<(PathBuf, io::Error)>,
}

impl Surroundings for Alone {
    fn watch(&mut self, _: &Path, _: Role) {}

    fn trusts(&mut self, directory: &Path) -> bool {
        crate::file_system::without_events(directory).is_none()
    }

    fn cannot_read(&mut self, path: &Path, error: &io::Error) {
        let error = io::Error::new(error.kind(), error.to_string());
        self.unreadable.get_or_insert((path.to_owned(), error));
    }
}

#[cfg(test)]
mod tests;
