//! The names at the top of the volume: makes the links that are missing, removes what is ours and outdated.

use std::io;

use crate::atomic_writer::{AtomicWriter, Leftover, WriteError};
use crate::plan::{Name, Step, link_target};
use crate::removal::{RemoveError, remove_tree_on};

impl AtomicWriter {
    /// Makes the link of a top-level name.
    pub(super) fn link(&self, name: String) -> Result<(), WriteError> {
        self.create_link(&link_target(&name), &name)
            .map_err(|source| WriteError::Link { name, source })
    }

    /// Executes a step that removes; what stays is told, and no reason to stop.
    pub(super) fn remove(&self, step: Step) -> Option<Leftover> {
        let (name, removed) = match step {
            Step::Unlink(name) => (name.clone(), self.remove_own_link(&name)),
            Step::Remove(name) => (name.clone(), self.remove_reserved(&name)),
            Step::Stage | Step::Swap | Step::SyncRevision | Step::Link(_) | Step::Sync => return None,
        };
        removed.err().map(|error| Leftover { name, error })
    }

    /// Removes a name that belongs to the writer, whatever it is.
    pub(super) fn remove_reserved(&self, name: &str) -> io::Result<()> {
        remove_tree_on(&self.disk, self.root(), name.as_ref()).map_err(into_io_error)
    }

    fn remove_own_link(&self, name: &str) -> io::Result<()> {
        // Looked at again: since the plan was made somebody may have put a file of theirs there.
        match self.look_at(name)? {
            Some(Name::Link) => self.disk.unlink(self.root(), name),
            _ => Ok(()),
        }
    }
}

fn into_io_error(error: RemoveError) -> io::Error {
    match error {
        RemoveError::Remove { source, .. } => source,
        RemoveError::Mounted { .. } => io::Error::new(io::ErrorKind::ResourceBusy, error),
    }
}
