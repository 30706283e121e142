//! Which volumes hold Secrets: each, unless that is certain not to be so.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotmap_projection::Snapshot;
use rustix::fs::statfs;
use tokio::task::spawn_blocking;

use crate::progress::{Phase, Progress};

/// `TMPFS_MAGIC` and `RAMFS_MAGIC` of `linux/magic.h`: what a kubelet projects Secrets onto.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
/// Others may read a file.
const READ: u32 = 0o004;
/// Others may go through a directory.
const SEARCH: u32 = 0o001;

/// In place of a reason that may hold a line of a Secret.
const REDACTED: &str = "why is in the log and on the Unix socket, as it may hold a line of a Secret";

/// What flags say of watched paths; the rest is found out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrecy {
    pub(crate) secret: Vec<PathBuf>,
    pub(crate) public: Vec<PathBuf>,
}

impl Secrecy {
    /// Why the values of this path are given over the Unix socket only, if they are. `keys` are the files in it. Blocks.
    pub(crate) fn reason<'a>(&self, path: &Path, keys: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let why = if self.secret.iter().any(|secret| secret == path) {
            "is a Secret"
        } else if self.public.iter().any(|public| public == path) {
            return None;
        } else if is_in_memory(path) {
            "is on a file system in memory, where Secrets are"
        } else if !may_be_read_by_others(path, keys) {
            "may not be read by others"
        } else {
            return None;
        };
        Some(format!(
            "{path} {why}: its values are given over a Unix socket (--serve unix:PATH), or here with --serve-public {path}",
            path = path.display()
        ))
    }
}

impl Secrecy {
    /// Whether any file of this path is a Secret, as far as is known. Blocks.
    fn has(&self, path: &Path) -> bool {
        let Ok(snapshot) = Snapshot::open(path) else {
            return self.reason(path, []).is_some();
        };
        self.reason(path, snapshot.keys()).is_some()
    }
}

/// What is told of progress to those who do not get values of Secrets: what a check or a program has said of a Secret may
/// hold a line of it.
pub(crate) async fn redacted(secrecy: &Arc<Secrecy>, mut progress: Progress) -> Progress {
    let (Phase::HeldBack(why) | Phase::Failed(why)) = &mut progress.phase else {
        return progress;
    };
    let is_behind = progress.volumes.iter().any(|volume| volume.seen != volume.loaded);
    let volumes = progress
        .volumes
        .iter()
        .filter(|volume| !is_behind || volume.seen != volume.loaded);
    let paths: Vec<PathBuf> = volumes.map(|volume| volume.path.clone()).collect();
    let secrecy = Arc::clone(secrecy);
    let is_secret = spawn_blocking(move || paths.iter().any(|path| secrecy.has(path)));
    if is_secret.await.unwrap_or(true) {
        REDACTED.clone_into(why);
    }
    progress
}

fn is_in_memory(path: &Path) -> bool {
    // In doubt it is.
    statfs(path).map_or(true, |file_system| {
        // The type is a signed word, of other widths on other architectures.
        IN_MEMORY.contains(&(file_system.f_type as u64 & 0xffff_ffff))
    })
}

fn may_be_read_by_others<'a>(path: &Path, keys: impl IntoIterator<Item = &'a str>) -> bool {
    let has =
        |path: &Path, bits: u32| fs::metadata(path).is_ok_and(|metadata| metadata.mode() & bits == bits);
    let Ok(whole) = fs::canonicalize(path) else {
        return false;
    };
    let is_reachable = whole.ancestors().skip(1).all(|directory| has(directory, SEARCH));
    let own = if whole.is_dir() { READ | SEARCH } else { READ };
    let file_of = |key: &str| {
        if whole.is_dir() {
            whole.join(key)
        } else {
            whole.clone()
        }
    };
    is_reachable && has(&whole, own) && keys.into_iter().all(|key| has(&file_of(key), READ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_may_read_on_a_disk_is_no_secret_and_all_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fs::write(path.join("key"), "value").unwrap();
        chmod(path, 0o755);
        chmod(&path.join("key"), 0o644);
        let found = Secrecy::default();
        assert_eq!(found.reason(path, ["key"]).is_some(), is_in_memory(path));
        let reason = |secrecy: &Secrecy| secrecy.reason(path, ["key"]);
        let marked = Secrecy {
            secret: vec![path.to_owned()],
            ..Secrecy::default()
        };
        assert!(reason(&marked).unwrap().contains("is a Secret"));

        assert!(may_be_read_by_others(path, ["key"]));
        chmod(&path.join("key"), 0o640);
        assert!(!may_be_read_by_others(path, ["key"]));
        assert!(reason(&found).is_some());
        let marked = Secrecy {
            public: vec![path.to_owned()],
            ..Secrecy::default()
        };
        assert_eq!(reason(&marked), None);
        chmod(&path.join("key"), 0o644);
        assert!(
            !may_be_read_by_others(path, ["key", "absent"]),
            "in doubt it is one"
        );
        chmod(path, 0o750);
        assert!(!may_be_read_by_others(path, ["key"]));
    }

    #[test]
    fn what_is_in_memory_is_a_secret() {
        let path = Path::new("/dev/shm");
        if statfs(path).is_ok_and(|_| is_in_memory(path)) {
            assert!(Secrecy::default().reason(path, []).unwrap().contains("in memory"));
        }
        assert!(Secrecy::default().reason(Path::new("/nonexistent"), []).is_some());
    }
}
