//! Which objects this instance has applied from which directory: `manifests.json` in the data directory.
//!
//! It is written after objects were applied and before nothing: whoever dies in between applies them again. An object is deleted
//! only by the uid that is written here, so that one that somebody has made anew under its name stays.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    apply::Applied,
    target::{ObjectId, Reference, Target},
};

/// The file, beside the store that it speaks of.
const FILE: &str = "manifests.json";

/// What was applied, and where it came from.
pub(super) struct Record {
    path: PathBuf,
    entries: BTreeMap<ObjectId, Entry>,
    is_written: bool,
}

/// One object.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) target: Target,
    pub(super) uid: String,
    pub(super) place: Place,
    reference: Reference,
    /// Nothing holds it any more, and that it stays was said.
    pub(super) is_left: bool,
    /// Why it could not be deleted, as it was said.
    pub(super) complaint: Option<String>,
}

/// The file that an object came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) directory: PathBuf,
    pub(super) file: String,
}

#[derive(Serialize, Deserialize)]
struct Written {
    objects: Vec<WrittenObject>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenObject {
    #[serde(flatten)]
    reference: Reference,
    uid: String,
    directory: PathBuf,
    file: String,
    #[serde(default)]
    is_left: bool,
}

/// The record is damaged, or cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error("cannot read {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{} is damaged; remove it, and what was applied before stays for you to delete", .path.display()
    )]
    Damaged {
        path: PathBuf,
        source: serde_json::Error,
    },
}

impl Record {
    /// What the data directory holds; nothing at first.
    pub(super) fn read(data_dir: &Path) -> Result<Self, RecordError> {
        let path = data_dir.join(FILE);
        let mut record = Self {
            path: path.clone(),
            entries: BTreeMap::new(),
            is_written: true,
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(record),
            Err(source) => return Err(RecordError::Read { path, source }),
        };
        let written: Written =
            serde_json::from_slice(&text).map_err(|source| RecordError::Damaged { path, source })?;
        for object in written.objects {
            // A kind that this release does not serve has no objects.
            let Ok(target) = Target::of(&object.reference) else {
                continue;
            };
            let entry = Entry {
                uid: object.uid,
                place: Place {
                    directory: object.directory,
                    file: object.file,
                },
                reference: object.reference,
                is_left: object.is_left,
                complaint: None,
                target,
            };
            record.entries.insert(entry.target.id.clone(), entry);
        }
        Ok(record)
    }

    /// Notes an object that a file holds.
    pub(super) fn note(&mut self, applied: &Applied, place: &Place) {
        let id = applied.target.id.clone();
        let is_known = self.entries.get(&id).is_some_and(|entry| {
            entry.uid == applied.uid && entry.place == *place && !entry.is_left && entry.complaint.is_none()
        });
        if is_known {
            return;
        }
        let entry = Entry {
            target: applied.target.clone(),
            uid: applied.uid.clone(),
            place: place.clone(),
            reference: applied.reference.clone(),
            is_left: false,
            complaint: None,
        };
        self.entries.insert(id, entry);
        self.is_written = false;
    }

    /// The objects that were last applied from this file.
    pub(super) fn of_file(&self, place: &Place) -> Vec<ObjectId> {
        let entries = self.entries.values();
        entries
            .filter(|entry| entry.place == *place)
            .map(|entry| entry.target.id.clone())
            .collect()
    }

    /// What was applied from a directory and is not wanted any more, in the order in which it may go: namespaces last.
    pub(super) fn gone(&self, directory: &Path, wanted: &HashSet<&ObjectId>) -> Vec<Entry> {
        let entries = self.entries.values();
        let mut gone: Vec<_> = entries
            .filter(|entry| entry.place.directory == directory && !wanted.contains(&entry.target.id))
            .cloned()
            .collect();
        gone.sort_by_key(|entry| entry.target.is_namespace());
        gone
    }

    pub(super) fn forget(&mut self, id: &ObjectId) {
        self.entries.remove(id);
        self.is_written = false;
    }

    /// It was said that the object stays.
    pub(super) fn leave(&mut self, id: &ObjectId) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.is_left = true;
            self.is_written = false;
        }
    }

    /// True if this was not said before.
    pub(super) fn complain(&mut self, id: &ObjectId, complaint: &str) -> bool {
        let Some(entry) = self.entries.get_mut(id) else {
            return false;
        };
        let is_new = entry.complaint.as_deref() != Some(complaint);
        entry.complaint = Some(complaint.to_owned());
        is_new
    }

    /// Objects that another file holds than the one they were last applied from are of that one from now on.
    pub(super) fn settle(&mut self, holders: &HashMap<&ObjectId, Vec<Place>>) {
        for (id, entry) in &mut self.entries {
            if let Some(places) = holders.get(id)
                && !places.contains(&entry.place)
                && let Some(place) = places.first()
            {
                entry.place = place.clone();
                self.is_written = false;
            }
        }
    }

    /// What has to be brought to the disk, and where, unless it is there.
    pub(super) fn unwritten(&self) -> serde_json::Result<Option<(PathBuf, Vec<u8>)>> {
        if self.is_written {
            return Ok(None);
        }
        let objects = self.entries.values().map(|entry| WrittenObject {
            reference: entry.reference.clone(),
            uid: entry.uid.clone(),
            directory: entry.place.directory.clone(),
            file: entry.place.file.clone(),
            is_left: entry.is_left,
        });
        let written = Written {
            objects: objects.collect(),
        };
        Ok(Some((self.path.clone(), serde_json::to_vec(&written)?)))
    }

    /// It is on the disk as it is.
    pub(super) fn is_on_disk(&mut self) {
        self.is_written = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::up::manifests::apply::Outcome;

    fn applied(kind: &str, name: &str, uid: &str) -> Applied {
        let reference = Reference {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        Applied {
            target: Target::of(&reference).expect("a served kind"),
            reference,
            uid: uid.to_owned(),
            outcome: Outcome::Created,
        }
    }

    fn place(directory: &str, file: &str) -> Place {
        Place {
            directory: directory.into(),
            file: file.to_owned(),
        }
    }

    #[test]
    fn what_is_not_wanted_any_more_is_gone_from_its_own_directory_only() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        let mut record = Record::read(data_dir.path()).expect("none yet");
        let (namespace, moved, other) = (
            applied("Namespace", "a", "1"),
            applied("ConfigMap", "b", "2"),
            applied("ConfigMap", "c", "3"),
        );
        record.note(&namespace, &place("/m", "a.yaml"));
        record.note(&moved, &place("/m", "a.yaml"));
        record.note(&other, &place("/other", "a.yaml"));
        let (file, text) = record.unwritten().expect("JSON").expect("news");
        fs::write(file, text).expect("writable");

        let mut record = Record::read(data_dir.path()).expect("written");
        let names = |record: &Record, wanted: &[&Applied]| {
            let wanted = wanted.iter().map(|applied| &applied.target.id).collect();
            let gone = record.gone(Path::new("/m"), &wanted);
            Vec::from_iter(gone.into_iter().map(|entry| entry.target.printed))
        };
        assert_eq!(names(&record, &[&namespace, &moved]), Vec::<String>::new());
        assert_eq!(names(&record, &[&namespace]), ["configmap/b"]);
        assert_eq!(
            names(&record, &[]),
            ["configmap/b", "namespace/a"],
            "namespaces last"
        );
        record.forget(&moved.target.id);
        assert_eq!(names(&record, &[]), ["namespace/a"]);
        assert_eq!(record.of_file(&place("/other", "a.yaml")), [other.target.id]);
    }

    #[test]
    fn what_was_left_and_is_wanted_again_is_not_left() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        let mut record = Record::read(data_dir.path()).expect("none yet");
        let (object, place) = (applied("ConfigMap", "b", "2"), place("/m", "a.yaml"));
        record.note(&object, &place);
        record.leave(&object.target.id);
        assert!(record.gone(Path::new("/m"), &HashSet::new())[0].is_left);
        record.note(&object, &place);
        assert!(!record.gone(Path::new("/m"), &HashSet::new())[0].is_left);
        assert!(record.complain(&object.target.id, "no"));
        assert!(!record.complain(&object.target.id, "no"));
    }

    #[test]
    fn an_object_moves_with_the_file_that_holds_it() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        let mut record = Record::read(data_dir.path()).expect("none yet");
        let (object, old, new) = (applied("ConfigMap", "b", "2"), place("/m", "a"), place("/m", "b"));
        record.note(&object, &old);
        record.is_on_disk();
        for (holders, of_old, is_news) in [(vec![&new, &old], 1, false), (vec![&new], 0, true)] {
            let holders = holders.into_iter().cloned().collect();
            record.settle(&HashMap::from([(&object.target.id, holders)]));
            assert_eq!(record.of_file(&old).len(), of_old);
            assert_eq!(record.unwritten().expect("JSON").is_some(), is_news);
        }
        assert_eq!(record.of_file(&new).len(), 1);
    }

    #[test]
    fn a_damaged_record_is_named() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(data_dir.path().join(FILE), "{").expect("writable");
        let error = Record::read(data_dir.path()).err().expect("damaged").to_string();
        assert!(error.contains("manifests.json is damaged"), "{error}");
    }
}
