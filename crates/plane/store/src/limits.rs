//! Every limit of the store, with its reason.

use std::time::Duration;

/// Key and value of one write together, in bytes; what etcd accepts in one request by default, so that everything
/// stored here can move there.
pub const WRITE_BYTES_MAX: usize = 1_572_864;

/// Writes that share one disk commit. Enough to pay one fdatasync for every client that waited for the last one,
/// few enough that a batch is applied to memory in well under a millisecond.
pub const BATCH_WRITES_MAX: usize = 256;

/// Bytes (new and previous values) after which a batch takes no further write, so that a small write never waits
/// behind more than about this much data. A single larger write is a batch of its own.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Writes accepted and not yet answered, in bytes; each counts at least 1 KiB. Beyond it callers wait their turn.
pub const QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Age after which a change leaves the history: etcd, as Kubernetes compacts it, keeps 5 to 10 minutes.
pub const HISTORY_AGE_MAX: Duration = Duration::from_secs(5 * 60);

/// Size at which the oldest changes leave the history before their time. What counts is what only the history keeps:
/// previous values, keys and a fixed overhead.
pub const HISTORY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Changes that stay whatever their age and [`HISTORY_BYTES_MAX`] say, so that a watcher on a quiet store, or on one
/// with large objects, can resume after a short absence.
pub const HISTORY_EVENTS_MIN: usize = 1_000;

/// Size that the history never exceeds, [`HISTORY_EVENTS_MIN`] or not.
pub const HISTORY_BYTES_HARD_MAX: usize = 256 * 1024 * 1024;

/// Newest changes that keep the writer's [`Memo`](crate::Memo): those of one batch. A watcher that keeps up is never
/// further behind; older memos would hold a second copy of the history that no limit counts.
pub const MEMO_EVENTS_MAX: usize = BATCH_WRITES_MAX;

/// Entries read under one hold of the lock: a list of any length keeps the writer waiting for a fraction of a
/// millisecond only, and other tasks run between two such steps.
pub(crate) const READ_CHUNK_ENTRIES: usize = 2_048;

/// Events a watcher copies under one hold of the lock.
pub(crate) const WATCH_CHUNK_EVENTS: usize = 256;

/// Expired keys deleted in one batch: half of it, so that writes go on while many keys expire at once.
pub(crate) const BATCH_EXPIRIES_MAX: usize = BATCH_WRITES_MAX / 2;
