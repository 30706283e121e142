//! The store in one file, for one process.
//!
//! ```text
//!  commit() ──▶ queue ──▶ writer thread ──▶ redb: one transaction, one fdatasync per batch
//!                             │ durable
//!                             ▼
//!  range()  ◀────────────  memory: current values, history of changes
//!  watch()  ◀── cursor ──────┘
//! ```
//!
//! The writer thread alone touches the file. Readers work from memory, which changes only after the disk has.

mod batch;
mod file;
mod history;
mod memory;
mod probe;
mod queue;
mod row;
mod watcher;
mod writer;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use redb::StorageBackend;

use crate::{Clock, Committed, Health, Listed, Range, Revision, Store, StoreError, Watch, Write, limits};
use file::StoreFile;
use memory::Shared;
use queue::Queue;
use watcher::Watcher;
use writer::Writer;

/// A [`Store`] in one file, `<dir>/store.redb`, that one process holds open.
///
/// Dropping it finishes the writes it has accepted and closes the file, which may take as long as one disk commit.
pub struct Embedded {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What the store holds right now, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedStats {
    /// Keys that exist.
    pub objects: usize,
    /// Changes in the history.
    pub history_events: usize,
    /// What only the history keeps, in bytes.
    pub history_bytes: usize,
    /// Disk commits since the start.
    pub commits: u64,
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that can be read and watched from.
    pub compacted: Revision,
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory or the file cannot be read and written.
    #[error("cannot open the store file {} for reading and writing", .path.display())]
    Unwritable {
        /// The store file or its directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the file open.
    #[error("the store file {} is in use by another process", .path.display())]
    Locked {
        /// The store file.
        path: PathBuf,
    },
    /// A newer release wrote the file.
    #[error(
        "the store file {} has format {found}, but this release knows formats up to {supported}: use a newer release",
        .path.display()
    )]
    Newer {
        /// The store file.
        path: PathBuf,
        /// The format of the file.
        found: u64,
        /// The newest format this release knows.
        supported: u64,
    },
    /// The file is not a store, or its content is not what was written.
    #[error(
        "the store file {} is damaged or not a store ({reason}): restore it from a snapshot, or move it away to begin \
         with an empty store",
        .path.display()
    )]
    Damaged {
        /// The store file.
        path: PathBuf,
        /// What is wrong with it, as a clause.
        reason: String,
    },
    /// The disk failed or is full.
    #[error("cannot use the store file {}: {reason}", .path.display())]
    Io {
        /// The store file.
        path: PathBuf,
        /// What failed, as a clause.
        reason: String,
    },
    /// The writer thread did not start.
    #[error("cannot start the writer thread of the store")]
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

impl Embedded {
    /// Opens the store in `dir`, creating both (0700 and 0600) where they are missing. Blocks while everything is read
    /// into memory.
    ///
    /// # Errors
    ///
    /// Each [`OpenError`] names the file.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::start(StoreFile::on_disk(dir)?, clock)
    }

    /// Opens the store on a storage of the caller's: memory, or one that fails on purpose. Errors name
    /// `injected storage` as the path.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open`].
    pub fn open_with(backend: impl StorageBackend, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        Self::start(StoreFile::injected(Arc::new(backend)), clock)
    }

    fn start(mut file: StoreFile, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let loaded = file.open()?;
        let shared = Arc::new(Shared::new(loaded));
        let queue = Arc::new(Queue::new());
        let wake = Arc::downgrade(&queue);
        clock.on_jump(Arc::new(move || {
            if let Some(queue) = wake.upgrade() {
                queue.wake();
            }
        }));
        let writer = Writer::new(file, Arc::clone(&shared), Arc::clone(&queue), clock);
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer.run())
            .map_err(|source| OpenError::Thread { source })?;
        Ok(Self {
            shared,
            queue,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// What the store holds right now.
    pub fn stats(&self) -> EmbeddedStats {
        self.shared.stats()
    }

    /// Finishes the writes already accepted, closes the file and ends every watch with
    /// [`StoreError::Unavailable`]; later writes get the same. Blocks meanwhile. Reads go on working.
    pub fn close(&self) {
        self.queue.close();
        // Held while joining: a second caller also returns only when the file is closed.
        let mut writer = self.writer.lock();
        if let Some(thread) = writer.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer thread panicked while it closed the file");
        }
    }
}

impl Store for Embedded {
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            let size = write.size();
            if size > limits::WRITE_BYTES_MAX {
                return Err(StoreError::TooLarge {
                    size,
                    limit: limits::WRITE_BYTES_MAX,
                });
            }
            self.queue.submit(write).await
        })
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Listed, StoreError>> {
        Box::pin(self.shared.range(range))
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        Watcher::start(Arc::clone(&self.shared), prefix, after).map(Watch::new)
    }

    fn revision(&self) -> Revision {
        self.shared.revision()
    }

    fn health(&self) -> Health {
        self.shared.health()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
