//! Sets of completion indexes as a Job's status writes them: `0,2-5,7`.
//!
//! Source: `pkg/controller/job/indexed_job_utils.go`, Kubernetes 1.36.

use std::{collections::BTreeSet, fmt};

/// Indexes in ranges: in order, apart from each other, both ends included. A set of a million indexes is as small as its
/// text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    ranges: Vec<(u32, u32)>,
}

impl Indexes {
    /// Reads the indexes below `completions`; a range that cannot be read is left out.
    pub(super) fn parse(text: &str, completions: u32) -> Self {
        let mut indexes = Self::default();
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>())
                && first < completions
            {
                indexes.append(first, last.min(completions - 1));
            }
        }
        indexes
    }

    pub(super) fn total(&self) -> usize {
        self.ranges
            .iter()
            .map(|(first, last)| (last - first) as usize + 1)
            .sum()
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < index);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// What is in either.
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all: Vec<_> = self.ranges.iter().chain(&other.ranges).copied().collect();
        all.sort_unstable();
        let mut union = Self::default();
        all.into_iter()
            .for_each(|(first, last)| union.append(first, last));
        union
    }

    /// How many are in both.
    pub(super) fn common(&self, other: &Self) -> usize {
        let (mut ours, mut theirs) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut common = 0;
        while let (Some(&&(first, last)), Some(&&(other_first, other_last))) = (ours.peek(), theirs.peek()) {
            let (from, to) = (first.max(other_first), last.min(other_last));
            if from <= to {
                common += (to - from) as usize + 1;
            }
            if last < other_last {
                ours.next();
            } else {
                theirs.next();
            }
        }
        common
    }

    /// The first `count` indexes below `completions` that are not in the set.
    pub(super) fn missing(&self, count: usize, completions: u32) -> Vec<u32> {
        let ends = self.ranges.iter().copied().chain([(completions, completions)]);
        let mut candidate = 0;
        let mut missing = Vec::new();
        for (first, last) in ends {
            while candidate < first.min(completions) && missing.len() < count {
                missing.push(candidate);
                candidate += 1;
            }
            candidate = candidate.max(last.saturating_add(1));
        }
        missing
    }

    /// Ranges come in order of their beginning.
    fn append(&mut self, first: u32, last: u32) {
        match self.ranges.last_mut() {
            Some((_, before)) if first <= before.saturating_add(1) => *before = (*before).max(last),
            _ if first <= last => self.ranges.push((first, last)),
            _ => {}
        }
    }
}

impl FromIterator<u32> for Indexes {
    fn from_iter<I: IntoIterator<Item = u32>>(indexes: I) -> Self {
        let sorted: BTreeSet<u32> = indexes.into_iter().collect();
        let mut ranges = Self::default();
        sorted.into_iter().for_each(|index| ranges.append(index, index));
        ranges
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_upstreams_and_what_cannot_be_read_is_left_out() {
        for (text, completions, expected) in [
            ("", 10, ""),
            ("0", 10, "0"),
            ("1,2", 10, "1,2"),
            ("1,2,3,4-9", 10, "1-9"),
            ("1-3,5,7-9", 10, "1-3,5,7-9"),
            ("1-3,5,7-9", 8, "1-3,5,7"),
            ("0-2,4", 2, "0,1"),
            ("8", 8, ""),
            ("1,x,3-,5-6", 10, "1,5,6"),
            ("1-4294967295", 3, "1,2"),
            ("5", 0, ""),
        ] {
            assert_eq!(Indexes::parse(text, completions).to_string(), expected, "{text}");
        }
    }

    fn some() -> impl Strategy<Value = BTreeSet<u32>> {
        proptest::collection::btree_set(0_u32..40, 0..30)
    }

    proptest! {
        #[test]
        fn they_behave_as_sets(one in some(), other in some(), count in 0_usize..12, completions in 1_u32..45) {
            let (left, right): (Indexes, Indexes) = (one.iter().copied().collect(), other.iter().copied().collect());
            prop_assert_eq!(left.total(), one.len());
            prop_assert_eq!(Indexes::parse(&left.to_string(), 100), left.clone());
            prop_assert_eq!(left.union(&right), one.union(&other).copied().collect());
            prop_assert_eq!(left.common(&right), one.intersection(&other).count());
            for index in 0..45 {
                prop_assert_eq!(left.contains(index), one.contains(&index));
            }
            let missing: Vec<u32> = (0..completions).filter(|index| !one.contains(index)).take(count).collect();
            prop_assert_eq!(left.missing(count, completions), missing);
        }
    }
}
