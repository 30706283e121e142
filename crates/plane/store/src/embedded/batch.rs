//! What a write does to the state before it. No clock, no disk, no lock.

use super::{
    history::Change,
    memory::{Pending, Record},
};
use crate::{Committed, Expect, Op, Revision, StoreError, Write};

/// Decides one write against what its key holds once everything before it is through.
///
/// Adds the change to `pending` and returns the answer to give when the batch is durable.
pub(super) fn decide(write: Write, pending: &mut Pending<'_>, now: u64) -> Result<Committed, StoreError> {
    let before = pending.get(&write.key);
    check(write.expect, &write.op, before)?;
    let before = before.cloned();
    let revision = pending.next_revision();
    let created = before.as_ref().map_or(revision, |before| before.created);
    let after = match write.op {
        Op::Delete => None,
        Op::Put { value, ttl } => Some(Record {
            revision,
            created,
            version: before.as_ref().map_or(0, |before| before.version) + 1,
            expires: ttl.map(|ttl| now.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))),
            value,
        }),
    };
    let previous = before
        .as_ref()
        .map(|before| (before.revision, before.value.clone()));
    pending.push(Change {
        key: write.key,
        revision,
        at: now,
        before,
        after,
        memo: write.memo,
    });
    Ok(Committed {
        revision,
        created,
        previous,
    })
}

fn check(expect: Expect, op: &Op, current: Option<&Record>) -> Result<(), StoreError> {
    match (expect, current) {
        (Expect::Absent | Expect::At(Revision::ZERO), None) => match op {
            Op::Put { .. } => Ok(()),
            Op::Delete => Err(StoreError::NotFound),
        },
        (Expect::Absent | Expect::At(Revision::ZERO), Some(_)) => Err(StoreError::Exists),
        (Expect::At(_), None) => Err(StoreError::NotFound),
        (Expect::At(seen), Some(current)) if current.revision == seen => Ok(()),
        (Expect::At(_), Some(current)) => Err(StoreError::Conflict {
            current: Some((current.revision, current.value.clone())),
        }),
    }
}
