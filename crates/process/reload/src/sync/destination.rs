//! The directory: opened, found fit for what shall be in it, and ours alone.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use hotmap_projection::{Revision, Snapshot};
use hotmap_volume::{
    AtomicWriter, Directory, Durability, FileMode, Options, Outcome, Ownership, Payload, PayloadFile,
    Removal, WriteError,
};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::sync::object::ObjectVersion;
use crate::sync::plain::PlainWriter;
use crate::sync::state::State;
use crate::sync::with_causes;

/// File systems that are in memory only: tmpfs and ramfs, from linux/magic.h.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// The link of the projected layout that names the visible revision.
const DATA_LINK: &str = "..data";
/// Where the last verified revision is kept beside the visible one.
const VERIFIED: &str = "..verified";

/// How files lie in the directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// Links to one revision, replaced as a whole by one rename, as Kubernetes lays volumes out.
    #[default]
    Projected,
    /// Files without links. Each is whole, but a reader may see files of two revisions.
    Plain,
}

/// How a directory is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DestinationOptions {
    pub(crate) layout: Layout,
    pub(crate) owner: Option<Ownership>,
    /// Whether Secrets are among what is written.
    pub(crate) has_secrets: bool,
    /// Whether they may be written to a disk.
    pub(crate) secrets_on_disk: bool,
    /// Whether the last verified revision is kept, to be put back.
    pub(crate) keeps_verified: bool,
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
    #[error(
        "cannot read {}: remove it, and name files that are left in the directory are nobody's then",
        .path.join("..hotmap-sync").display()
    )]
    State { path: PathBuf, source: io::Error },
    #[error(
        "{} was filled with --layout {was}: go on with that, or empty the directory first",
        .path.display()
    )]
    OtherLayout { path: PathBuf, was: &'static str },
}

/// A directory with a writer; nobody else of ours writes there while it lives.
pub(crate) struct Destination {
    path: PathBuf,
    filler: Filler,
    verified: Option<AtomicWriter>,
    /// Holds the lock.
    root: Directory,
    state: State,
}

enum Filler {
    Projected(AtomicWriter),
    Plain(PlainWriter),
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
    /// Whether readers see the new content, or some of it, in spite of the error.
    pub(crate) is_published: bool,
}

impl From<WriteError> for PlaceError {
    fn from(error: WriteError) -> Self {
        Self {
            message: with_causes(&error),
            is_published: error.is_published(),
        }
    }
}

impl Destination {
    /// Makes the directory if it is not there, and opens it.
    pub(crate) fn open(path: &Path, options: DestinationOptions) -> Result<Self, DestinationError> {
        let at = || path.to_owned();
        make(path, options.has_secrets).map_err(|source| DestinationError::Make { path: at(), source })?;
        let failed = |source| DestinationError::Open { path: at(), source };
        let root = Directory::open(path).map_err(failed)?;
        if options.has_secrets && !options.secrets_on_disk && !is_in_memory(&root) {
            return Err(DestinationError::SecretsOnDisk { path: at() });
        }
        // On a file system without locks two writers are not found: a mistake of whoever starts them, and rare.
        let locked = rustix::fs::flock(&root, FlockOperation::NonBlockingLockExclusive);
        if locked == Err(Errno::WOULDBLOCK) {
            return Err(DestinationError::Taken { path: at() });
        }
        let state = State::load(&root).map_err(|source| DestinationError::State { path: at(), source })?;
        let has_links = path.join(DATA_LINK).is_symlink();
        let was = match options.layout {
            Layout::Projected if !state.files.is_empty() => Some("plain"),
            Layout::Plain if has_links => Some("projected"),
            _ => None,
        };
        if let Some(was) = was {
            return Err(DestinationError::OtherLayout { path: at(), was });
        }
        let writer_options = Options {
            durability: Durability::PowerLoss,
            owner: options.owner,
            ..Options::default()
        };
        let filler = match options.layout {
            Layout::Projected => {
                // Whoever is told of a change reads at once, and shall find the files of before until then.
                let deferred = Options {
                    removal: Removal::Deferred,
                    ..writer_options
                };
                Filler::Projected(AtomicWriter::new(
                    Directory::open(path).map_err(failed)?,
                    deferred,
                ))
            }
            Layout::Plain => Filler::Plain(PlainWriter::new(
                Directory::open(path).map_err(failed)?,
                options.owner,
            )),
        };
        let verified = if options.keeps_verified {
            let kept = path.join(VERIFIED);
            make(&kept, true).map_err(|source| DestinationError::Make { path: at(), source })?;
            let kept = root.open_directory(VERIFIED).map_err(failed)?;
            Some(AtomicWriter::new(kept, writer_options))
        } else {
            None
        };
        Ok(Self {
            path: path.to_owned(),
            filler,
            verified,
            root,
            state,
        })
    }

    /// Makes `payload` the content of the directory. Blocks.
    pub(crate) fn place(&mut self, payload: &Payload) -> Result<Placed, PlaceError> {
        let writer = match &self.filler {
            Filler::Plain(writer) => return writer.place(payload, &mut self.state),
            Filler::Projected(writer) => writer,
        };
        let written = writer.write(payload)?;
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

    /// Removes the revision of before, which nobody reads any more.
    pub(crate) fn sweep(&self) -> Vec<String> {
        match &self.filler {
            Filler::Plain(_) => Vec::new(),
            Filler::Projected(writer) => writer
                .sweep()
                .into_iter()
                .map(|left| format!("{}: {}", left.name, left.error))
                .collect(),
        }
    }

    /// What was written here and is still there; `None` if nothing is.
    pub(crate) fn held(&self) -> Option<Payload> {
        match &self.filler {
            Filler::Projected(_) => self.path.join(DATA_LINK).is_symlink().then_some(())?,
            Filler::Plain(_) => (!self.state.files.is_empty()).then_some(())?,
        }
        stored(&self.path, |key| match &self.filler {
            Filler::Projected(_) => true,
            Filler::Plain(_) => self.state.files.contains(key),
        })
    }

    /// The last revision that has passed, if it is kept.
    pub(crate) fn verified(&self) -> Option<Payload> {
        self.verified.as_ref()?;
        let kept = self.path.join(VERIFIED);
        kept.join(DATA_LINK).is_symlink().then_some(())?;
        stored(&kept, |_| true)
    }

    /// Keeps a revision that has passed, and forgets those that have not.
    pub(crate) fn keep_verified(&mut self, payload: &Payload) -> Result<(), PlaceError> {
        if let Some(writer) = &self.verified {
            writer.write(payload)?;
        }
        self.set_refused(Vec::new())
    }

    /// The objects of the revision that did not pass.
    pub(crate) fn refused(&self) -> &[ObjectVersion] {
        &self.state.refused
    }

    /// Remembers which versions did not pass, over a restart.
    pub(crate) fn set_refused(&mut self, versions: Vec<ObjectVersion>) -> Result<(), PlaceError> {
        if self.state.refused == versions {
            return Ok(());
        }
        self.state.refused = versions;
        self.state.save(&self.root).map_err(|error| PlaceError {
            message: format!("cannot write the state: {error}"),
            is_published: true,
        })
    }
}

/// Files of a directory with their modes. `None` if they cannot be read: then nothing is known, and what comes next is
/// written anew.
fn stored(directory: &Path, is_ours: impl Fn(&str) -> bool) -> Option<Payload> {
    let files = Snapshot::open(directory).ok()?.read_all().ok()?;
    let mut payload = Payload::new();
    for (key, bytes) in files {
        if !is_ours(&key) {
            continue;
        }
        let mode = fs::metadata(directory.join(&key)).ok()?.permissions().mode() & 0o777;
        let file = PayloadFile::new(bytes, FileMode::new(mode).ok()?);
        payload.insert(key.parse().ok()?, file).ok()?;
    }
    Some(payload)
}

/// Those above it too, as `mkdir -p` does; with Secrets nobody else may enter the directory that is new.
fn make(path: &Path, is_secret: bool) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    let mode = if is_secret { 0o700 } else { 0o755 };
    fs::DirBuilder::new().mode(mode).create(path)
}

fn is_in_memory(directory: &Directory) -> bool {
    rustix::fs::fstatfs(directory).is_ok_and(|is| IN_MEMORY.contains(&(is.f_type as u64)))
}
