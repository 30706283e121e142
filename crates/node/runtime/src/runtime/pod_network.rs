//! The network of an instance's pods: which one, its bridge, and the way out of it.
//!
//! Where the host does not let us have one, pods share the host's own, and that is said.

use std::fmt;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use tracing::warn;

use crate::config::{InstanceId, PodNetworkMode, RuntimeConfig};
use crate::error::OpenError;
use crate::netlink::{Netlink, Occupied};
use crate::nftables;
use crate::pod_cidr::PodCidr;
use crate::status::NetworkRecord;

/// The networks that an instance chooses from: 10.88.0.0/16 to 10.95.0.0/16.
const CHOICE: std::ops::RangeInclusive<u8> = 88..=95;

const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// What pods of an instance are connected to.
#[derive(Debug, Clone)]
pub struct PodNetwork {
    /// Their own network; `None` where they share the host's.
    pub cidr: Option<PodCidr>,
    /// What they cannot do because of the host, each worth one warning.
    pub troubles: Vec<NetworkTrouble>,
}

/// Why pods reach less than they might.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkTrouble {
    /// There is no network of their own.
    Shared {
        /// What the host said.
        why: String,
    },
    /// Their packets are not given the host's address.
    NoMasquerade {
        /// What the host said.
        why: String,
    },
    /// The host forwards nothing.
    NoForwarding,
    /// Somebody else's chains, as `table/chain`, drop what is forwarded unless a rule there accepts it.
    DropsForwarded {
        /// The chains.
        chains: Vec<String>,
        /// The bridge that such a rule has to name.
        bridge: String,
    },
}

impl PodNetwork {
    /// All troubles in one line, if there are any.
    pub fn warning(&self) -> Option<String> {
        let sentences: Vec<String> = self.troubles.iter().map(NetworkTrouble::to_string).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }
}

impl NetworkTrouble {
    /// Every [`reason`](Self::reason).
    pub const REASONS: [&str; 4] = ["shared", "masquerade", "forwarding", "firewall"];

    /// One word, for a metric.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Shared { .. } => "shared",
            Self::NoMasquerade { .. } => "masquerade",
            Self::NoForwarding => "forwarding",
            Self::DropsForwarded { .. } => "firewall",
        }
    }
}

impl fmt::Display for NetworkTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared { why } => write!(
                f,
                "pods share this host's network and its ports, as they cannot have one of their own here: {why}"
            ),
            Self::NoMasquerade { why } => write!(
                f,
                "pods reach this host and each other and nothing beyond: no masquerading by nftables: {why}"
            ),
            Self::NoForwarding => f.write_str(
                "pods reach this host and each other and nothing beyond: net.ipv4.ip_forward is 0; set it to 1, or start \
                 with --enable-ip-forward",
            ),
            Self::DropsForwarded { chains, bridge } => write!(
                f,
                "{} drops what is forwarded unless a rule there accepts it: without one for {bridge} pods reach nothing \
                 beyond this host",
                chains.join(", ")
            ),
        }
    }
}

/// Takes or confirms the network, and makes the bridge and the way out. `busy`: pods hold on to what was chosen `before`.
pub(super) fn settle(
    config: &RuntimeConfig,
    before: Option<PodCidr>,
    busy: bool,
) -> Result<PodNetwork, OpenError> {
    let id = &config.instance_id;
    let bridge = bridge_name(id);
    let shared = |trouble: Option<NetworkTrouble>| PodNetwork {
        cidr: None,
        troubles: trouble.into_iter().collect(),
    };
    if config.pod_network.mode == PodNetworkMode::Host {
        if !busy {
            remove(id).map_err(OpenError::Network)?;
        }
        return Ok(shared(None));
    }
    let settled = || -> Result<PodCidr, OpenError> {
        if !Path::new("/proc/self/ns/net").exists() {
            return Err(OpenError::Network(io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
        }
        let mut netlink = Netlink::open().map_err(OpenError::Network)?;
        let cidr = choose(&mut netlink, &bridge, config.pod_network.cidr, before, busy)?;
        if !busy && before.is_some_and(|before| before != cidr) {
            // It has the gateway of the network that it was.
            netlink.remove_link(&bridge).map_err(OpenError::Network)?;
        }
        ensure_bridge(&mut netlink, &bridge, cidr).map_err(OpenError::Network)?;
        Ok(cidr)
    };
    match settled() {
        Ok(cidr) => Ok(PodNetwork {
            cidr: Some(cidr),
            troubles: way_out(config, &bridge, cidr),
        }),
        Err(OpenError::Network(error)) if !busy && cannot_be_had(&error) => {
            let why = format!("cannot make the bridge {bridge}: {error}");
            Ok(shared(Some(NetworkTrouble::Shared { why })))
        }
        Err(error) => Err(error),
    }
}

/// Whether the host lacks what it takes, or withholds it.
fn cannot_be_had(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EPERM
                | libc::EACCES
                | libc::EOPNOTSUPP
                | libc::EAFNOSUPPORT
                | libc::EPROTONOSUPPORT
                | libc::ENOSYS
        )
    )
}

/// Masquerades what leaves the network of the pods; returns what stands in the way.
fn way_out(config: &RuntimeConfig, bridge: &str, cidr: PodCidr) -> Vec<NetworkTrouble> {
    let mut troubles = Vec::new();
    if let Err(error) = nftables::masquerade(&nftables::table_name(&config.instance_id), cidr) {
        let why = error.to_string();
        troubles.push(NetworkTrouble::NoMasquerade { why });
    }
    if config.pod_network.enable_ip_forward {
        // What came of it is seen below.
        let _ = fs::write(FORWARDING, "1");
    }
    if !fs::read_to_string(FORWARDING).is_ok_and(|text| text.trim() == "1") {
        troubles.push(NetworkTrouble::NoForwarding);
    }
    let chains = nftables::dropping_forward_chains().unwrap_or_default();
    if !chains.is_empty() {
        let bridge = bridge.to_owned();
        troubles.push(NetworkTrouble::DropsForwarded { chains, bridge });
    }
    troubles
}

fn choose(
    netlink: &mut Netlink,
    bridge: &str,
    wanted: Option<PodCidr>,
    before: Option<PodCidr>,
    busy: bool,
) -> Result<PodCidr, OpenError> {
    if let Some(held) = before.filter(|_| busy) {
        return match wanted.filter(|wanted| *wanted != held) {
            Some(wanted) => Err(OpenError::PodCidrInUse { wanted, held }),
            None => Ok(held),
        };
    }
    let ours = match netlink.index_of(bridge) {
        Ok(index) => Some(index),
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => None,
        Err(error) => return Err(OpenError::Network(error)),
    };
    let taken = netlink.networks(ours).map_err(OpenError::Network)?;
    let Some(wanted) = wanted else {
        return first_free(before, &taken).ok_or(OpenError::NoFreeNetwork);
    };
    match collision(wanted, &taken) {
        None => Ok(wanted),
        Some(occupied) => Err(OpenError::PodCidrTaken {
            wanted,
            taken: netlink.describe(occupied).map_err(OpenError::Network)?,
        }),
    }
}

fn first_free(preferred: Option<PodCidr>, taken: &[Occupied]) -> Option<PodCidr> {
    preferred
        .into_iter()
        .chain(CHOICE.map(PodCidr::of_ten))
        .find(|cidr| collision(*cidr, taken).is_none())
}

/// What overlaps: a route rather than the address that it came with.
fn collision(wanted: PodCidr, taken: &[Occupied]) -> Option<&Occupied> {
    let overlapping = || taken.iter().filter(|one| one.network.overlaps(wanted.network()));
    overlapping()
        .find(|one| one.is_route)
        .or_else(|| overlapping().next())
}

/// The second octet of a network that an instance may choose by itself, else 0.
pub(super) fn chosen_octet(cidr: PodCidr) -> u8 {
    CHOICE
        .into_iter()
        .find(|second| PodCidr::of_ten(*second) == cidr)
        .unwrap_or(0)
}

/// Makes the bridge again if somebody removed it, and the table, which goes whenever somebody flushes all rules of the host.
pub(super) fn mend(id: &InstanceId, cidr: PodCidr) -> io::Result<()> {
    ensure_bridge(&mut Netlink::open()?, &bridge_name(id), cidr)?;
    let table = nftables::table_name(id);
    // Where there can be none, the start has said so.
    if let Ok(false) = nftables::exists(&table)
        && let Err(error) = nftables::masquerade(&table, cidr)
    {
        warn!(%error, "the nftables table of the pods' network is gone and cannot be made again");
    }
    Ok(())
}

fn ensure_bridge(netlink: &mut Netlink, name: &str, cidr: PodCidr) -> io::Result<()> {
    let found = match netlink.link(name) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
            // Pods that start at the same time may all find it gone.
            match netlink.add_bridge(name) {
                Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(error),
                _ => netlink.link(name)?,
            }
        }
        found => found?,
    };
    match netlink.add_address(found.index, cidr.gateway(), cidr.prefix_len()) {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(error),
        _ => {}
    }
    if found.is_up {
        Ok(())
    } else {
        netlink.set_up(found.index)
    }
}

/// A pod's place in the network.
pub(super) fn record(id: &InstanceId, cidr: PodCidr, address: Ipv4Addr) -> NetworkRecord {
    NetworkRecord {
        bridge: bridge_name(id),
        host_link: host_link_name(id, address),
        address,
        gateway: cidr.gateway(),
        prefix_len: cidr.prefix_len(),
    }
}

pub(super) fn bridge_name(id: &InstanceId) -> String {
    format!("hm{id}0")
}

fn host_link_name(id: &InstanceId, address: Ipv4Addr) -> String {
    format!("hv{id}{:04x}", address.to_bits() & 0xffff)
}

/// Removes every link and the table of an instance, whether or not a record of it is left.
pub(super) fn remove(id: &InstanceId) -> io::Result<()> {
    nftables::remove(&nftables::table_name(id))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Network;

    fn cidr(text: &str) -> PodCidr {
        text.parse().expect("a network")
    }

    fn occupied(address: &str, prefix_len: u8, is_route: bool) -> Occupied {
        let address = address.parse().expect("ip");
        Occupied {
            network: Network { address, prefix_len },
            link: None,
            is_route,
        }
    }

    #[test]
    fn names_fit_into_15_characters() {
        let id = "a1b2c3d4".parse().expect("an id");
        let record = record(
            &id,
            cidr("10.88.0.0/16"),
            "10.88.255.254".parse().expect("an address"),
        );
        assert_eq!(
            (record.bridge.as_str(), record.host_link.as_str()),
            ("hma1b2c3d40", "hva1b2c3d4fffe")
        );
        assert!(record.bridge.len() <= 15 && record.host_link.len() <= 15);
    }

    #[test]
    fn the_first_network_without_overlap_is_chosen() {
        let route = |address: &str, prefix_len| occupied(address, prefix_len, true);
        for (preferred, taken, chosen) in [
            (None, vec![], Some("10.88.0.0/16")),
            (
                None,
                vec![route("10.88.7.0", 24), route("10.89.0.1", 32)],
                Some("10.90.0.0/16"),
            ),
            (
                Some("10.93.0.0/16"),
                vec![route("10.88.0.0", 16)],
                Some("10.93.0.0/16"),
            ),
            (
                Some("192.168.4.0/24"),
                vec![route("10.88.0.0", 16)],
                Some("192.168.4.0/24"),
            ),
            (
                Some("10.93.0.0/16"),
                vec![route("10.92.0.0", 15)],
                Some("10.88.0.0/16"),
            ),
            (None, vec![route("10.0.0.0", 8)], None),
        ] {
            assert_eq!(
                first_free(preferred.map(cidr), &taken),
                chosen.map(cidr),
                "{preferred:?} {taken:?}"
            );
        }
    }

    #[test]
    fn a_network_comes_with_its_bridge_and_table_and_goes_with_them() {
        let this =
            "runtime::pod_network::tests::a_network_comes_with_its_bridge_and_table_and_goes_with_them";
        if !crate::own_network::enter(this) {
            return;
        }
        let mut config = RuntimeConfig {
            state_dir: "/nowhere".into(),
            instance_id: "a1b2c3d4".parse().expect("an id"),
            allow_privileged: false,
            mask: Vec::new(),
            self_exe: RuntimeConfig::self_exe(),
            boot_id: crate::config::BootId::injected("boot"),
            pod_network: Default::default(),
        };
        let id = config.instance_id.clone();
        let table = nftables::table_name(&id);
        let has_bridge = || Netlink::open().expect("open").index_of(&bridge_name(&id)).is_ok();
        let gateways = || {
            let taken = Netlink::open().expect("open").networks(None).expect("listed");
            let bridged = taken
                .iter()
                .filter(|one| !one.is_route && one.network.prefix_len != 32);
            bridged
                .map(|one| one.network.address.to_string())
                .collect::<std::collections::BTreeSet<_>>()
        };
        config.pod_network.enable_ip_forward = true;
        let made = settle(&config, None, false).expect("settled");
        assert_eq!((made.cidr, made.troubles), (Some(cidr("10.88.0.0/16")), vec![]));
        assert!(has_bridge() && nftables::exists(&table).expect("asked"));

        // Somebody flushes all rules of the host and takes the bridge away: the next pod has both again.
        nftables::remove(&table).expect("removed");
        Netlink::open()
            .and_then(|mut to| to.remove_link(&bridge_name(&id)))
            .expect("removed");
        mend(&id, cidr("10.88.0.0/16")).expect("mended");
        assert!(has_bridge() && nftables::exists(&table).expect("asked"));

        // Pods hold on to a network; without them it is another one, and nothing is left of the first.
        config.pod_network.cidr = Some(cidr("10.20.30.0/24"));
        let held = settle(&config, made.cidr, true).expect_err("in use");
        assert_eq!(
            held.to_string(),
            "pods run in the network 10.88.0.0/16: end them with `hotmap down` before they have 10.20.30.0/24"
        );
        let other = settle(&config, made.cidr, false).expect("settled");
        assert_eq!(other.cidr, config.pod_network.cidr);
        assert!(
            gateways().contains("10.20.30.1") && !gateways().contains("10.88.0.1"),
            "{:?}",
            gateways()
        );

        config.pod_network.mode = PodNetworkMode::Host;
        let shared = settle(&config, other.cidr, false).expect("settled");
        assert_eq!((shared.cidr, shared.troubles), (None, vec![]));
        assert!(!has_bridge() && !nftables::exists(&table).expect("asked"));
    }

    #[test]
    fn of_what_overlaps_the_route_is_named() {
        let taken = [
            occupied("10.20.0.1", 24, false),
            occupied("10.30.0.0", 16, true),
            occupied("10.20.0.0", 24, true),
        ];
        let found = |text: &str| collision(cidr(text), &taken).map(|one| (one.network.address, one.is_route));
        assert_eq!(
            found("10.20.0.0/16"),
            Some(("10.20.0.0".parse().expect("ip"), true))
        );
        assert_eq!(found("10.31.0.0/16"), None);
    }

    #[test]
    fn only_networks_that_are_chosen_from_have_an_octet() {
        for (text, octet) in [
            ("10.88.0.0/16", 88),
            ("10.95.0.0/16", 95),
            ("10.96.0.0/16", 0),
            ("10.88.0.0/24", 0),
        ] {
            assert_eq!(chosen_octet(cidr(text)), octet, "{text}");
        }
    }
}
