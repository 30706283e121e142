//! A directory that is written as a kubelet writes a projected volume.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

/// See the module.
pub(crate) struct Volume {
    directory: TempDir,
    revision: Cell<u32>,
}

impl Volume {
    /// One with these keys.
    pub(crate) fn new(keys: &[(&str, &str)]) -> Self {
        let volume = Self {
            directory: tempfile::tempdir().expect("a directory"),
            revision: Cell::new(0),
        };
        volume.write(keys);
        volume
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn as_str(&self) -> &str {
        self.path().to_str().expect("plain letters")
    }

    /// The next revision: a directory, one rename of `..data`, a link for each new key.
    pub(crate) fn write(&self, keys: &[(&str, &str)]) {
        self.revision.set(self.revision.get() + 1);
        let name = format!("..2026_01_31_09_05_07.{}", self.revision.get());
        let revision = self.path().join(&name);
        fs::create_dir(&revision).expect("it is new");
        for (key, value) in keys {
            fs::write(revision.join(key), value).expect("it is writable");
        }
        let data = self.path().join("..data");
        let old = fs::read_link(&data).ok();
        symlink(&name, self.path().join("..data_tmp")).expect("it is free");
        fs::rename(self.path().join("..data_tmp"), &data).expect("it is writable");
        for (key, _) in keys {
            let link = self.path().join(key);
            if link.symlink_metadata().is_err() {
                symlink(Path::new("..data").join(key), link).expect("it is free");
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(self.path().join(old)).expect("it is ours");
        }
    }
}
