//! The contract.

use futures_util::future::BoxFuture;

use crate::{Committed, Entry, Listed, Range, Revision, StoreError, Watch, Write};

/// What the API server needs of storage, and no more. The crate documentation lists the guarantees.
pub trait Store: Send + Sync + 'static {
    /// One compare-and-write on one key, with a revision of its own even inside a group commit.
    ///
    /// The answer comes when the write is durable and visible. The write is handed over when the future is first
    /// polled; one dropped after that may still happen.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`], [`StoreError::Exists`], [`StoreError::NotFound`] when the key is not as expected;
    /// [`StoreError::TooLarge`], [`StoreError::NoSpace`], [`StoreError::Unavailable`] when it cannot be written: nothing
    /// happened in all these cases. [`StoreError::UnknownOutcome`]: it may have happened.
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>>;

    /// The keys of a range with their values, all at one revision.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] and [`StoreError::FutureRevision`] for a revision that cannot be read, and
    /// [`StoreError::Unavailable`].
    fn range(&self, range: Range) -> BoxFuture<'_, Result<Listed, StoreError>>;

    /// The changes after a revision of the keys that start with `prefix`. Ends with [`StoreError::Compacted`] when it
    /// falls out of the history and with [`StoreError::Unavailable`] when the store closes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] and [`StoreError::FutureRevision`] for a revision it cannot start after.
    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError>;

    /// The newest revision that is durable and visible.
    fn revision(&self) -> Revision;

    /// Whether writes can be expected to succeed.
    fn health(&self) -> Health;

    /// One key as it is now, `None` where it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    fn get<'a>(&'a self, key: &str) -> BoxFuture<'a, Result<Option<Entry>, StoreError>> {
        let listed = self.range(Range::key(key));
        Box::pin(async move { Ok(listed.await?.items.pop()) })
    }
}

/// Whether the store takes writes. Reads and watches go on in either case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Reads and writes.
    Ok,
    /// Reads only.
    ReadOnly {
        /// Why, as a clause.
        reason: String,
    },
}
