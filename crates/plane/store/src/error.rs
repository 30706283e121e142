//! What can go wrong, with the facts a caller needs to go on.

use bytes::Bytes;

use crate::Revision;

/// Why a read, a write or a watch failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The key was last written at another revision than expected. Nothing happened.
    #[error("the key has changed since it was read")]
    Conflict {
        /// What the key holds now: revision and value. `None` where the engine cannot say; read it again.
        current: Option<(Revision, Bytes)>,
    },
    /// The key was expected to be absent. Nothing happened.
    #[error("the key exists already")]
    Exists,
    /// There is no such key. Nothing happened.
    #[error("the key does not exist")]
    NotFound,
    /// The history no longer reaches back so far: list again.
    #[error("the requested revision has been compacted, the oldest one kept is {oldest}")]
    Compacted {
        /// The oldest revision that can be read, and after which a watch can start.
        oldest: Revision,
    },
    /// The revision has not happened yet.
    #[error("the requested revision is in the future, the current one is {current}")]
    FutureRevision {
        /// The newest revision.
        current: Revision,
    },
    /// Key and value together are too large. Nothing happened.
    #[error("the write has {size} bytes, at most {limit} are allowed")]
    TooLarge {
        /// Bytes of key and value.
        size: usize,
        /// Bytes allowed: [`WRITE_BYTES_MAX`](crate::limits::WRITE_BYTES_MAX).
        limit: usize,
    },
    /// The disk is full. Nothing happened; writes succeed again once there is space, without a restart.
    #[error("no space left on the device of the store")]
    NoSpace,
    /// The store does not take writes, or is closed. Nothing happened.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// Why, as a clause.
        reason: String,
    },
    /// The write may have happened or not: read before trying again, never repeat it blindly.
    #[error("the outcome of the write is unknown: {reason}")]
    UnknownOutcome {
        /// Why, as a clause.
        reason: String,
    },
}

impl std::fmt::Debug for StoreError {
    // A value may be a secret: `Conflict` shows the revision alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreError::Conflict { current } => {
                let revision = current.as_ref().map(|(revision, _)| revision);
                f.debug_struct("Conflict")
                    .field("current", &revision)
                    .finish_non_exhaustive()
            }
            other => write!(f, "StoreError({other})"),
        }
    }
}
