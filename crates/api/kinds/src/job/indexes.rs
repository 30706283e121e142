//! Indexes of an indexed Job as text: `0,2-4,9`.
//!
//! Rules follow `validateIndexesFormat` and `validateFailedIndexesNotOverlapCompleted` in
//! `pkg/apis/batch/validation/validation.go`, Kubernetes 1.36.

/// Text that is no list of indexes; displays as upstream says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum IndexesError {
    #[error(
        "the fragment {0:?} violates the requirement that an index interval can have at most two parts separated by '-'"
    )]
    Parts(String),
    #[error("cannot convert string to integer for index: {0:?}")]
    NoNumber(String),
    #[error("too large index: {0:?}")]
    TooLarge(String),
    #[error("non-increasing order, previous: {previous}, current: {current}")]
    Order { previous: i64, current: i64 },
}

/// How many indexes there are.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, IndexesError> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    for fragment in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval(fragment, completions)?;
        if let Some(previous) = last.filter(|last| *last >= first) {
            return Err(IndexesError::Order {
                previous,
                current: first,
            });
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that is in both lists; what cannot be read is in none.
pub(super) fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',')
            .filter_map(|fragment| interval(fragment, completions).ok())
            .collect()
    };
    let (one, other) = (intervals(one), intervals(other));
    let (mut at, mut other_at) = (0, 0);
    while let (Some(left), Some(right)) = (one.get(at), other.get(other_at)) {
        if left.0 <= right.1 && right.0 <= left.1 {
            return Some(left.0.max(right.0));
        }
        if left.0 <= right.0 {
            at += 1;
        } else {
            other_at += 1;
        }
    }
    None
}

fn interval(fragment: &str, completions: i64) -> Result<(i64, i64), IndexesError> {
    let parts: Vec<&str> = fragment.split('-').collect();
    let number = |text: &str| {
        let number: i64 = text
            .parse()
            .map_err(|_| IndexesError::NoNumber(text.to_owned()))?;
        if number >= completions {
            return Err(IndexesError::TooLarge(text.to_owned()));
        }
        Ok(number)
    };
    match parts[..] {
        [first] => number(first).map(|first| (first, first)),
        [first, last] => {
            let (first, last) = (number(first)?, number(last)?);
            if first >= last {
                return Err(IndexesError::Order {
                    previous: first,
                    current: last,
                });
            }
            Ok((first, last))
        }
        _ => Err(IndexesError::Parts(fragment.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_indexes_are_ordered_and_below_the_completions() {
        for (text, wanted) in [
            ("", Ok(0)),
            ("0", Ok(1)),
            ("0,2-4,9", Ok(5)),
            ("10", Err("too large index: \"10\"")),
            ("3-1", Err("non-increasing order, previous: 3, current: 1")),
            ("1,1", Err("non-increasing order, previous: 1, current: 1")),
            ("a", Err("cannot convert string to integer for index: \"a\"")),
            (
                "1-2-3",
                Err(
                    "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
                ),
            ),
        ] {
            assert_eq!(
                count(text, 10).map_err(|error| error.to_string()),
                wanted.map_err(str::to_owned),
                "{text}"
            );
        }
    }

    #[test]
    fn lists_overlap_at_their_first_common_index() {
        for (one, other, at) in [
            ("0-2,5", "3,6-7", None),
            ("0-2,5", "2", Some(2)),
            ("1,4-8", "0,2-3,6", Some(6)),
            ("", "1", None),
        ] {
            assert_eq!(overlap(one, other, 10), at, "{one} {other}");
        }
    }
}
