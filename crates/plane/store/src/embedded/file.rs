//! The file: opened, read once into memory, then written batch by batch.
//!
//! ```text
//! objects   key → what it holds                     one row per key
//! changes   revision → key and what it held before  one row per change of the history
//! meta      "format", "revision"                    the counter moves in the transaction of the changes
//! ```

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    ops::Range,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, StorageBackend, StorageError,
    TableDefinition, TableHandle, backends::FileBackend,
};

use super::{
    OpenError,
    history::{Change, History},
    memory::{Memory, Record},
    probe::{Faults, Probe},
    row,
};
use crate::{Key, Revision};

const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("hotmap.objects");
const CHANGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("hotmap.changes");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("hotmap.meta");
const META_FORMAT: &str = "format";
const META_REVISION: &str = "revision";

/// The layout of tables and rows that this release writes.
const FORMAT: u64 = 1;

/// A fresh store is at 1, as etcd is, so that revision 0 can mean "does not exist".
const FIRST_REVISION: u64 = 1;

/// Pages that redb keeps in memory; half of it at most is for writing. Reads are served from our own memory, so the
/// cache has to hold the inner pages and one batch (1 MiB) only: leaves that it lacks are in the system's page cache,
/// a microsecond away. The idle server has a budget of 25 MiB for everything.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// redb creates a file as zeros of about this size and then writes its header, whose first bytes come last.
const CREATED_BYTES_MAX: u64 = 16 * 1024 * 1024;
const MAGIC_BYTES: usize = 9;
const HEADER_BYTES: usize = 4096;

pub(super) struct StoreFile {
    path: PathBuf,
    storage: Arc<dyn StorageBackend>,
    faults: Arc<Faults>,
    database: Option<Database>,
    /// Reused for every row.
    row: Vec<u8>,
}

impl StoreFile {
    /// The file in `dir`. Neither is read yet.
    pub(super) fn on_disk(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join("store.redb");
        let storage = open_file(dir, &path).map_err(|source| OpenError::Unwritable {
            path: path.clone(),
            source,
        })?;
        let backend = FileBackend::new(storage).map_err(|error| OpenError::Io {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self::new(path, Arc::new(backend)))
    }

    pub(super) fn injected(storage: Arc<dyn StorageBackend>) -> Self {
        Self::new(PathBuf::from("injected storage"), storage)
    }

    fn new(path: PathBuf, storage: Arc<dyn StorageBackend>) -> Self {
        Self {
            path,
            storage,
            faults: Arc::default(),
            database: None,
            row: Vec::new(),
        }
    }

    /// Opens the database, makes it a store if it is empty, and reads everything.
    ///
    /// After an unclean end redb verifies every page first: with 100,000 objects of 1 KiB that made opening one and a
    /// half to three times as long (unoptimised build). Its quick repair would avoid this, and would pay for it with
    /// a second sync in every commit.
    pub(super) fn open(&mut self) -> Result<Memory, OpenError> {
        // redb asserts some of what it reads. A damaged file must be an error of ours, whatever it hits.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let database = self.open_database()?;
            initialize(&database)?;
            let memory = load(&database)?;
            Ok((database, memory))
        }))
        .unwrap_or_else(|_| Err(Fault::Damaged("reading it hits a broken invariant".into())));
        match opened {
            Ok((database, memory)) => {
                self.database = Some(database);
                Ok(memory)
            }
            Err(fault) => Err(self.open_error(fault)),
        }
    }

    /// Writes `changes` in one transaction, drops the rows of `trimmed` revisions, and returns when both are on the
    /// disk.
    pub(super) fn persist(
        &mut self,
        changes: &[Change],
        trimmed: Range<u64>,
        revision: Revision,
    ) -> Result<(), PersistError> {
        self.faults.clear();
        let Some(database) = &self.database else {
            return Err(PersistError("the database is not open".into()));
        };
        persist(database, changes, trimmed, revision, &mut self.row)
            .map_err(|error| PersistError(error.to_string()))
    }

    /// Whether the last failure was a lack of space and nothing worse.
    pub(super) fn was_full(&self) -> bool {
        self.faults.only_no_space()
    }

    /// After a failure: drops the database as it is in memory and opens it as it is on disk.
    ///
    /// Returns the revision the file holds, which says whether the failed transaction happened.
    pub(super) fn reopen(&mut self) -> Result<Revision, PersistError> {
        self.close();
        self.faults.clear();
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let database = self.open_database()?;
            let revision = read_revision(&database)?;
            Ok::<_, Fault>((database, revision))
        }));
        match opened {
            Ok(Ok((database, revision))) => {
                self.database = Some(database);
                Ok(revision)
            }
            Ok(Err(fault)) => Err(PersistError(fault.to_string())),
            Err(_) => Err(PersistError("opening it again hits a broken invariant".into())),
        }
    }

    /// Closes the database. The lock on the file stays until `self` goes.
    pub(super) fn close(&mut self) {
        // After a failure redb touches nothing here; else it notes that the end was clean.
        drop(self.database.take());
    }

    fn open_database(&self) -> Result<Database, Fault> {
        let probe = Probe::new(Arc::clone(&self.storage), Arc::clone(&self.faults));
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        match builder.create_with_backend(probe) {
            // The lock is ours now: whoever else was creating the file has finished or died.
            Err(DatabaseError::Storage(StorageError::Io(error)))
                if error.kind() == io::ErrorKind::InvalidData && self.was_never_created()? =>
            {
                self.storage.set_len(0)?;
                let probe = Probe::new(Arc::clone(&self.storage), Arc::clone(&self.faults));
                Ok(builder.create_with_backend(probe)?)
            }
            opened => Ok(opened?),
        }
    }

    /// Whether an earlier process ended between making room for the file and writing its first bytes: zeros
    /// everywhere but in the rest of the header. Nothing was ever answered from such a file.
    fn was_never_created(&self) -> io::Result<bool> {
        let length = self.storage.len()?;
        if length > CREATED_BYTES_MAX {
            return Ok(false);
        }
        let mut content = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.storage.read(0, &mut content)?;
        let zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
        let beyond = content.get(HEADER_BYTES..).unwrap_or_default();
        Ok(zero(&content[..MAGIC_BYTES.min(content.len())]) && zero(beyond))
    }

    fn open_error(&self, fault: Fault) -> OpenError {
        let path = self.path.clone();
        match fault {
            Fault::Locked => OpenError::Locked { path },
            Fault::Newer { found } => OpenError::Newer {
                path,
                found,
                supported: FORMAT,
            },
            Fault::Damaged(reason) => OpenError::Damaged { path, reason },
            Fault::Io(reason) => OpenError::Io { path, reason },
        }
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        self.close();
        if let Err(error) = self.storage.close() {
            tracing::warn!(%error, "store file not closed cleanly");
        }
    }
}

/// Why a batch did not reach the disk, or may not have.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct PersistError(String);

impl PersistError {
    pub(super) fn new(reason: String) -> Self {
        Self(reason)
    }
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("it is in use by another process")]
    Locked,
    #[error("it has the newer format {found}")]
    Newer { found: u64 },
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("{0}")]
    Io(String),
}

impl From<redb::Error> for Fault {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::DatabaseAlreadyOpen => Fault::Locked,
            redb::Error::Io(error) if error.kind() != io::ErrorKind::InvalidData => Fault::from(error),
            other => Fault::Damaged(other.to_string()),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Pages that the header promises and the file does not have.
            io::ErrorKind::UnexpectedEof => Fault::Damaged("it ends too early".into()),
            _ => Fault::Io(error.to_string()),
        }
    }
}

macro_rules! fault_from {
    ($($error:ty),*) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )*};
}

fault_from!(
    DatabaseError,
    redb::TransactionError,
    redb::TableError,
    StorageError,
    redb::CommitError
);

impl From<row::BadRow> for Fault {
    fn from(error: row::BadRow) -> Self {
        Fault::Damaged(error.to_string())
    }
}

fn open_file(dir: &Path, path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let is_new = !path.try_exists()?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    if is_new {
        // The name of the file is durable before anything in it is.
        File::open(dir)?.sync_all()?;
    } else if file.metadata()?.permissions().mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "store file was open to others, its mode is now 0600");
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Checks that the database is a store this release can use, and makes an empty one a store.
fn initialize(database: &Database) -> Result<(), Fault> {
    let read = database.begin_read()?;
    if read.list_tables()?.next().is_some() {
        return check_format(&read);
    }
    drop(read);
    let mut write = database.begin_write()?;
    write
        .set_durability(Durability::Immediate)
        .map_err(|error| Fault::Io(error.to_string()))?;
    {
        write.open_table(OBJECTS)?;
        write.open_table(CHANGES)?;
        let mut meta = write.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT)?;
        meta.insert(META_REVISION, FIRST_REVISION)?;
    }
    Ok(write.commit()?)
}

fn check_format(read: &redb::ReadTransaction) -> Result<(), Fault> {
    if !read.list_tables()?.any(|table| table.name() == META.name()) {
        return Err(Fault::Damaged("it is a database of another program".into()));
    }
    match read_meta(read, META_FORMAT)? {
        FORMAT => Ok(()),
        found if found > FORMAT => Err(Fault::Newer { found }),
        found => Err(Fault::Damaged(format!("no release has written format {found}"))),
    }
}

fn read_meta(read: &redb::ReadTransaction, name: &str) -> Result<u64, Fault> {
    let meta = read.open_table(META)?;
    let value = meta
        .get(name)?
        .ok_or_else(|| Fault::Damaged(format!("it lacks its {name}")))?;
    Ok(value.value())
}

fn read_revision(database: &Database) -> Result<Revision, Fault> {
    let read = database.begin_read()?;
    read_meta(&read, META_REVISION).map(Revision)
}

/// Reads everything, and checks that objects, changes and counter belong together.
fn load(database: &Database) -> Result<Memory, Fault> {
    let read = database.begin_read()?;
    let revision = Revision(read_meta(&read, META_REVISION)?);
    let mut objects = Vec::new();
    for row in read.open_table(OBJECTS)?.iter()? {
        let (key, value) = row?;
        let record = row::decode_object(value.value())?;
        if record.revision > revision {
            return Err(Fault::Damaged(format!(
                "an object is from revision {}, after {revision}",
                record.revision
            )));
        }
        objects.push((Key::from(key.value()), record));
    }
    // Sorted already, so the map is built without comparing its way down for each key.
    let objects = BTreeMap::from_iter(objects);
    let changes = load_changes(&read, revision, &objects)?;
    let compacted = Revision(revision.0 - changes.len() as u64);
    Ok(Memory {
        objects,
        history: History::new(compacted, changes),
    })
}

/// Reads the changes from the newest to the oldest: what a key held after a change is what the next one found.
fn load_changes(
    read: &redb::ReadTransaction,
    revision: Revision,
    objects: &BTreeMap<Key, Record>,
) -> Result<VecDeque<Change>, Fault> {
    let mut changes = VecDeque::new();
    let mut later: HashMap<Key, Option<Record>> = HashMap::new();
    let mut expected = revision.0;
    for row in read.open_table(CHANGES)?.iter()?.rev() {
        let (at_revision, value) = row?;
        let at_revision = at_revision.value();
        let row = row::decode_change(value.value())?;
        let (key, after) = match later.remove_entry(&row.key) {
            Some(known) => known,
            None => match objects.get_key_value(&row.key) {
                Some((key, record)) => (key.clone(), Some(record.clone())),
                None => (row.key, None),
            },
        };
        let fits = match &after {
            Some(after) => !row.delete && after.revision.0 == at_revision,
            None => row.delete,
        };
        if !fits || at_revision != expected || at_revision <= FIRST_REVISION {
            return Err(Fault::Damaged(format!(
                "its history is broken at revision {at_revision}"
            )));
        }
        expected -= 1;
        later.insert(key.clone(), row.before.clone());
        changes.push_front(Change {
            key,
            revision: Revision(at_revision),
            at: row.at,
            before: row.before,
            after,
            memo: None,
        });
    }
    Ok(changes)
}

fn persist(
    database: &Database,
    changes: &[Change],
    trimmed: Range<u64>,
    revision: Revision,
    row: &mut Vec<u8>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut write = database.begin_write()?;
    write.set_durability(Durability::Immediate)?;
    {
        let mut objects = write.open_table(OBJECTS)?;
        let mut history = write.open_table(CHANGES)?;
        for change in changes {
            row.clear();
            match &change.after {
                Some(after) => {
                    row::encode_object(after, row);
                    objects.insert(&*change.key, row.as_slice())?;
                }
                None => {
                    objects.remove(&*change.key)?;
                }
            }
            row.clear();
            row::encode_change(
                &change.key,
                change.at,
                change.after.is_none(),
                change.before.as_ref(),
                row,
            );
            history.insert(change.revision.0, row.as_slice())?;
        }
        for old in trimmed {
            history.remove(old)?;
        }
        write.open_table(META)?.insert(META_REVISION, revision.0)?;
    }
    write.commit()?;
    Ok(())
}
