//! Changes that the targets have not taken yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use hotmap_projection::{Change, KeyChange};

/// What has changed since the targets took something last: one [`Change`] for each watched path, in the order in
/// which the paths changed first. However many changes come while a target fails, this does not grow beyond what is
/// watched.
#[derive(Debug, Default)]
pub struct Pending(Vec<Change>);

impl Pending {
    /// Adds a change to what is there of the same path: its keys are told as one step from what was loaded.
    pub fn absorb(&mut self, newer: Change) {
        let Some(older) = self.0.iter_mut().find(|change| change.path == newer.path) else {
            self.0.push(newer);
            return;
        };
        *older = Change {
            keys: joined(&older.keys, &newer.keys),
            seen: older.seen.min(newer.seen),
            // The first look is told again if the targets have not taken it.
            is_initial: older.is_initial && newer.is_initial,
            ..newer
        };
    }

    /// What the targets have to be told.
    pub fn changes(&self) -> &[Change] {
        &self.0
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The targets have taken all of it.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Two steps as one. A key that came and went is not mentioned.
fn joined(older: &[KeyChange], newer: &[KeyChange]) -> Arc<[KeyChange]> {
    use KeyChange::{Added, Modified, Removed};
    let mut keys: BTreeMap<Arc<str>, KeyChange> = older
        .iter()
        .map(|change| (named(change), change.clone()))
        .collect();
    for change in newer {
        let key = named(change);
        let both = match (keys.remove(&key), change) {
            (Some(Added(_)), Removed(_)) => continue,
            (Some(Added(_)), _) => Added(Arc::clone(&key)),
            (Some(Removed(_)), Added(_) | Modified(_)) => Modified(Arc::clone(&key)),
            (_, change) => change.clone(),
        };
        keys.insert(key, both);
    }
    keys.into_values().collect()
}

fn named(change: &KeyChange) -> Arc<str> {
    match change {
        KeyChange::Added(key) | KeyChange::Modified(key) | KeyChange::Removed(key) => Arc::clone(key),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use hotmap_projection::Revision;

    use super::*;

    fn change(path: &str, revision: &str, keys: &[KeyChange], seen: Instant) -> Change {
        Change {
            path: Arc::new(PathBuf::from(path)),
            revision: Revision::new(revision),
            keys: keys.into(),
            is_initial: false,
            seen,
        }
    }

    #[test]
    fn changes_of_one_path_become_one_step_from_what_was_loaded() {
        use KeyChange::{Added, Modified, Removed};
        let key = || Arc::<str>::from("k");
        let table: [(&[KeyChange], &[KeyChange], &[KeyChange]); 7] = [
            (&[Added(key())], &[Modified(key())], &[Added(key())]),
            (&[Added(key())], &[Removed(key())], &[]),
            (&[Modified(key())], &[Modified(key())], &[Modified(key())]),
            (&[Modified(key())], &[Removed(key())], &[Removed(key())]),
            (&[Removed(key())], &[Added(key())], &[Modified(key())]),
            (&[], &[Added(key())], &[Added(key())]),
            (&[Removed(key())], &[], &[Removed(key())]),
        ];
        for (older, newer, both) in table {
            assert_eq!(*joined(older, newer), *both, "{older:?} then {newer:?}");
        }
    }

    #[test]
    fn the_newest_revision_and_the_first_sign_are_kept() {
        let first = Instant::now();
        let second = first + Duration::from_secs(1);
        let mut pending = Pending::default();
        pending.absorb(change("/a", "1", &[], first));
        pending.absorb(change("/b", "1", &[], second));
        pending.absorb(change("/a", "2", &[], second));
        let told: Vec<_> = pending
            .changes()
            .iter()
            .map(|c| (c.revision.as_str(), c.seen))
            .collect();
        assert_eq!(told, [("2", first), ("1", second)]);
        pending.clear();
        assert!(pending.is_empty());
    }
}
