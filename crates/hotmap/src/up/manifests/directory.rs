//! What is known of one followed directory.

use std::{
    collections::{BTreeMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

use super::{
    record::{Place, Record},
    target::ObjectId,
};

/// One directory.
#[derive(Debug)]
pub(super) struct Directory {
    /// As it was given.
    pub(super) path: PathBuf,
    /// What it is called in records.
    absolute: PathBuf,
    files: BTreeMap<String, Manifest>,
    /// Why it could not be listed, as it was said.
    complaint: Option<String>,
}

/// One file of it, as it was at the last look.
#[derive(Debug)]
struct Manifest {
    digest: u64,
    state: State,
    /// What it holds; of a file that cannot be read or parsed, what it held the last time that it could.
    objects: Vec<ObjectId>,
    /// What is wrong with it, as it was said.
    complaint: Option<String>,
}

/// What became of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The objects are as it says.
    Applied,
    /// Nothing but an edit of it helps.
    Wrong,
    /// The API may take it later.
    Refused,
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            absolute: std::path::absolute(&path).unwrap_or_else(|_| path.clone()),
            path,
            files: BTreeMap::new(),
            complaint: None,
        }
    }

    pub(super) fn absolute(&self) -> &std::path::Path {
        &self.absolute
    }

    pub(super) fn place(&self, file: &str) -> Place {
        Place {
            directory: self.absolute.clone(),
            file: file.to_owned(),
        }
    }

    /// What errors call a file of it.
    pub(super) fn label(&self, file: &str) -> String {
        self.path.join(file).display().to_string()
    }

    /// Forgets the files that are not among these.
    pub(super) fn retain<'a>(&mut self, names: impl Iterator<Item = &'a String>) {
        let names: HashSet<_> = names.collect();
        self.files.retain(|name, _| names.contains(name));
    }

    /// Whether a file with this content has to be looked into: it is new, it is another, or it was refused.
    pub(super) fn needs(&self, file: &str, digest: u64) -> bool {
        self.files
            .get(file)
            .is_none_or(|known| known.digest != digest || known.state == State::Refused)
    }

    /// What is wrong with it by the last word, if anything.
    pub(super) fn has_complaint(&self, file: &str) -> bool {
        self.files
            .get(file)
            .is_some_and(|known| known.complaint.is_some())
    }

    /// The file was looked into and could not be understood: what it held is still wanted. True if `complaint` is news.
    pub(super) fn is_wrong(&mut self, file: &str, digest: u64, complaint: String, record: &Record) -> bool {
        let known = self.files.remove(file);
        let is_news = known
            .as_ref()
            .is_none_or(|known| known.complaint.as_ref() != Some(&complaint));
        let objects = match known {
            Some(known) => known.objects,
            None => record.of_file(&self.place(file)),
        };
        let manifest = Manifest {
            digest,
            state: State::Wrong,
            objects,
            complaint: Some(complaint),
        };
        self.files.insert(file.to_owned(), manifest);
        is_news
    }

    /// The file was understood; `complaint` if not all of it was taken. True if that is news.
    pub(super) fn was_tried(
        &mut self,
        file: &str,
        digest: u64,
        objects: Vec<ObjectId>,
        refused: Option<(State, String)>,
    ) -> bool {
        let (state, complaint) = match refused {
            Some((state, complaint)) => (state, Some(complaint)),
            None => (State::Applied, None),
        };
        let known = self.files.get(file).and_then(|known| known.complaint.as_ref());
        let is_news = complaint.is_some() && complaint.as_ref() != known;
        let manifest = Manifest {
            digest,
            state,
            objects,
            complaint,
        };
        self.files.insert(file.to_owned(), manifest);
        is_news
    }

    /// Whether a file waits for the API to take it.
    pub(super) fn has_refused(&self) -> bool {
        self.files.values().any(|known| known.state == State::Refused)
    }

    /// What its files hold, each with the name of the file.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&str, &ObjectId)> {
        let files = self.files.iter();
        files.flat_map(|(name, known)| known.objects.iter().map(move |id| (name.as_str(), id)))
    }

    /// The directory could be listed.
    pub(super) fn is_listed(&mut self) {
        self.complaint = None;
    }

    /// The directory could not be listed: all that was known of it holds. True if this is news.
    pub(super) fn is_unlisted(&mut self, complaint: String) -> bool {
        let is_news = self.complaint.as_ref() != Some(&complaint);
        self.complaint = Some(complaint);
        is_news
    }
}

/// Tells contents apart without keeping them: they may be Secrets.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::up::manifests::target::{Reference, Target};

    fn id(name: &str) -> ObjectId {
        let reference = Reference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        Target::of(&reference).expect("a ConfigMap").id
    }

    #[test]
    fn a_file_is_looked_into_when_it_is_another_or_was_refused() {
        let mut directory = Directory::new("/m".into());
        assert!(directory.needs("a", 1), "new");
        directory.was_tried("a", 1, vec![id("x")], None);
        assert!(!directory.needs("a", 1), "applied");
        assert!(directory.needs("a", 2), "edited");
        directory.was_tried("a", 1, vec![id("x")], Some((State::Wrong, "no".to_owned())));
        assert!(!directory.needs("a", 1), "only an edit helps");
        directory.was_tried("a", 1, vec![id("x")], Some((State::Refused, "later".to_owned())));
        assert!(directory.needs("a", 1) && directory.has_refused());
    }

    #[test]
    fn a_file_that_breaks_keeps_what_it_held_wanted() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        let record = Record::read(data_dir.path()).expect("none yet");
        let mut directory = Directory::new("/m".into());
        directory.was_tried("a", 1, vec![id("x")], None);
        assert!(directory.is_wrong("a", 2, "bad".to_owned(), &record), "news");
        assert!(
            !directory.is_wrong("a", 3, "bad".to_owned(), &record),
            "said before"
        );
        assert_eq!(Vec::from_iter(directory.objects()), [("a", &id("x"))]);
        directory.retain([].iter());
        assert_eq!(directory.objects().count(), 0, "it is gone");
    }
}
