//! Looks at a volume before a write: what `plan` decides from.

use std::collections::BTreeMap;
use std::io;

use rustix::fs::FileType;

use crate::atomic_writer::held::{holds, read_data_link};
use crate::atomic_writer::{AtomicWriter, DATA_LINK, Removal, State, Trust, WriteError};
use crate::payload::Payload;
use crate::plan::{ActualVolume, DataLink, Name};

impl AtomicWriter {
    /// What is there now. Reads as little as may be: files only where memory cannot say what they hold, the
    /// directory only where something in it may have to go.
    pub(super) fn observe(
        &self,
        payload: &Payload,
        trust: Trust,
        state: &State,
    ) -> Result<ActualVolume, WriteError> {
        let data = read_data_link(&self.root).map_err(failed(DATA_LINK))?;
        let last = state
            .last
            .as_ref()
            .filter(|last| data.revision() == Some(&last.revision));
        let (is_same, is_remembered) = match last {
            Some(last) if trust == Trust::Memory => (last.payload == *payload, true),
            _ => (self.is_visible(&data, payload), false),
        };
        // After a failed sync comparing proves nothing: what is read may never reach the disk.
        let is_desired = is_same && !state.suspect;
        let mut names = self.links(payload)?;
        let is_complete = payload.top_level_names().all(|name| names.contains_key(name));
        let is_settled = is_desired && is_remembered && is_complete && last.is_some_and(|last| last.swept);
        if !is_settled {
            self.list(payload, &mut names)?;
        }
        let lingering = if !is_desired && self.options.removal == Removal::Deferred {
            data.revision().cloned()
        } else {
            state.lingering.clone()
        };
        Ok(ActualVolume {
            data,
            is_desired,
            is_synced: is_remembered,
            lingering,
            names,
        })
    }

    fn is_visible(&self, data: &DataLink, payload: &Payload) -> bool {
        data.revision()
            .is_some_and(|revision| holds(&self.root, revision, payload, &self.options))
    }

    /// The top-level names of the payload that something occupies.
    fn links(&self, payload: &Payload) -> Result<BTreeMap<String, Name>, WriteError> {
        let mut names = BTreeMap::new();
        for name in payload.top_level_names() {
            if let Some(is) = self.look_at(name).map_err(failed(name))? {
                names.insert(name.to_owned(), is);
            }
        }
        Ok(names)
    }

    /// Adds the other names of the directory.
    fn list(&self, payload: &Payload, names: &mut BTreeMap<String, Name>) -> Result<(), WriteError> {
        for (name, kind) in self.root.names(usize::MAX).map_err(failed("."))? {
            // Nothing of a writer's has a name that is not UTF-8.
            let Ok(name) = name.into_string() else { continue };
            if payload.has_top_level(&name) {
                continue;
            }
            let is = match Name::of(&name, None) {
                Some(Name::Foreign) if matches!(kind, FileType::Symlink | FileType::Unknown) => {
                    self.look_at(&name).map_err(failed(&name))?
                }
                is => is,
            };
            names.extend(is.map(|is| (name, is)));
        }
        Ok(())
    }

    /// What a name is; `None` when it is free.
    pub(super) fn look_at(&self, name: &str) -> io::Result<Option<Name>> {
        match self.root.read_link(name) {
            Ok(target) => Ok(Name::of(name, target.as_deref())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // Not a link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(Name::of(name, None)),
            Err(error) => Err(error),
        }
    }
}

fn failed(name: &str) -> impl FnOnce(io::Error) -> WriteError {
    move |source| WriteError::Observe {
        name: name.to_owned(),
        source,
    }
}
