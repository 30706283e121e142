//! The network of an instance's pods.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::netlink::Network;

/// An IPv4 network for pods, such as `10.88.0.0/16`: the first address is the host's, the last one is for broadcasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PodCidr {
    first: Ipv4Addr,
    prefix_len: u8,
}

/// A text that is no network for pods.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PodCidrError {
    /// Not an address and a length.
    #[error("{0:?} is not an IPv4 network like 10.88.0.0/16")]
    Form(String),
    /// Too many addresses for the names of links, or too few to be of use.
    #[error("{0:?} has a prefix outside of /16 to /28")]
    PrefixLength(String),
    /// Some host of the network, not the network.
    #[error("{given:?} is an address in the network {network}; write that")]
    HostBits {
        /// As typed.
        given: String,
        /// What it lies in.
        network: PodCidr,
    },
    /// Loopback, link-local, multicast and the like are nobody's to give.
    #[error("{0:?} is not a network that hosts can have")]
    Reserved(String),
}

impl PodCidr {
    /// The shortest prefix: links are named by the last 16 bits of an address.
    const PREFIX_MIN: u8 = 16;
    /// The longest: 13 pods.
    const PREFIX_MAX: u8 = 28;

    /// One of the networks that instances choose from by themselves: `10.<second>.0.0/16`.
    pub(crate) fn of_ten(second: u8) -> Self {
        Self {
            first: Ipv4Addr::new(10, second, 0, 0),
            prefix_len: 16,
        }
    }

    pub(crate) fn first(self) -> Ipv4Addr {
        self.first
    }

    pub(crate) fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    pub(crate) fn mask(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX << (32 - u32::from(self.prefix_len)))
    }

    /// The host's address among the pods: their gateway.
    pub fn gateway(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() + 1)
    }

    pub(crate) fn network(self) -> Network {
        Network {
            address: self.first,
            prefix_len: self.prefix_len,
        }
    }

    /// Every address that a pod may have, beginning behind `last` and going round once.
    pub(crate) fn pod_addresses_after(self, last: Option<Ipv4Addr>) -> impl Iterator<Item = Ipv4Addr> {
        let (first, end) = (self.gateway().to_bits() + 1, self.broadcast().to_bits());
        let start = last.map_or(first, |last| last.to_bits().saturating_add(1).clamp(first, end));
        (start..end).chain(first..start).map(Ipv4Addr::from_bits)
    }

    /// Whether a pod may have this address.
    pub(crate) fn is_for_pods(self, address: Ipv4Addr) -> bool {
        (self.gateway()..self.broadcast()).contains(&address) && address != self.gateway()
    }

    fn broadcast(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() | !self.mask().to_bits())
    }
}

impl FromStr for PodCidr {
    type Err = PodCidrError;

    fn from_str(raw: &str) -> Result<Self, PodCidrError> {
        let form = || PodCidrError::Form(raw.to_owned());
        let (address, length) = raw.split_once('/').ok_or_else(form)?;
        let address: Ipv4Addr = address.parse().map_err(|_| form())?;
        let prefix_len: u8 = length.parse().map_err(|_| form())?;
        if !(Self::PREFIX_MIN..=Self::PREFIX_MAX).contains(&prefix_len) {
            return Err(PodCidrError::PrefixLength(raw.to_owned()));
        }
        if address.octets()[0] == 0
            || address.octets()[0] >= 224
            || address.is_loopback()
            || address.is_link_local()
        {
            return Err(PodCidrError::Reserved(raw.to_owned()));
        }
        let mut cidr = Self {
            first: address,
            prefix_len,
        };
        cidr.first = Ipv4Addr::from_bits(address.to_bits() & cidr.mask().to_bits());
        if cidr.first != address {
            return Err(PodCidrError::HostBits {
                given: raw.to_owned(),
                network: cidr,
            });
        }
        Ok(cidr)
    }
}

impl TryFrom<String> for PodCidr {
    type Error = PodCidrError;

    fn try_from(raw: String) -> Result<Self, PodCidrError> {
        raw.parse()
    }
}

impl From<PodCidr> for String {
    fn from(cidr: PodCidr) -> Self {
        cidr.to_string()
    }
}

impl fmt::Display for PodCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_pods_are_named_exactly() {
        for (raw, said) in [
            ("10.88.0.0/16", "10.88.0.0/16"),
            ("192.168.7.16/28", "192.168.7.16/28"),
            (
                "10.88.0.0",
                "\"10.88.0.0\" is not an IPv4 network like 10.88.0.0/16",
            ),
            (
                "fd00::/64",
                "\"fd00::/64\" is not an IPv4 network like 10.88.0.0/16",
            ),
            ("10.0.0.0/8", "\"10.0.0.0/8\" has a prefix outside of /16 to /28"),
            (
                "10.0.0.0/29",
                "\"10.0.0.0/29\" has a prefix outside of /16 to /28",
            ),
            (
                "10.88.1.0/16",
                "\"10.88.1.0/16\" is an address in the network 10.88.0.0/16; write that",
            ),
            (
                "127.1.0.0/16",
                "\"127.1.0.0/16\" is not a network that hosts can have",
            ),
            (
                "224.1.0.0/16",
                "\"224.1.0.0/16\" is not a network that hosts can have",
            ),
        ] {
            let shown = match raw.parse::<PodCidr>() {
                Ok(cidr) => cidr.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown, said, "{raw}");
        }
    }

    #[test]
    fn pods_have_what_neither_the_host_nor_broadcasts_have() {
        let cidr: PodCidr = "10.20.30.16/28".parse().expect("a network");
        let ip = |last: u8| Ipv4Addr::new(10, 20, 30, last);
        assert_eq!(cidr.gateway(), ip(17));
        let all: Vec<_> = cidr.pod_addresses_after(None).collect();
        assert_eq!((all.len(), all[0], all[12]), (13, ip(18), ip(30)));
        for (last, next, final_one) in [(18, 19, 18), (29, 30, 29), (30, 18, 30), (200, 18, 30)] {
            let round: Vec<_> = cidr.pod_addresses_after(Some(ip(last))).collect();
            assert_eq!(
                (round.len(), round[0], round[12]),
                (13, ip(next), ip(final_one)),
                "{last}"
            );
            assert!(round.iter().all(|address| cidr.is_for_pods(*address)));
        }
        for outside in [15, 16, 17, 31, 32] {
            assert!(!cidr.is_for_pods(ip(outside)), "{outside}");
        }
    }
}
