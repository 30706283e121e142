//! What is remembered of files: fingerprints, never bytes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rustix::fs::Stat;

use crate::change::KeyChange;
use crate::digest::{Digest, Digester};
use crate::revision::Revision;

/// All files beneath a watched path at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// Sorted by key, which comes once.
    files: Vec<(Arc<str>, Fingerprint)>,
    digest: Digest,
    pub(crate) revision: Revision,
    /// Whether it lies behind a link that is swapped whole, so that no look finds it half written.
    pub(crate) is_projected: bool,
}

/// What is remembered of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprint {
    pub(crate) digest: Digest,
    pub(crate) identity: Identity,
}

/// Which state of which file a digest was made from: a hash of device, inode, size and both times. While it stays the
/// same the file need not be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(u64);

impl Identity {
    /// Equal to nothing that is found, so that the file is read again.
    pub(crate) const UNSURE: Self = Self(0);

    pub(crate) fn of(stat: &Stat) -> Self {
        let mut hasher = DefaultHasher::new();
        (stat.st_dev, stat.st_ino, stat.st_size).hash(&mut hasher);
        (stat.st_mtime, stat.st_mtime_nsec).hash(&mut hasher);
        (stat.st_ctime, stat.st_ctime_nsec).hash(&mut hasher);
        Self(hasher.finish().max(1))
    }
}

impl Content {
    /// `files` in any order. Of content that has no revision of its own its digest is the revision.
    pub(crate) fn new(
        mut files: Vec<(Arc<str>, Fingerprint)>,
        mut digester: Digester,
        revision: Option<Revision>,
        is_projected: bool,
    ) -> Self {
        files.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        files.dedup_by(|(one, _), (other, _)| one == other);
        files.shrink_to_fit();
        for (key, fingerprint) in &files {
            digester.update_field(key.as_bytes());
            digester.update_digest(fingerprint.digest);
        }
        let digest = digester.finish();
        Self {
            files,
            digest,
            revision: revision.unwrap_or_else(|| Revision::new(digest.short())),
            is_projected,
        }
    }

    /// Whether names and bytes are the same, wherever they are kept.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// A key as it is kept here, and what is remembered of its file.
    pub(crate) fn get(&self, key: &str) -> Option<(&Arc<str>, Fingerprint)> {
        let place = self
            .files
            .binary_search_by(|(other, _)| other.as_ref().cmp(key))
            .ok()?;
        let (key, fingerprint) = &self.files[place];
        Some((key, *fingerprint))
    }

    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.files.iter().map(|(key, _)| key)
    }

    /// What became of each key on the way from `before` to this, in order of the keys.
    pub(crate) fn changes_since(&self, before: Option<&Self>) -> Arc<[KeyChange]> {
        let mut changes = Vec::new();
        let mut old = before.map_or(&[][..], |before| &before.files).iter().peekable();
        for (key, fingerprint) in &self.files {
            while let Some((gone, _)) = old.next_if(|(other, _)| other < key) {
                changes.push(KeyChange::Removed(gone.clone()));
            }
            match old.next_if(|(other, _)| other == key) {
                None => changes.push(KeyChange::Added(key.clone())),
                Some((_, was)) if was.digest != fingerprint.digest => {
                    changes.push(KeyChange::Modified(key.clone()));
                }
                Some(_) => {}
            }
        }
        changes.extend(old.map(|(gone, _)| KeyChange::Removed(gone.clone())));
        changes.into()
    }
}

/// Content of these keys and texts.
#[cfg(test)]
pub(crate) fn content(files: &[(&str, &str)]) -> Content {
    let digester = Digester::of_this_process().unwrap();
    let file = |(key, text): &(&str, &str)| {
        let mut digester = digester.clone();
        digester.update(text.as_bytes());
        let digest = digester.finish();
        let identity = Identity::UNSURE;
        (Arc::from(*key), Fingerprint { digest, identity })
    };
    Content::new(files.iter().map(file).collect(), digester.clone(), None, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_that_differs_is_named_once() {
        let before = content(&[("a", "1"), ("b", "1"), ("d", "1"), ("e", "1")]);
        let after = content(&[("e", "1"), ("c", "1"), ("b", "2"), ("f", "1")]);
        let changes: Vec<String> = after
            .changes_since(Some(&before))
            .iter()
            .map(|change| format!("{change:?}"))
            .collect();
        let expected = [
            "Removed(\"a\")",
            "Modified(\"b\")",
            "Added(\"c\")",
            "Removed(\"d\")",
            "Added(\"f\")",
        ];
        assert_eq!(changes, expected);
        assert_eq!(after.changes_since(Some(&after)).len(), 0);
        assert!(
            after
                .changes_since(None)
                .iter()
                .all(|change| matches!(change, KeyChange::Added(_)))
        );
    }

    #[test]
    fn the_revision_of_plain_files_follows_names_and_bytes() {
        let one = content(&[("a", "1"), ("b", "2")]);
        assert_eq!(one.revision, content(&[("b", "2"), ("a", "1")]).revision);
        for other in [
            &[("a", "1")][..],
            &[("a", "1"), ("c", "2")],
            &[("a", "1"), ("b", "3")],
        ] {
            assert_ne!(one.revision, content(other).revision, "{other:?}");
        }
    }
}
