//! Writes a whole revision where nobody looks yet.

use std::collections::BTreeSet;
use std::io;

use rustix::fs::{Mode, OFlags};

use crate::atomic_writer::{AtomicWriter, Durability, RevisionName, WriteError};
use crate::directory::Directory;
use crate::payload::{Payload, PayloadFile};
use crate::removal::remove_tree_on;

/// So many names are tried until one is free; more means that the source of names repeats itself.
const NAMES_TRIED_MAX: usize = 100;

/// A revision that is complete on disk and that `..data` does not name yet.
pub(super) struct Staged {
    name: RevisionName,
}

impl Staged {
    pub(super) fn name(&self) -> &RevisionName {
        &self.name
    }

    pub(super) fn into_name(self) -> RevisionName {
        self.name
    }
}

impl AtomicWriter {
    /// Writes the full payload into a new revision directory, or leaves nothing behind.
    pub(super) fn stage(&self, payload: &Payload) -> Result<Staged, WriteError> {
        let staged = self.create_revision().map_err(|source| WriteError::Stage {
            path: String::from("."),
            source,
        })?;
        match self.fill(&staged, payload) {
            Ok(()) => Ok(staged),
            Err(error) => {
                self.discard(staged);
                Err(error)
            }
        }
    }

    /// Removes a revision that was not published. Best effort: the next write sweeps what is left.
    pub(super) fn discard(&self, staged: Staged) {
        let _ = remove_tree_on(&self.disk, self.root(), staged.name.as_str().as_ref());
    }

    fn create_revision(&self) -> io::Result<Staged> {
        let mut tried = 0;
        loop {
            let name = RevisionName::generate(&*self.names);
            let made = self.create_owned(name.as_str(), || {
                self.disk.make_directory(self.root(), name.as_str())
            });
            tried += 1;
            match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < NAMES_TRIED_MAX => {}
                other => return other.map(|()| Staged { name }),
            }
        }
    }

    fn fill(&self, staged: &Staged, payload: &Payload) -> Result<(), WriteError> {
        let failed = |path: &str| {
            let path = path.to_owned();
            move |source| WriteError::Stage { path, source }
        };
        let top = self
            .root()
            .open_directory(staged.name.as_str())
            .map_err(failed("."))?;
        // The owner is right since mkdir; one chmod is one event, as with a kubelet.
        self.disk
            .set_mode(&top, self.options.directory_bits())
            .map_err(failed("."))?;
        self.apply_fs_group_to_root().map_err(failed("."))?;

        let directories: BTreeSet<&str> = payload.iter().flat_map(|(path, _)| path.parents()).collect();
        // A set of paths is sorted: what lies above comes first.
        for path in &directories {
            self.stage_directory(&top, path).map_err(failed(path))?;
        }
        for (path, file) in payload.iter() {
            self.stage_file(&top, path.as_str(), file)
                .map_err(failed(path.as_str()))?;
        }
        if self.options.durability == Durability::PowerLoss {
            for path in directories.iter().rev() {
                top.open_directory(*path)
                    .and_then(|made| self.disk.sync(&made))
                    .map_err(failed(path))?;
            }
            self.disk.sync(&top).map_err(failed("."))?;
        }
        Ok(())
    }

    /// Syncs what another writer wrote: a process that died, or one that had no reason to.
    pub(super) fn sync_revision(&self, revision: &RevisionName, payload: &Payload) -> Result<(), WriteError> {
        let failed = |source| WriteError::Sync { source };
        let top = self.root().open_directory(revision.as_str()).map_err(failed)?;
        for (path, _) in payload.iter() {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = top
                .open_beneath(path.as_str(), flags, Mode::empty())
                .map_err(failed)?;
            self.disk.sync(&file).map_err(failed)?;
        }
        let directories: BTreeSet<&str> = payload.iter().flat_map(|(path, _)| path.parents()).collect();
        for path in directories {
            let directory = top.open_directory(path).map_err(failed)?;
            self.disk.sync(&directory).map_err(failed)?;
        }
        self.disk.sync(&top).map_err(failed)
    }

    fn stage_directory(&self, top: &Directory, path: &str) -> io::Result<()> {
        match top.create_directory(&self.disk, path)? {
            Some(made) => self.own(&made, &self.options, self.options.directory_bits()),
            // The revision is ours and new: only somebody else can have made that.
            None => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    fn stage_file(&self, top: &Directory, path: &str, file: &PayloadFile) -> io::Result<()> {
        let made = self.disk.create_file(top, path)?;
        self.disk.write_file(&made, &file.bytes)?;
        let options = self.options.owned_by(file.owner);
        self.own(&made, &options, options.file_bits(file.mode))?;
        if self.options.durability == Durability::PowerLoss {
            self.disk.sync(&made)?;
        }
        Ok(())
    }
}
