//! Which revision stands for the template of today, and which ones nobody needs any more.

use std::sync::Arc;

use super::Snapshot;
use crate::view::ControllerRevision;

/// The revision that stands for the template as it is.
#[derive(Debug, Clone)]
pub(crate) enum Current {
    /// The newest one does.
    Is(Arc<ControllerRevision>),
    /// An older one does: it becomes the newest by getting this number.
    Again {
        revision: Arc<ControllerRevision>,
        number: i64,
    },
    /// None does: one with this number is to be created.
    New { number: i64 },
}

/// Sorts a history, oldest first.
pub(crate) fn sort(history: &mut [Arc<ControllerRevision>]) {
    history.sort_by(|one, other| {
        let key = |revision: &ControllerRevision| (revision.revision, revision.metadata.creation_timestamp);
        key(one)
            .cmp(&key(other))
            .then_with(|| one.metadata.name.cmp(&other.metadata.name))
    });
}

/// Finds the template in a sorted history. Of several revisions that hold it the newest counts.
pub(crate) fn current(history: &[Arc<ControllerRevision>], template: &Snapshot) -> Current {
    let (same, others): (Vec<_>, Vec<_>) = history.iter().partition(|revision| template.is(&revision.data));
    let number = others.iter().map(|revision| revision.revision).max().unwrap_or(0) + 1;
    match same.last() {
        Some(revision) if revision.revision >= number => Current::Is(Arc::clone(revision)),
        Some(revision) => Current::Again {
            revision: Arc::clone(revision),
            number,
        },
        None => Current::New { number },
    }
}

/// The revisions of a sorted history that hold the same as `kept`, without it.
pub(crate) fn duplicates<'a>(
    history: &'a [Arc<ControllerRevision>],
    kept: &ControllerRevision,
) -> impl Iterator<Item = &'a Arc<ControllerRevision>> {
    let (data, name) = (kept.data.clone(), kept.metadata.name.clone());
    history
        .iter()
        .filter(move |revision| revision.data == data && revision.metadata.name != name)
}

/// What a sorted history has beyond `limit`, oldest first, sparing what is in use.
pub(crate) fn beyond_limit<'a>(
    history: &[&'a Arc<ControllerRevision>],
    limit: usize,
    is_in_use: impl Fn(&ControllerRevision) -> bool,
) -> Vec<&'a Arc<ControllerRevision>> {
    let surplus = history.len().saturating_sub(limit);
    let idle = history.iter().filter(|revision| !is_in_use(revision));
    idle.take(surplus).copied().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(name: &str, number: i64, template: &str) -> Arc<ControllerRevision> {
        let snapshot = Snapshot::of(&json!({"spec": {"hostname": template}}));
        let revision = json!({"metadata": {"name": name}, "data": snapshot.data(), "revision": number});
        Arc::new(serde_json::from_value(revision).expect("a revision"))
    }

    #[test]
    fn a_template_is_found_brought_back_or_new() {
        let wanted = Snapshot::of(&json!({"spec": {"hostname": "x"}}));
        for (history, expected) in [
            (vec![], "new 1"),
            (vec![("a", 1, "x")], "a"),
            (vec![("a", 1, "y")], "new 2"),
            (vec![("a", 1, "y"), ("b", 2, "x")], "b"),
            (vec![("a", 1, "x"), ("b", 2, "y")], "a again 3"),
            (vec![("a", 1, "x"), ("b", 2, "x"), ("c", 7, "y")], "b again 8"),
            (vec![("a", 1, "x"), ("b", 2, "y"), ("c", 3, "x")], "c"),
            (vec![("a", 4, "x"), ("b", 4, "y")], "a again 5"),
        ] {
            let mut revisions: Vec<_> = history
                .iter()
                .map(|(name, number, template)| revision(name, *number, template))
                .collect();
            revisions.reverse();
            sort(&mut revisions);
            let found = match current(&revisions, &wanted) {
                Current::Is(revision) => revision.metadata.name.clone(),
                Current::Again { revision, number } => format!("{} again {number}", revision.metadata.name),
                Current::New { number } => format!("new {number}"),
            };
            assert_eq!(found, expected, "{history:?}");
        }
    }

    #[test]
    fn revisions_of_one_number_are_sorted_by_age_then_name() {
        let dated = |name: &str, at: &str| {
            let mut revision = (*revision(name, 1, "x")).clone();
            revision.metadata.creation_timestamp = Some(at.parse().expect("a time"));
            Arc::new(revision)
        };
        let mut history = vec![
            dated("c", "2026-01-02T15:04:06Z"),
            dated("b", "2026-01-02T15:04:05Z"),
            dated("a", "2026-01-02T15:04:06Z"),
        ];
        sort(&mut history);
        let names: Vec<_> = history
            .iter()
            .map(|revision| revision.metadata.name.as_str())
            .collect();
        assert_eq!(names, ["b", "a", "c"]);
        let kept: Vec<_> = duplicates(&history, &history[1])
            .map(|revision| revision.metadata.name.as_str())
            .collect();
        assert_eq!(kept, ["b", "c"]);
    }

    #[test]
    fn the_oldest_that_nobody_uses_go_first() {
        let history: Vec<_> = ["a", "b", "c", "d"]
            .iter()
            .zip(1..)
            .map(|(name, number)| revision(name, number, name))
            .collect();
        let history: Vec<_> = history.iter().collect();
        for (limit, used, gone) in [
            (4, "", vec![]),
            (2, "", vec!["a", "b"]),
            (2, "a", vec!["b", "c"]),
            (0, "bd", vec!["a", "c"]),
            (9, "", vec![]),
        ] {
            let surplus = beyond_limit(&history, limit, |revision| used.contains(&revision.metadata.name));
            let names: Vec<_> = surplus
                .iter()
                .map(|revision| revision.metadata.name.as_str())
                .collect();
            assert_eq!(names, gone, "{limit} {used}");
        }
    }
}
