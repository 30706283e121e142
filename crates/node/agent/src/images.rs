//! The table of images as it is now: whoever edits it need not restart the node.

use std::path::PathBuf;

use hotmap_runtime::{HostImages, HostImagesError};
use parking_lot::Mutex;
use tracing::warn;

/// The table in `host-images.yaml`, over the built-in one.
pub(crate) struct Images {
    path: PathBuf,
    last: Mutex<HostImages>,
}

impl Images {
    /// Reads the table. Blocks.
    pub(crate) fn open(path: PathBuf) -> Result<Self, HostImagesError> {
        let last = Mutex::new(HostImages::load(&path)?);
        Ok(Self { path, last })
    }

    /// The table, read anew; the last good one while the file is wrong. Blocks.
    pub(crate) fn current(&self) -> HostImages {
        match HostImages::load(&self.path) {
            Ok(images) => self.last.lock().clone_from(&images),
            Err(error) => {
                let path = self.path.display();
                warn!(%path, error = %crate::worker::printed(&error), "image table cannot be used, the last one stands");
            }
        }
        self.last.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_edit_is_seen_and_a_wrong_one_changes_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("host-images.yaml");
        let images = Images::open(path.clone()).expect("no file is fine");
        let knows = || images.current().resolve("memcached:1").is_some();
        assert!(!knows());
        fs::write(&path, "memcached:\n  path: /usr/bin/memcached\n").expect("written");
        assert!(knows());
        fs::write(&path, "memcached: [").expect("written");
        assert!(knows());
    }
}
