//! What an instance holds on the host besides its pods: a window of host ids, a network and its bridge.
//!
//! Both are chosen once and kept in `instance.json`. Instances that open at the same time take turns by a lock in `/run/hotmap`,
//! where a link per window says whose it is.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::config::{BootId, IdRange, InstanceId, RuntimeConfig};
use crate::error::OpenError;
use crate::netlink::{Netlink, Network};
use crate::protocol::VERSION;
use crate::status::NetworkRecord;

const INSTANCE_FILE: &str = "instance.json";

/// Host ids of pods begin here: 65,536 for each of [`WINDOW_PODS`] pods in each of [`WINDOWS`] windows.
const IDS_FIRST: u32 = 0x1000_0000;
const WINDOW_PODS: u32 = 256;
const WINDOWS: u32 = 96;

/// Where instances agree with each other; on a tmpfs, so that a reboot forgets it.
const AGREEMENT_DIR: &str = "/run/hotmap";

/// The networks that an instance chooses from: 10.88.0.0/16 to 10.95.0.0/16.
const NETWORKS: std::ops::RangeInclusive<u8> = 88..=95;
const PREFIX_LEN: u8 = 16;

/// What is kept in the state directory about the instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Instance {
    version: u32,
    instance_id: InstanceId,
    boot_id: BootId,
    id_window: u32,
    network: u8,
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
    ) -> Result<Self, OpenError> {
        let _turn = lock().map_err(|source| OpenError::State {
            path: lock_path(),
            source,
        })?;
        let wanted = recorded
            .as_ref()
            .map_or_else(|| preferred_window(&config.instance_id), |known| known.id_window);
        let id_window = claim_window(wanted, &config.state_dir)?;
        let mut netlink = Netlink::open().map_err(OpenError::Network)?;
        let bridge = bridge_name(&config.instance_id);
        let network = match recorded.as_ref().map(|known| known.network) {
            Some(network) if busy => network,
            preferred => choose_network(&mut netlink, &bridge, preferred)?,
        };
        let instance = Self {
            version: VERSION,
            instance_id: config.instance_id.clone(),
            boot_id: config.boot_id.clone(),
            id_window,
            network,
        };
        ensure_bridge(&mut netlink, &bridge, instance.gateway()).map_err(OpenError::Network)?;
        instance.write(&config.state_dir)?;
        Ok(instance)
    }

    fn write(&self, state_dir: &Path) -> Result<(), OpenError> {
        let path = state_dir.join(INSTANCE_FILE);
        let write = || -> io::Result<()> {
            let staged = path.with_extension("json.new");
            fs::write(&staged, serde_json::to_vec(self)?)?;
            fs::rename(staged, &path)
        };
        write().map_err(|source| OpenError::State {
            path: path.clone(),
            source,
        })
    }

    pub(crate) fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.network, 0, 1)
    }

    pub(crate) fn bridge(&self) -> String {
        bridge_name(&self.instance_id)
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

    /// The next address after `last` that no pod has, going round: an address rests as long as it can.
    pub(crate) fn free_address(
        &self,
        last: Option<Ipv4Addr>,
        used: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        let (first, end) = (2u32, 0xfffe);
        let base = Ipv4Addr::new(10, self.network, 0, 0).to_bits();
        let start = last
            .map_or(first, |last| (last.to_bits() & 0xffff) + 1)
            .max(first);
        let round = (start..=end).chain(first..start.min(end + 1));
        round
            .map(|host| Ipv4Addr::from_bits(base | host))
            .find(|address| !used(*address))
    }

    pub(crate) fn network_record(&self, address: Ipv4Addr) -> NetworkRecord {
        NetworkRecord {
            bridge: bridge_name(&self.instance_id),
            host_link: host_link_name(&self.instance_id, address),
            address,
            gateway: self.gateway(),
            prefix_len: PREFIX_LEN,
        }
    }

    /// Makes the bridge again if somebody removed it.
    pub(crate) fn ensure_bridge(&self) -> io::Result<()> {
        ensure_bridge(
            &mut Netlink::open()?,
            &bridge_name(&self.instance_id),
            self.gateway(),
        )
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

fn bridge_name(id: &InstanceId) -> String {
    format!("hm{id}0")
}

fn host_link_name(id: &InstanceId, address: Ipv4Addr) -> String {
    format!("hv{id}{:04x}", address.to_bits() & 0xffff)
}

/// Removes every link of an instance, whether or not a record of it is left.
pub(crate) fn remove_links(id: &InstanceId) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let prefix = format!("hv{id}");
    for link in netlink.links()? {
        let pod = link
            .name
            .strip_prefix(&prefix)
            .is_some_and(|rest| rest.len() == 4 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if pod || link.name == bridge_name(id) {
            netlink.remove_link(&link.name)?;
        }
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

fn choose_network(netlink: &mut Netlink, bridge: &str, preferred: Option<u8>) -> Result<u8, OpenError> {
    let ours = match netlink.index_of(bridge) {
        Ok(index) => Some(index),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => None,
        Err(error) => return Err(OpenError::Network(error)),
    };
    let taken = netlink.networks(ours).map_err(OpenError::Network)?;
    first_free_network(preferred, &taken).ok_or(OpenError::NoFreeNetwork)
}

fn first_free_network(preferred: Option<u8>, taken: &[Network]) -> Option<u8> {
    let candidate = |second: u8| Network {
        address: Ipv4Addr::new(10, second, 0, 0),
        prefix_len: PREFIX_LEN,
    };
    preferred
        .into_iter()
        .chain(NETWORKS)
        .find(|second| !taken.iter().any(|network| network.overlaps(candidate(*second))))
}

fn ensure_bridge(netlink: &mut Netlink, name: &str, gateway: Ipv4Addr) -> io::Result<()> {
    match netlink.add_bridge(name) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(error),
        _ => {}
    }
    let index = netlink.index_of(name)?;
    match netlink.add_address(index, gateway, PREFIX_LEN) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(error),
        _ => {}
    }
    netlink.set_up(index)
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
            network: 88,
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
    fn addresses_rest_before_they_come_again() {
        let ip = |text: &str| text.parse::<Ipv4Addr>().expect("an address");
        let instance = instance();
        assert_eq!(instance.free_address(None, |_| false), Some(ip("10.88.0.2")));
        assert_eq!(
            instance.free_address(Some(ip("10.88.0.2")), |_| false),
            Some(ip("10.88.0.3"))
        );
        assert_eq!(
            instance.free_address(Some(ip("10.88.255.254")), |_| false),
            Some(ip("10.88.0.2"))
        );
        let taken = |address| address == ip("10.88.0.3");
        assert_eq!(
            instance.free_address(Some(ip("10.88.0.2")), taken),
            Some(ip("10.88.0.4"))
        );
        assert_eq!(instance.free_address(None, |_| true), None);
    }

    #[test]
    fn names_fit_into_15_characters() {
        let record = instance().network_record("10.88.255.254".parse().expect("an address"));
        assert_eq!(
            (record.bridge.as_str(), record.host_link.as_str()),
            ("hma1b2c3d40", "hva1b2c3d4fffe")
        );
        assert!(record.bridge.len() <= 15 && record.host_link.len() <= 15);
    }

    #[test]
    fn the_first_network_without_overlap_is_chosen() {
        let network = |address: &str, prefix_len| Network {
            address: address.parse().expect("ip"),
            prefix_len,
        };
        for (preferred, taken, chosen) in [
            (None, vec![], Some(88)),
            (
                None,
                vec![network("10.88.7.0", 24), network("10.89.0.1", 32)],
                Some(90),
            ),
            (Some(93), vec![network("10.88.0.0", 16)], Some(93)),
            (Some(93), vec![network("10.92.0.0", 15)], Some(88)),
            (None, vec![network("10.0.0.0", 8)], None),
        ] {
            assert_eq!(
                first_free_network(preferred, &taken),
                chosen,
                "{preferred:?} {taken:?}"
            );
        }
    }
}
