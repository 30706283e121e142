//! The directory: opened, found fit for what shall be in it, and ours alone.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hotmap_projection::Revision;
use hotmap_volume::{AtomicWriter, Directory, Durability, Options, Outcome, Ownership, Payload, WriteError};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::sync::with_causes;

/// File systems that are in memory only, from linux/magic.h.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// How a directory is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DestinationOptions {
    pub(crate) owner: Option<Ownership>,
    /// Whether Secrets are among what is written.
    pub(crate) has_secrets: bool,
    /// Whether they may be written to a disk.
    pub(crate) secrets_on_disk: bool,
}

/// A directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DestinationError {
    #[error("cannot make {}", .path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot open {}", .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "{} is not on tmpfs, so a Secret would be written to a disk: use a directory on tmpfs, such as one beneath /run \
         or /dev/shm, or say --secrets-on-disk", .path.display()
    )]
    SecretsOnDisk { path: PathBuf },
    #[error("another hotmap writes to {}: one directory has one writer", .path.display())]
    Taken { path: PathBuf },
}

/// A directory with a writer; nobody else of ours writes there while it lives.
pub(crate) struct Destination {
    writer: AtomicWriter,
    /// Holds the lock.
    _directory: Directory,
}

/// What a write has brought.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) revision: Revision,
    /// Whether anything changed.
    pub(crate) is_new: bool,
    /// Files that do not show, because another file, not ours, has their name.
    pub(crate) shadowed: Vec<String>,
    /// What should be gone and is not.
    pub(crate) leftovers: Vec<String>,
}

/// A write that did not happen, or not in full.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PlaceError {
    pub(crate) message: String,
    /// Whether readers see the new content in spite of it.
    pub(crate) is_published: bool,
}

impl Destination {
    /// Makes the directory if it is not there, and opens it.
    pub(crate) fn open(path: &Path, options: DestinationOptions) -> Result<Self, DestinationError> {
        let at = || path.to_owned();
        make(path, options.has_secrets).map_err(|source| DestinationError::Make { path: at(), source })?;
        let open = || Directory::open(path).map_err(|source| DestinationError::Open { path: at(), source });
        let directory = open()?;
        if options.has_secrets && !options.secrets_on_disk && !is_in_memory(&directory) {
            return Err(DestinationError::SecretsOnDisk { path: at() });
        }
        // On a file system without locks two writers are not found: a mistake of whoever starts them, and rare.
        let locked = rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive);
        if locked == Err(Errno::WOULDBLOCK) {
            return Err(DestinationError::Taken { path: at() });
        }
        let writer_options = Options {
            durability: Durability::PowerLoss,
            owner: options.owner,
            ..Options::default()
        };
        Ok(Self {
            writer: AtomicWriter::new(open()?, writer_options),
            _directory: directory,
        })
    }

    /// Makes `payload` the content of the directory. Blocks.
    pub(crate) fn place(&self, payload: &Payload) -> Result<Placed, PlaceError> {
        let written = self
            .writer
            .write(payload)
            .map_err(|error: WriteError| PlaceError {
                message: with_causes(&error),
                is_published: error.is_published(),
            })?;
        Ok(Placed {
            revision: Revision::new(written.revision.as_str()),
            is_new: written.outcome == Outcome::Swapped,
            shadowed: written.shadowed,
            leftovers: written
                .leftovers
                .into_iter()
                .map(|left| format!("{}: {}", left.name, left.error))
                .collect(),
        })
    }
}

/// Those above it too, as `mkdir -p` does; with Secrets nobody else may enter the directory that is new.
fn make(path: &Path, has_secrets: bool) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    let mode = if has_secrets { 0o700 } else { 0o755 };
    fs::DirBuilder::new().mode(mode).create(path)
}

fn is_in_memory(directory: &Directory) -> bool {
    rustix::fs::fstatfs(directory).is_ok_and(|is| IN_MEMORY.contains(&(is.f_type as u64)))
}
