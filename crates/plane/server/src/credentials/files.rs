//! Small secret files: read whole, written whole or not at all, for the owner alone.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use super::CredentialsError;

const OWNER_ONLY_FILE: u32 = 0o600;
const OWNER_ONLY_DIRECTORY: u32 = 0o700;

pub(super) fn create_directory(path: &Path) -> Result<(), CredentialsError> {
    let create = || {
        DirBuilder::new()
            .recursive(true)
            .mode(OWNER_ONLY_DIRECTORY)
            .create(path)?;
        fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY_DIRECTORY))
    };
    create().map_err(|source| failed("create", path, source))
}

/// The text of a file; `None` if there is none. What is no UTF-8 counts as damaged text and is replaced by it.
pub(super) fn read(path: &Path) -> Result<Option<String>, CredentialsError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed("read", path, source)),
    }
}

pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), CredentialsError> {
    let mut staged = path.as_os_str().to_owned();
    staged.push(".new");
    let staged = Path::new(&staged);
    let write = || {
        // A leftover may have other permissions: `mode` only counts for a file that is created.
        match fs::remove_file(staged) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(OWNER_ONLY_FILE)
            .open(staged)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(staged, path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|source| failed("write", path, source))
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> CredentialsError {
    CredentialsError::File {
        action,
        path: path.to_owned(),
        source,
    }
}
