//! Reads one revision of a volume, whole: through one handle on it, whatever `..data` names meanwhile.

use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{FileType, Mode, OFlags};

use crate::atomic_writer::{DATA_LINK, RevisionName, read_data_link};
use crate::directory::Directory;
use crate::payload::PayloadPath;
use crate::plan::DataLink;

/// A writer that overtakes a reader this often between two system calls of its own is no writer.
const LOOKS_MAX: u32 = 100;

/// One revision of a volume, held open.
///
/// Two files that are read by two walks through `..data` can be of two revisions; through one snapshot they
/// never are. A snapshot keeps showing its revision until the writer removes that (at once, or later with
/// [`Removal::Deferred`](crate::Removal::Deferred)); from then on its files are [`SnapshotError::Replaced`],
/// and a new snapshot shows the new ones. Only volumes of this layout can be read, a kubelet's included.
#[derive(Debug)]
pub struct Snapshot {
    volume: Directory,
    revision: RevisionName,
    directory: Directory,
}

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Nothing was ever written into this directory, or `..data` is not a writer's.
    #[error("there is no revision: {DATA_LINK} is missing or names none")]
    Nothing,
    /// The file is not part of this revision.
    #[error("no file {path:?} in revision {revision}")]
    NoFile {
        /// The file that was asked for.
        path: PayloadPath,
        /// Where.
        revision: RevisionName,
    },
    /// This revision was replaced and is removed: take a new snapshot.
    #[error("the revision was replaced")]
    Replaced,
    /// The system refused.
    #[error("cannot read {what:?}")]
    Read {
        /// What, relative to the volume or to the revision.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl Snapshot {
    /// Opens the revision that is visible now.
    ///
    /// # Errors
    /// [`SnapshotError`], never [`SnapshotError::Replaced`]: a swap in between is followed.
    pub fn open(volume: &Directory) -> Result<Self, SnapshotError> {
        let failed = |source| SnapshotError::Read {
            what: DATA_LINK.to_owned(),
            source,
        };
        let mut looks = 0;
        loop {
            looks += 1;
            let DataLink::Revision(revision) = read_data_link(volume).map_err(failed)? else {
                return Err(SnapshotError::Nothing);
            };
            match volume.open_directory(revision.as_str()) {
                Ok(directory) => {
                    let volume = volume.try_clone().map_err(failed)?;
                    return Ok(Self {
                        volume,
                        revision,
                        directory,
                    });
                }
                // Overtaken: it was there when `..data` named it.
                Err(error) if error.kind() == io::ErrorKind::NotFound && looks < LOOKS_MAX => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Which revision this is.
    pub fn revision(&self) -> &RevisionName {
        &self.revision
    }

    /// The content of a file.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn read(&self, path: &PayloadPath) -> Result<Vec<u8>, SnapshotError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if self.is_replaced() => {
                SnapshotError::Replaced
            }
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SnapshotError::NoFile {
                path: path.clone(),
                revision: self.revision.clone(),
            },
            _ => SnapshotError::Read {
                what: path.to_string(),
                source,
            },
        };
        // NONBLOCK: what somebody planted here may be a FIFO.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = self
            .directory
            .open_beneath(path.as_str(), flags, Mode::empty())
            .map_err(failed)?;
        let is = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
        if FileType::from_raw_mode(is.st_mode) != FileType::RegularFile {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Whether the writer may have begun to remove this revision: it does so after the swap only.
    fn is_replaced(&self) -> bool {
        !read_data_link(&self.volume).is_ok_and(|data| data.revision() == Some(&self.revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtomicWriter, FileMode, Options, Payload, PayloadFile, Removal};

    fn payload(content: &'static str) -> Payload {
        let mut payload = Payload::new();
        for path in ["a", "b/c"] {
            let file = PayloadFile::new(content, FileMode::DEFAULT);
            payload.insert(path.parse().unwrap(), file).unwrap();
        }
        payload
    }

    fn read(snapshot: &Snapshot, path: &str) -> String {
        match snapshot.read(&path.parse().unwrap()) {
            Ok(bytes) => String::from_utf8(bytes).unwrap(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_snapshot_shows_one_revision_until_that_is_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let volume = Directory::open(temporary.path()).unwrap();
        assert!(matches!(Snapshot::open(&volume), Err(SnapshotError::Nothing)));
        let options = Options {
            removal: Removal::Deferred,
            ..Options::default()
        };
        let writer = AtomicWriter::new(Directory::open(temporary.path()).unwrap(), options);
        let first = writer.write(&payload("1")).unwrap().revision;
        let old = Snapshot::open(&volume).unwrap();
        assert_eq!(*old.revision(), first);
        assert_eq!((read(&old, "a"), read(&old, "b/c")), ("1".into(), "1".into()));
        assert_eq!(read(&old, "b"), format!("no file \"b\" in revision {first}"));
        writer.write(&payload("2")).unwrap();
        assert_eq!(read(&old, "b/c"), "1");
        assert_eq!(read(&Snapshot::open(&volume).unwrap(), "b/c"), "2");
        assert!(writer.sweep().is_empty());
        assert_eq!(read(&old, "b/c"), "the revision was replaced");
    }

    #[test]
    fn nothing_outside_is_read() {
        use std::os::unix::fs::symlink;
        let temporary = tempfile::tempdir().unwrap();
        let volume = Directory::open(temporary.path()).unwrap();
        symlink("/etc", temporary.path().join("..data")).unwrap();
        assert!(matches!(Snapshot::open(&volume), Err(SnapshotError::Nothing)));
        std::fs::remove_file(temporary.path().join("..data")).unwrap();
        let revision = "..2026_01_31_09_05_07.1";
        symlink(revision, temporary.path().join("..data")).unwrap();
        std::fs::create_dir(temporary.path().join(revision)).unwrap();
        symlink("/etc/hostname", temporary.path().join(revision).join("a")).unwrap();
        let snapshot = Snapshot::open(&volume).unwrap();
        let read = snapshot.read(&"a".parse().unwrap());
        assert!(matches!(read, Err(SnapshotError::Read { .. })), "{read:?}");
    }
}
