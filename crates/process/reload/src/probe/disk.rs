//! What is on the disk, and since when.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// One directory or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OnDisk {
    pub(crate) path: PathBuf,
    /// The target of `..data`; none of plain files.
    pub(crate) revision: Option<String>,
    /// How long ago it was written.
    pub(crate) age: Duration,
}

/// Looks at the links and times of a directory, or of a file; reads no content.
///
/// # Errors
/// Whatever the system says of the path.
pub(crate) fn look(path: &Path, now: SystemTime) -> io::Result<OnDisk> {
    let age = |time: SystemTime| now.duration_since(time).unwrap_or_default();
    let data = path.join("..data");
    if let Ok(target) = fs::read_link(&data) {
        // The link is made right before it is renamed into place, and never changed.
        let made = data.symlink_metadata()?.modified()?;
        let revision = Some(target.to_string_lossy().into_owned());
        return Ok(OnDisk {
            path: path.to_owned(),
            revision,
            age: age(made),
        });
    }
    let metadata = path.metadata()?;
    let mut newest = metadata.modified()?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if !is_hidden(&entry.file_name()) {
                newest = newest.max(entry.path().metadata().and_then(|metadata| metadata.modified())?);
            }
        }
    }
    Ok(OnDisk {
        path: path.to_owned(),
        revision: None,
        age: age(newest),
    })
}

/// What a projection keeps for itself.
fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_the_target_of_data_and_plain_files_have_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let now = SystemTime::now() + Duration::from_secs(100);
        fs::write(directory.path().join("app.yaml"), "").expect("a file");
        let plain = look(directory.path(), now).expect("it is there");
        assert_eq!(plain.revision, None);
        assert!(plain.age >= Duration::from_secs(90) && plain.age <= Duration::from_secs(110));
        std::os::unix::fs::symlink("..2026.1", directory.path().join("..data")).expect("a link");
        let projected = look(directory.path(), now).expect("it is there");
        assert_eq!(projected.revision.as_deref(), Some("..2026.1"));
        assert!(look(Path::new("/no/such/directory"), now).is_err());
    }
}
