//! The store's logical clock, as clients see it in `metadata.resourceVersion`.

use std::{fmt, num::ParseIntError, str::FromStr};

/// A revision of the whole store: every committed transaction has its own, and none is ever given out twice.
///
/// As text it is the decimal `metadata.resourceVersion`. Zero is no revision of an object: on a read it means
/// "any state", in a transaction "the key must not exist" (etcd's `mod_revision` convention).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// "Does not exist" in a transaction, "any state" on a read.
    pub const ZERO: Revision = Revision(0);

    /// The revision right after this one.
    pub fn next(self) -> Revision {
        Revision(self.0 + 1)
    }

    /// Whether this is [`Revision::ZERO`].
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Revision {
    type Err = ParseIntError;

    fn from_str(raw: &str) -> Result<Self, Self::Err> {
        raw.parse().map(Revision)
    }
}
