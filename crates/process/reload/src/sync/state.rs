//! What `sync` has to know after a restart, in the directory itself: `..hotmap-sync`, mode 0600.
//!
//! It lies in the directory because nothing else is sure to last as long as that, and to be writable: the directory may
//! be a volume of a pod with a read-only root. Names that start with two dots are the writer's own in this layout;
//! no program takes them for configuration. It holds names of files and what the API calls objects; no value, and
//! nothing that was computed from one.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};

use hotmap_volume::{Directory, PayloadPath};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::sync::object::ObjectVersion;

const NAME: &str = "..hotmap-sync";
const STAGED: &str = "..hotmap-sync-state";
/// A file of 10,000 names of the greatest length is smaller.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct State {
    /// Files of the plain layout that were written here.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) files: BTreeSet<String>,
    /// Directories of the plain layout that were made here.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) directories: BTreeSet<String>,
    /// The versions of all objects that made a revision which did not pass `--verify`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<ObjectVersion>,
}

impl State {
    /// Reads it; a directory without it has an empty one.
    pub(crate) fn load(directory: &Directory) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(directory, NAME, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        File::from(file).take(BYTES_MAX).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map_err(io::Error::from)
    }

    /// Writes it, whole or not at all, proof against power loss.
    pub(crate) fn save(&self, directory: &Directory) -> io::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        match rustix::fs::unlinkat(directory, STAGED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, STAGED, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        file.write_all(&bytes)?;
        file.sync_all()?;
        rustix::fs::renameat(directory, STAGED, directory, NAME)?;
        Ok(rustix::fs::fsync(directory)?)
    }

    /// Whether a file was written here.
    pub(crate) fn owns(&self, path: &PayloadPath) -> bool {
        self.files.contains(path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::sync::object::ObjectKind;

    #[test]
    fn a_state_is_read_as_it_was_written_and_nobody_elses() {
        let temporary = tempfile::tempdir().expect("a directory");
        let directory = Directory::open(temporary.path()).expect("it is there");
        assert_eq!(State::load(&directory).expect("no state"), State::default());
        let state = State {
            files: ["a".to_owned()].into(),
            directories: BTreeSet::new(),
            refused: vec![ObjectVersion {
                kind: ObjectKind::Secret,
                namespace: "shop".to_owned(),
                name: "tls".to_owned(),
                uid: "u".to_owned(),
                resource_version: "7".to_owned(),
            }],
        };
        state.save(&directory).expect("saved");
        state.save(&directory).expect("saved again");
        assert_eq!(State::load(&directory).expect("a state"), state);
        let is = std::fs::metadata(temporary.path().join(NAME)).expect("a file");
        assert_eq!(is.permissions().mode() & 0o7777, 0o600);
        std::fs::write(temporary.path().join(NAME), "no state").expect("written");
        assert!(State::load(&directory).is_err());
    }
}
