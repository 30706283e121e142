//! Who writes in the tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Writes a volume in the steps of a kubelet (upstream: `pkg/volume/util/atomic_writer.go`, Kubernetes 1.36).
pub(super) struct Kubelet {
    volume: PathBuf,
    count: u32,
}

impl Kubelet {
    pub(super) fn new(volume: &Path) -> Self {
        let volume = volume.to_owned();
        Self { volume, count: 0 }
    }

    /// Writes a new revision, whatever was there, and names it.
    pub(super) fn write(&mut self, files: &[(&str, &str)]) -> String {
        let volume = &self.volume;
        self.count += 1;
        let revision = format!("..2026_01_31_09_05_07.{}", self.count);
        fs::create_dir_all(volume.join(&revision)).unwrap();
        for (key, content) in files {
            let path = volume.join(&revision).join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let old = fs::read_link(volume.join("..data")).ok();
        symlink(&revision, volume.join("..data_tmp")).unwrap();
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
        let first = |key: &str| key.split('/').next().unwrap().to_owned();
        for (key, _) in files {
            let link = volume.join(first(key));
            if !link.is_symlink() {
                symlink(Path::new("..data").join(first(key)), link).unwrap();
            }
        }
        for entry in fs::read_dir(volume).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_link = volume.join(&name).is_symlink();
            if is_link && !name.starts_with("..") && !files.iter().any(|(key, _)| first(key) == name) {
                fs::remove_file(volume.join(name)).unwrap();
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(volume.join(old)).unwrap();
        }
        revision
    }
}
