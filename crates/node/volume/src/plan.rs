//! Which volumes to write and which to remove: decided from two plain states, without clock or disk.

use std::collections::BTreeMap;

/// What a volume shall hold. `C` identifies content: a digest, or the payload itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesiredVolume<C> {
    /// This content.
    Content(C),
    /// Unknown for now, because an object is missing or cannot be fetched: the last good content stays.
    Unavailable,
}

/// What is known of a volume directory found on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActualVolume<C> {
    /// This content was written and is believed to be there.
    Content(C),
    /// It exists, but what it holds is not known: after a start, or after a failed write.
    Unknown,
}

/// One thing to do. Doing it twice does no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<K> {
    /// Write the desired content.
    Write(K),
    /// Remove the directory: nobody wants this volume any more.
    Remove(K),
}

/// The steps from `actual` to `desired`; the same two worlds always give the same steps.
///
/// Removals come first: they free the space the writes may need. A volume whose content is unavailable is
/// neither written nor removed.
pub fn plan<K: Ord + Clone, C: PartialEq>(
    desired: &BTreeMap<K, DesiredVolume<C>>,
    actual: &BTreeMap<K, ActualVolume<C>>,
) -> Vec<Step<K>> {
    let unwanted = actual
        .keys()
        .filter(|key| !desired.contains_key(key))
        .cloned()
        .map(Step::Remove);
    let outdated = desired
        .iter()
        .filter(|(key, desired)| match (desired, actual.get(key)) {
            (DesiredVolume::Unavailable, _) => false,
            (DesiredVolume::Content(wanted), Some(ActualVolume::Content(held))) => wanted != held,
            (DesiredVolume::Content(_), Some(ActualVolume::Unknown) | None) => true,
        });
    unwanted
        .chain(outdated.map(|(key, _)| Step::Write(key.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lead_from_what_is_to_what_shall_be() {
        use Step::{Remove, Write};
        let (wanted, unavailable) = (DesiredVolume::Content, DesiredVolume::Unavailable);
        let (held, unknown) = (ActualVolume::Content, ActualVolume::Unknown);
        for (desired, actual, steps) in [
            (vec![], vec![], vec![]),
            (vec![("a", wanted(1))], vec![], vec![Write("a")]),
            (vec![("a", wanted(1))], vec![("a", held(1))], vec![]),
            (vec![("a", wanted(2))], vec![("a", held(1))], vec![Write("a")]),
            (vec![("a", wanted(1))], vec![("a", unknown)], vec![Write("a")]),
            (vec![("a", unavailable)], vec![("a", held(1))], vec![]),
            (vec![("a", unavailable)], vec![], vec![]),
            (
                vec![("a", wanted(1))],
                vec![("b", unknown)],
                vec![Remove("b"), Write("a")],
            ),
        ] {
            let shown = format!("{desired:?} from {actual:?}");
            assert_eq!(
                plan(&desired.into_iter().collect(), &actual.into_iter().collect()),
                steps,
                "{shown}"
            );
        }
    }
}
