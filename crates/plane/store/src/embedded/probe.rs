//! Sits between redb and the storage, and remembers how it failed.
//!
//! redb reports that a commit failed, not whether the disk was full before anything was synced (harmless) or a sync
//! failed (nothing the system says about the file can be believed any more). That difference decides what the writer
//! may do next.

use std::{
    io,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{BackendError, StorageBackend};

/// What has failed since [`Faults::clear`].
#[derive(Debug, Default)]
pub(super) struct Faults {
    no_space: AtomicBool,
    other: AtomicBool,
}

impl Faults {
    pub(super) fn clear(&self) {
        self.no_space.store(false, Ordering::Relaxed);
        self.other.store(false, Ordering::Relaxed);
    }

    /// Whether the storage was full, and nothing worse happened.
    pub(super) fn only_no_space(&self) -> bool {
        self.no_space.load(Ordering::Relaxed) && !self.other.load(Ordering::Relaxed)
    }

    fn note<T>(&self, result: Result<T, io::Error>) -> Result<T, io::Error> {
        if let Err(error) = &result {
            let full = matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            );
            if full { &self.no_space } else { &self.other }.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Also a lack of space is fatal here: which of the written pages were dropped is unknown.
    fn note_sync(&self, result: Result<(), io::Error>) -> Result<(), io::Error> {
        if result.is_err() {
            self.other.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// One opening of a storage that outlives it.
#[derive(Debug)]
pub(super) struct Probe {
    storage: Arc<dyn StorageBackend>,
    faults: Arc<Faults>,
}

impl Probe {
    pub(super) fn new(storage: Arc<dyn StorageBackend>, faults: Arc<Faults>) -> Self {
        Self { storage, faults }
    }
}

impl StorageBackend for Probe {
    fn len(&self) -> Result<u64, io::Error> {
        self.faults.note(self.storage.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.faults.note(self.storage.read(offset, out))
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.faults.note(self.storage.set_len(len))
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.faults.note_sync(self.storage.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.faults.note(self.storage.write(offset, data))
    }

    // `close` stays the no-op it is by default: the storage, and with it the lock that keeps other processes out, is
    // held until the store itself goes away, also while a full disk makes it open the database anew.

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.storage.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.storage.query_lock_range(start, end)
    }
}
