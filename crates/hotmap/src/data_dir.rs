//! The data directory: one instance of hotmap, and only one process at a time.
//!
//! ```text
//! lock                 held by the running `up`; its content is that process's id
//! id                   names every kernel object of this instance
//! store.redb           all objects
//! pki/                 CA, certificates, keys
//! admin.kubeconfig     how kubectl gets in
//! agent.kubeconfig     how a node that has joined is known
//! digest.key           key of the digests that reports give of Secrets
//! host-images.yaml     what an image name stands for on this host (optional, yours)
//! pods/ logs/          state and logs of pods
//! ```

use std::{
    fs, io,
    io::{Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

/// Mode of the directory: it holds keys and Secrets.
const DATA_DIR_MODE: u32 = 0o700;
/// Mode of state files.
const STATE_FILE_MODE: u32 = 0o600;
/// Bytes of randomness behind an instance id; eight hex digits keep link names under the kernel's 15 bytes.
const ID_BYTES: usize = 4;

/// A data directory that this process holds the lock of; released when dropped, or by the kernel when we die.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    id: String,
    _lock: fs::File,
}

/// Why a data directory cannot be used. Nothing was changed in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    #[error("cannot use the data directory {}: {source}; name another with --data-dir", .path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("another hotmap{} uses the data directory {}; stop it first, or name another with --data-dir", holder(.pid), .path.display())]
    Held { path: PathBuf, pid: Option<u32> },
    #[error(
        "cannot tell where the data directory is: neither XDG_STATE_HOME nor HOME is set; name one with --data-dir"
    )]
    NoHome,
    #[error("{} holds {content:?}, not an instance id of eight hex digits; restore it, or start from an empty --data-dir", .path.display())]
    DamagedId { path: PathBuf, content: String },
    #[error("{} is not a data directory of hotmap: it holds {found:?} and no instance id; name another with --data-dir", .path.display())]
    Foreign { path: PathBuf, found: String },
    #[error("{} is not a data directory of hotmap: it holds no instance id", .path.display())]
    NoInstance { path: PathBuf },
    #[error("there is no data directory {}; name the one that `up` was given with --data-dir", .path.display())]
    Missing { path: PathBuf },
}

fn holder(pid: &Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// Where the data directory is when nobody names one.
pub(crate) fn default_path() -> Result<PathBuf, DataDirError> {
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/hotmap"));
    }
    let state_home = std::env::var_os("XDG_STATE_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state_home
        .or_else(home)
        .map(|home| home.join("hotmap"))
        .ok_or(DataDirError::NoHome)
}

impl DataDir {
    /// Creates the directory if it is missing and takes its lock.
    pub(crate) fn create(path: &Path) -> Result<Self, DataDirError> {
        let unusable = |source| DataDirError::Unusable {
            path: path.to_owned(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(DATA_DIR_MODE)
            .create(path)
            .map_err(unusable)?;
        Self::open(path)
    }

    /// Takes the lock of a directory that must exist.
    pub(crate) fn open(path: &Path) -> Result<Self, DataDirError> {
        if !path.is_dir() {
            return Err(DataDirError::Missing {
                path: path.to_owned(),
            });
        }
        let unusable = |source| DataDirError::Unusable {
            path: path.to_owned(),
            source,
        };
        let path = path.canonicalize().map_err(unusable)?;
        if let Some(found) = foreign(&path).map_err(unusable)? {
            return Err(DataDirError::Foreign { path, found });
        }
        let lock = take_lock(&path)?;
        // A directory that was there before us may be readable by others; it will hold keys.
        fs::set_permissions(&path, fs::Permissions::from_mode(DATA_DIR_MODE)).map_err(unusable)?;
        let id = instance_id(&path)?;
        Ok(Self {
            path,
            id,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Eight hex digits that name every kernel object of this instance.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// What a directory may hold that is about to become a data directory: what a start leaves that was cut off, the table of
/// images that somebody has laid ready, and what a file system of its own brings.
const HELD_BEFORE_ID: [&str; 3] = ["lock", "host-images.yaml", "lost+found"];
/// Names of files that were being written begin with this.
const STAGED_PREFIX: &str = ".tmp";

/// Something in a directory that is not ours: nobody's home becomes a data directory, and goes with `--purge`, by a slip.
fn foreign(path: &Path) -> io::Result<Option<String>> {
    if path.join("id").exists() {
        return Ok(None);
    }
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !HELD_BEFORE_ID.contains(&name.as_str()) && !name.starts_with(STAGED_PREFIX) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn take_lock(path: &Path) -> Result<fs::File, DataDirError> {
    let unusable = |source| DataDirError::Unusable {
        path: path.to_owned(),
        source,
    };
    let mut options = fs::OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(STATE_FILE_MODE);
    let mut lock = options.open(path.join("lock")).map_err(unusable)?;
    if let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK {
            return Err(unusable(error.into()));
        }
        let mut content = String::new();
        let pid = lock
            .read_to_string(&mut content)
            .ok()
            .and_then(|_| content.trim().parse().ok());
        return Err(DataDirError::Held {
            path: path.to_owned(),
            pid,
        });
    }
    lock.set_len(0).and_then(|()| lock.rewind()).map_err(unusable)?;
    writeln!(lock, "{}", std::process::id()).map_err(unusable)?;
    Ok(lock)
}

fn instance_id(path: &Path) -> Result<String, DataDirError> {
    let file = path.join("id");
    let unusable = |source| DataDirError::Unusable {
        path: path.to_owned(),
        source,
    };
    match fs::read_to_string(&file) {
        Ok(content) => {
            let id = content.trim();
            let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|b| b.is_ascii_hexdigit());
            if is_id {
                Ok(id.to_owned())
            } else {
                Err(DataDirError::DamagedId { path: file, content })
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = new_id().map_err(unusable)?;
            write_state_file(&file, format!("{id}\n").as_bytes()).map_err(unusable)?;
            Ok(id)
        }
        Err(error) => Err(unusable(error)),
    }
}

fn new_id() -> io::Result<String> {
    let mut bytes = [0; ID_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file of mode 0600 whole or not at all, and onto the disk.
pub(crate) fn write_state_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut staged = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(STATE_FILE_MODE))
        .tempfile_in(directory)?;
    staged.write_all(content)?;
    staged.as_file().sync_all()?;
    staged.persist(path).map_err(|error| error.error)?;
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_holder_and_keeps_its_id() {
        let parent = tempfile::tempdir().expect("temporary directory");
        let path = parent.path().join("data");
        let first = DataDir::create(&path).expect("new directory");
        let refused = DataDir::create(&path).expect_err("held");
        assert!(
            refused
                .to_string()
                .contains(&format!("process {}", std::process::id())),
            "{refused}"
        );
        let id = first.id().to_owned();
        drop(first);
        assert_eq!(DataDir::open(&path).expect("free again").id(), id);
    }

    #[test]
    fn somebody_elses_directory_is_left_alone() {
        let parent = tempfile::tempdir().expect("temporary directory");
        fs::write(parent.path().join("host-images.yaml"), "").expect("writable");
        drop(DataDir::open(parent.path()).expect("laid ready"));
        fs::remove_file(parent.path().join("id")).expect("removable");
        fs::write(parent.path().join("thesis.tex"), "").expect("writable");
        let before = fs::metadata(parent.path()).expect("there").permissions();
        let refused = DataDir::open(parent.path()).expect_err("foreign");
        assert!(refused.to_string().contains("thesis.tex"), "{refused}");
        assert_eq!(fs::metadata(parent.path()).expect("there").permissions(), before);
    }

    #[test]
    fn a_damaged_id_is_named_and_kept() {
        let parent = tempfile::tempdir().expect("temporary directory");
        fs::write(parent.path().join("id"), "oops").expect("writable");
        let refused = DataDir::open(parent.path()).expect_err("damaged");
        assert!(refused.to_string().contains("instance id"), "{refused}");
        assert_eq!(
            fs::read_to_string(parent.path().join("id")).expect("still there"),
            "oops"
        );
    }
}
