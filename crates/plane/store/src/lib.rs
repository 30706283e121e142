//! An ordered, revisioned, watchable key-value store with durable answers.
//!
//! [`Store`] is the contract; [`Embedded`] keeps it in one file. Keys are strings in etcd's manner
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
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use hotmap_store::{Embedded, Range, Store, SystemClock, Write};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let store = Embedded::open(dir.path(), Arc::new(SystemClock))?;
//! let mut watch = store.watch("/registry/", store.revision())?;
//!
//! let created = store.commit(Write::create("/registry/configmaps/default/a", "one")).await?;
//! let updated = store.commit(Write::update("/registry/configmaps/default/a", created.revision, "two")).await?;
//!
//! let event = watch.next().await.expect("the store is open")?;
//! assert_eq!((event.revision, event.value.as_deref()), (created.revision, Some(&b"one"[..])));
//!
//! let then = store.range(Range::prefix("/registry/configmaps/").at(created.revision)).await?;
//! assert_eq!(&then.items[0].value[..], b"one");
//! assert_eq!(store.revision(), updated.revision);
//! # Ok(())
//! # }
//! ```

mod clock;
mod embedded;
mod error;
mod event;
mod key;
pub mod limits;
mod range;
mod store;
mod write;

pub use clock::{Clock, ManualClock, SystemClock, Wake};
pub use embedded::{Embedded, EmbeddedStats, OpenError};
pub use error::StoreError;
pub use event::{Event, EventKind, Watch, WatchSource};
pub use hotmap_object::Revision;
pub use key::Key;
pub use range::{Entry, Listed, Range};
pub use redb::StorageBackend;
pub use store::{Health, Store};
pub use write::{Committed, Expect, Memo, Op, Write};
