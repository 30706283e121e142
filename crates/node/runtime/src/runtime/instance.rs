//! What an instance holds on the host besides its pods: a window of host ids and a network.
//!
//! Both are chosen once and kept in `instance.json`. Instances that open at the same time take turns by a lock in `/run/hotmap`,
//! where a link per window says whose it is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::pod_network::{self, PodNetwork};
use crate::config::{BootId, IdRange, InstanceId, RuntimeConfig};
use crate::error::OpenError;
use crate::pod_cidr::PodCidr;
use crate::protocol::VERSION;

const INSTANCE_FILE: &str = "instance.json";

/// Host ids of pods begin here: 65,536 for each of [`WINDOW_PODS`] pods in each of [`WINDOWS`] windows.
const IDS_FIRST: u32 = 0x1000_0000;
const WINDOW_PODS: u32 = 256;
const WINDOWS: u32 = 96;

/// Where instances agree with each other; on a tmpfs, so that a reboot forgets it.
const AGREEMENT_DIR: &str = "/run/hotmap";

/// What is kept in the state directory about the instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Instance {
    version: u32,
    instance_id: InstanceId,
    boot_id: BootId,
    id_window: u32,
    /// The second octet of `10.x.0.0/16`, as releases before `pod_cidr` read it; 0 for every other network.
    network: u8,
    /// The network of the pods. Stays when they share the host's, so that it is there when they have their own again.
    #[serde(default)]
    pod_cidr: Option<PodCidr>,
}

impl Instance {
    /// Reads the record, or `None` when the directory is new.
    pub(crate) fn read(state_dir: &Path) -> Result<Option<Self>, OpenError> {
        let path = state_dir.join(INSTANCE_FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(OpenError::State { path, source }),
        };
        let version = |text: &[u8]| -> Option<u32> {
            let value: serde_json::Value = serde_json::from_slice(text).ok()?;
            value.get("version")?.as_u64()?.try_into().ok()
        };
        if let Some(found) = version(&text).filter(|found| *found > VERSION) {
            return Err(OpenError::NewerState {
                path,
                found,
                supported: VERSION,
            });
        }
        let instance = serde_json::from_slice(&text);
        instance.map(Some).map_err(|error| OpenError::State {
            path,
            source: io::Error::from(error),
        })
    }

    pub(crate) fn is_of_boot(&self, boot_id: &BootId) -> bool {
        self.boot_id == *boot_id
    }

    /// Takes or confirms the window and the network, makes the bridge, and writes the record. `busy`: pods hold on to the network.
    pub(crate) fn settle(
        config: &RuntimeConfig,
        recorded: Option<Self>,
        busy: bool,
    ) -> Result<(Self, PodNetwork), OpenError> {
        let _turn = lock().map_err(|source| OpenError::State {
            path: lock_path(),
            source,
        })?;
        let wanted = recorded
            .as_ref()
            .map_or_else(|| preferred_window(&config.instance_id), |known| known.id_window);
        let id_window = claim_window(wanted, &config.state_dir)?;
        let before = recorded.as_ref().and_then(Self::pod_cidr);
        let network = pod_network::settle(config, before, busy)?;
        let pod_cidr = network.cidr.or(before);
        let instance = Self {
            version: VERSION,
            instance_id: config.instance_id.clone(),
            boot_id: config.boot_id.clone(),
            id_window,
            network: pod_cidr.map_or(0, pod_network::chosen_octet),
            pod_cidr,
        };
        instance.write(&config.state_dir)?;
        Ok((instance, network))
    }

    /// The network that was chosen, by this release or by one that knew fewer.
    fn pod_cidr(&self) -> Option<PodCidr> {
        let chosen = || (self.network != 0).then(|| PodCidr::of_ten(self.network));
        self.pod_cidr.or_else(chosen)
    }

    fn write(&self, state_dir: &Path) -> Result<(), OpenError> {
        let path = state_dir.join(INSTANCE_FILE);
        let write = || -> io::Result<()> {
            let text = serde_json::to_vec(self)?;
            // Until the next boot it does not change, and a restart takes no room on a disk that has none.
            if fs::read(&path).is_ok_and(|held| held == text) {
                return Ok(());
            }
            let staged = path.with_extension("json.new");
            fs::write(&staged, text)?;
            fs::rename(staged, &path)
        };
        write().map_err(|source| OpenError::State {
            path: path.clone(),
            source,
        })
    }

    /// The first range of the window that no pod has.
    pub(crate) fn free_ids(&self, used: impl Fn(IdRange) -> bool) -> Option<IdRange> {
        self.window().find(|range| !used(*range))
    }

    fn window(&self) -> impl Iterator<Item = IdRange> {
        let first = IDS_FIRST + self.id_window * WINDOW_PODS * IdRange::LEN;
        (0..WINDOW_PODS).map(move |pod| IdRange {
            base: first + pod * IdRange::LEN,
        })
    }

    /// Whether a host id is one of this instance's pods'.
    pub(crate) fn owns_id(&self, id: u32) -> bool {
        id >= IDS_FIRST && (id - IDS_FIRST) / (WINDOW_PODS * IdRange::LEN) == self.id_window
    }
}

/// Gives the windows of a state directory back. The last instance leaves nothing in `/run`.
pub(crate) fn release(state_dir: &Path) -> io::Result<()> {
    let ids = Path::new(AGREEMENT_DIR).join("ids");
    if !ids.exists() {
        return Ok(());
    }
    let _turn = lock()?;
    for entry in fs::read_dir(&ids)? {
        let claim = entry?.path();
        if fs::read_link(&claim).is_ok_and(|owner| owner == state_dir) {
            fs::remove_file(&claim)?;
        }
    }
    // Fails while there are others; whoever waits for the lock finds that its file is gone and takes a new one.
    if fs::remove_dir(&ids).is_ok() {
        fs::remove_file(lock_path())?;
        let _ = fs::remove_dir(AGREEMENT_DIR);
    }
    Ok(())
}

fn lock_path() -> PathBuf {
    Path::new(AGREEMENT_DIR).join("lock")
}

/// Held until dropped; instances choose one after the other.
fn lock() -> io::Result<File> {
    loop {
        match try_lock() {
            // The last instance took the directory away just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(None) => {}
            Ok(Some(file)) => return Ok(file),
            Err(error) => return Err(error),
        }
    }
}

/// `None` when the file that was locked is not the one in its place any more.
fn try_lock() -> io::Result<Option<File>> {
    fs::create_dir_all(Path::new(AGREEMENT_DIR).join("ids"))?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock_path())?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    let (ours, there) = (file.metadata()?, fs::metadata(lock_path())?);
    // Under the lock nobody else removes the directory, but somebody may have before.
    fs::create_dir_all(Path::new(AGREEMENT_DIR).join("ids"))?;
    Ok(((ours.dev(), ours.ino()) == (there.dev(), there.ino())).then_some(file))
}

/// Spreads instances over the windows, so that they rarely ask for the same.
fn preferred_window(id: &InstanceId) -> u32 {
    let hash = id.as_str().bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash % WINDOWS
}

fn claim_path(window: u32) -> PathBuf {
    Path::new(AGREEMENT_DIR).join("ids").join(window.to_string())
}

/// Takes the window, or the next that is free. One whose owner's directory is gone is free.
fn claim_window(wanted: u32, state_dir: &Path) -> Result<u32, OpenError> {
    for window in (0..WINDOWS).map(|step| (wanted + step) % WINDOWS) {
        let path = claim_path(window);
        let failed = |source| OpenError::State {
            path: path.clone(),
            source,
        };
        match fs::read_link(&path) {
            Ok(owner) if owner == state_dir => return Ok(window),
            Ok(owner) if owner.join(INSTANCE_FILE).exists() => continue,
            Ok(_) => fs::remove_file(&path).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        std::os::unix::fs::symlink(state_dir, &path).map_err(failed)?;
        return Ok(window);
    }
    Err(OpenError::NoFreeIds)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn instance() -> Instance {
        Instance {
            version: VERSION,
            instance_id: "a1b2c3d4".parse().expect("valid"),
            boot_id: BootId::injected("boot"),
            id_window: 95,
            network: 0,
            pod_cidr: None,
        }
    }

    #[test]
    fn id_ranges_stay_below_the_signed_half_and_run_out_at_256_pods() {
        let mut used = BTreeSet::new();
        while let Some(range) = instance().free_ids(|range| used.contains(&range.base)) {
            assert!(range.base >= IDS_FIRST && range.base + (IdRange::LEN - 1) < 0x7000_0000);
            assert!(instance().owns_id(range.base) && instance().owns_id(range.base + 65_535));
            assert!(used.insert(range.base));
        }
        assert_eq!(used.len(), 256);
        assert!(!instance().owns_id(0) && !instance().owns_id(IDS_FIRST));
    }

    #[test]
    fn a_record_of_an_earlier_release_says_which_network_it_is() {
        let text = r#"{"version":1,"instance_id":"a1b2c3d4","boot_id":"boot","id_window":3,"network":91}"#;
        let read: Instance = serde_json::from_str(text).expect("an older record");
        assert_eq!(
            read.pod_cidr().map(|cidr| cidr.to_string()).as_deref(),
            Some("10.91.0.0/16")
        );
        assert_eq!(instance().pod_cidr().map(|cidr| cidr.to_string()), None);
    }
}
