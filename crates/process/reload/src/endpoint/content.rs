//! What is in the files now, read for a request.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use hotmap_projection::{Revision, Snapshot, SnapshotError};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// How often a reader that is overtaken starts again.
const OVERTAKEN_MAX: u32 = 10;
/// Reads at a time: a second one would only wait for the same disk, in a thread of its own.
static READERS: Semaphore = Semaphore::const_new(1);

/// Which of the files are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    /// None: only what there is.
    Names,
    /// This one, if there is.
    Key(String),
    /// All of them.
    All,
}

/// One revision of a path.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) revision: Revision,
    /// All there are.
    pub(crate) keys: Vec<String>,
    /// Those that were asked for.
    pub(crate) values: BTreeMap<String, Vec<u8>>,
}

/// Reads one revision of `path`, without blocking others.
///
/// # Errors
/// A sentence for the client.
pub(crate) async fn read(path: &Path, want: Want) -> Result<Content, String> {
    let path = path.to_owned();
    let _permit = READERS.acquire().await.expect("nobody closes it");
    spawn_blocking(move || read_now(path, &want))
        .await
        .map_err(|error| error.to_string())?
}

fn read_now(path: PathBuf, want: &Want) -> Result<Content, String> {
    for _ in 0..OVERTAKEN_MAX {
        match attempt(&path, want) {
            Err(SnapshotError::Replaced) => {}
            read => return read.map_err(sentence),
        }
    }
    Err(format!("{} is written all the time; try again", path.display()))
}

fn attempt(path: &Path, want: &Want) -> Result<Content, SnapshotError> {
    let snapshot = Snapshot::open(path)?;
    let keys: Vec<String> = snapshot.keys().map(str::to_owned).collect();
    let values = match want {
        Want::Names => BTreeMap::new(),
        Want::Key(key) if keys.contains(key) => BTreeMap::from([(key.clone(), snapshot.read(key)?)]),
        Want::Key(_) => BTreeMap::new(),
        Want::All => snapshot.read_all()?,
    };
    Ok(Content {
        revision: snapshot.revision().clone(),
        keys,
        values,
    })
}

fn sentence(error: SnapshotError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
