//! The names at the top of the volume: adds the links that are missing, removes what is ours and outdated.

use std::io;

use rustix::fs::FileType;

use crate::atomic_writer::{AtomicWriter, DATA_LINK, Leftover, RevisionName, STAGED_DATA_LINK, WriteError};
use crate::payload::Payload;
use crate::removal::{RemoveError, remove_tree_on};

pub(super) struct Links {
    /// Whether a link was made.
    pub(super) created: bool,
    /// Names that something else occupies.
    pub(super) shadowed: Vec<String>,
}

impl AtomicWriter {
    /// Makes the links that are missing. A link that is there keeps its inode; a foreign entry stays.
    pub(super) fn relink(&self, payload: &Payload) -> Result<Links, WriteError> {
        let mut links = Links {
            created: false,
            shadowed: Vec::new(),
        };
        let mut previous = "";
        for (path, _) in payload.iter() {
            let name = path.top_level();
            // Paths are sorted, so those of one directory follow each other.
            if std::mem::replace(&mut previous, name) == name {
                continue;
            }
            match self.link_state(name) {
                Ok(LinkState::Ours) => {}
                Ok(LinkState::Foreign) => links.shadowed.push(name.to_owned()),
                Ok(LinkState::Missing) => {
                    self.create_link(&link_target(name), name)
                        .map_err(|source| WriteError::Link {
                            name: name.to_owned(),
                            source,
                        })?;
                    links.created = true;
                }
                Err(source) => {
                    return Err(WriteError::Link {
                        name: name.to_owned(),
                        source,
                    });
                }
            }
        }
        Ok(links)
    }

    /// Removes links of dropped names, then revisions other than those to keep, then a link that a crash left
    /// between its making and the rename. Everything else is foreign and stays.
    pub(super) fn remove_outdated(
        &self,
        payload: &Payload,
        keep: [Option<&RevisionName>; 2],
    ) -> Vec<Leftover> {
        let names = match self.root().names(usize::MAX) {
            Ok(names) => names,
            Err(error) => {
                return vec![Leftover {
                    name: String::from("."),
                    error,
                }];
            }
        };
        // Nothing of ours has a name that is not UTF-8.
        let names = names
            .into_iter()
            .filter_map(|(name, kind)| Some((name.into_string().ok()?, kind)));
        let (reserved, plain): (Vec<_>, Vec<_>) = names.partition(|(name, _)| name.starts_with(".."));

        let mut leftovers = Vec::new();
        let mut note = |name: String, removed: io::Result<()>| {
            if let Err(error) = removed {
                leftovers.push(Leftover { name, error });
            }
        };
        for (name, kind) in plain {
            let may_be_link = matches!(kind, FileType::Symlink | FileType::Unknown);
            if may_be_link && !payload.has_top_level(&name) {
                let removed = self.remove_own_link(&name);
                note(name, removed);
            }
        }
        for (name, _) in reserved {
            let is_old = RevisionName::parse(&name).is_some_and(|revision| !keep.contains(&Some(&revision)));
            if is_old || name == STAGED_DATA_LINK {
                let removed = self.remove_reserved(&name);
                note(name, removed);
            }
        }
        leftovers
    }

    /// Removes a name that belongs to the writer, whatever it is.
    pub(super) fn remove_reserved(&self, name: &str) -> io::Result<()> {
        remove_tree_on(&self.disk, self.root(), name.as_ref()).map_err(into_io_error)
    }

    fn remove_own_link(&self, name: &str) -> io::Result<()> {
        match self.link_state(name)? {
            LinkState::Ours => self.disk.unlink(self.root(), name),
            LinkState::Foreign | LinkState::Missing => Ok(()),
        }
    }

    fn link_state(&self, name: &str) -> io::Result<LinkState> {
        match self.root().read_link(name) {
            Ok(Some(target)) if target == link_target(name) => Ok(LinkState::Ours),
            Ok(_) => Ok(LinkState::Foreign),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LinkState::Missing),
            // Not a link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(LinkState::Foreign),
            Err(error) => Err(error),
        }
    }
}

enum LinkState {
    Ours,
    Foreign,
    Missing,
}

fn link_target(name: &str) -> String {
    format!("{DATA_LINK}/{name}")
}

fn into_io_error(error: RemoveError) -> io::Error {
    match error {
        RemoveError::Remove { source, .. } => source,
        RemoveError::Mounted { .. } => io::Error::new(io::ErrorKind::ResourceBusy, error),
    }
}
