//! How rows look on disk: fixed little-endian headers, then bytes as they are.
//!
//! ```text
//! object   revision u64 │ created u64 │ version u64 │ expires u64 │ value …
//! change   at u64 │ flags u8 │ key length u32 │ key │ (before: an object row) …
//! ```

use bytes::Bytes;

use super::memory::Record;
use crate::{Key, Revision};

const OBJECT_HEADER: usize = 32;
const CHANGE_HEADER: usize = 13;
const FLAG_DELETE: u8 = 1;
const FLAG_BEFORE: u8 = 2;

/// A row that no release writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a row of {0} bytes cannot be decoded")]
pub(super) struct BadRow(usize);

/// A change as it is stored: what the key held before. What it held after follows from the later rows.
#[derive(Debug, PartialEq)]
pub(super) struct ChangeRow {
    pub(super) key: Key,
    /// Milliseconds since the epoch.
    pub(super) at: u64,
    pub(super) delete: bool,
    pub(super) before: Option<Record>,
}

/// Appends an object row to `row`.
pub(super) fn encode_object(record: &Record, row: &mut Vec<u8>) {
    row.extend_from_slice(&record.revision.0.to_le_bytes());
    row.extend_from_slice(&record.created.0.to_le_bytes());
    row.extend_from_slice(&record.version.to_le_bytes());
    row.extend_from_slice(&record.expires.unwrap_or(0).to_le_bytes());
    row.extend_from_slice(&record.value);
}

/// Reads what [`encode_object`] wrote.
pub(super) fn decode_object(row: &[u8]) -> Result<Record, BadRow> {
    let bad = BadRow(row.len());
    let (header, value) = row.split_at_checked(OBJECT_HEADER).ok_or(bad)?;
    let expires = number(header, 24).ok_or(bad)?;
    Ok(Record {
        revision: Revision(number(header, 0).ok_or(bad)?),
        created: Revision(number(header, 8).ok_or(bad)?),
        version: number(header, 16).ok_or(bad)?,
        expires: (expires != 0).then_some(expires),
        value: Bytes::copy_from_slice(value),
    })
}

/// Appends a change row to `row`.
pub(super) fn encode_change(key: &str, at: u64, delete: bool, before: Option<&Record>, row: &mut Vec<u8>) {
    let delete = if delete { FLAG_DELETE } else { 0 };
    let had = if before.is_some() { FLAG_BEFORE } else { 0 };
    let key_length = u32::try_from(key.len()).expect("keys are bounded by the size of a write");
    row.extend_from_slice(&at.to_le_bytes());
    row.push(delete | had);
    row.extend_from_slice(&key_length.to_le_bytes());
    row.extend_from_slice(key.as_bytes());
    if let Some(before) = before {
        encode_object(before, row);
    }
}

/// Reads what [`encode_change`] wrote.
pub(super) fn decode_change(row: &[u8]) -> Result<ChangeRow, BadRow> {
    let bad = BadRow(row.len());
    let (header, rest) = row.split_at_checked(CHANGE_HEADER).ok_or(bad)?;
    let flags = header[8];
    let key_length = u32::from_le_bytes(header[9..].try_into().map_err(|_| bad)?);
    let (key, before) = rest
        .split_at_checked(usize::try_from(key_length).map_err(|_| bad)?)
        .ok_or(bad)?;
    if flags & !(FLAG_DELETE | FLAG_BEFORE) != 0 || (flags & FLAG_BEFORE == 0 && !before.is_empty()) {
        return Err(bad);
    }
    Ok(ChangeRow {
        key: std::str::from_utf8(key).map_err(|_| bad)?.into(),
        at: number(header, 0).ok_or(bad)?,
        delete: flags & FLAG_DELETE != 0,
        before: if flags & FLAG_BEFORE != 0 {
            Some(decode_object(before)?)
        } else {
            None
        },
    })
}

fn number(header: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records() -> impl Strategy<Value = Record> {
        (
            any::<u64>(),
            any::<u64>(),
            any::<u64>(),
            0..u64::MAX,
            proptest::collection::vec(any::<u8>(), 0..64),
        )
            .prop_map(|(revision, created, version, expires, value)| Record {
                revision: Revision(revision),
                created: Revision(created),
                version,
                expires: (expires != 0).then_some(expires),
                value: value.into(),
            })
    }

    proptest! {
        #[test]
        fn rows_read_back_as_written(
            key in ".{0,20}",
            at in any::<u64>(),
            delete in any::<bool>(),
            before in proptest::option::of(records()),
        ) {
            let mut row = Vec::new();
            encode_change(&key, at, delete, before.as_ref(), &mut row);
            let read = decode_change(&row).expect("a row just written");
            prop_assert_eq!(read, ChangeRow { key: key.as_str().into(), at, delete, before });
        }

        #[test]
        fn garbage_is_an_error_or_a_row_but_never_a_panic(row in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode_change(&row);
            let _ = decode_object(&row);
        }
    }
}
