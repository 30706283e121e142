//! An ordered, revisioned, watchable key-value store with durable answers.
//!
//! [`Store`] is the contract. Keys are strings in etcd's manner
//! (`/registry/configmaps/default/a`), values are opaque bytes. Nothing here knows what a value means.
//!
//! # Guarantees
//!
//! - **An answer is durable.** [`Store::commit`] answers after the write has reached the disk, and no read and no
//!   watch shows a revision before that.
//! - **Every write has its own revision**, also when many share one disk commit. Revisions grow by one, never go back
//!   and are never used twice; a fresh store is at revision 1, so the first write gets 2.
//! - **A watch tells the truth.** Every change after the revision it starts from, once and in order, or
//!   [`StoreError::Compacted`]. A slow watcher is cut off, never skipped, and never holds others up.
//! - **A write compares.** Each names the state it expects of its key; a lost race is an error that carries the
//!   current state.
//! - **Bounded.** Values, queues, batches and history have limits: see [`limits`].

mod clock;
mod error;
mod event;
mod key;
pub mod limits;
mod range;
mod store;
mod write;

pub use clock::{Clock, ManualClock, SystemClock, Wake};
pub use error::StoreError;
pub use event::{Event, EventKind, Watch, WatchSource};
pub use hotmap_object::Revision;
pub use key::Key;
pub use range::{Entry, Listed, Range};
pub use redb::StorageBackend;
pub use store::{Health, Store};
pub use write::{Committed, Expect, Memo, Op, Write};
