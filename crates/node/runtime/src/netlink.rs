//! Links, addresses and routes, over one blocking route socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Messages the kernel may send in answer to one dump.
const DUMP_MESSAGES_MAX: usize = 1 << 20;

/// The table of addresses of this host and of broadcasts, which the kernel keeps.
const RT_TABLE_LOCAL: u8 = 255;

/// The index of `lo`, the first link of every network namespace (the kernel's `LOOPBACK_IFINDEX`).
pub(crate) const LOOPBACK: u32 = 1;

/// A route socket of the network namespace it was opened in.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// Whether somebody has set it up.
    pub(crate) is_up: bool,
}

/// An IPv4 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) address: Ipv4Addr,
    pub(crate) prefix_len: u8,
}

/// A network that the host has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occupied {
    pub(crate) network: Network,
    /// The index of the link that it is on or leads through.
    pub(crate) link: Option<u32>,
    /// A route that somebody made, or that came with an address; else an address, or what the kernel keeps for itself.
    pub(crate) is_route: bool,
}

impl Network {
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let shared = self.prefix_len.min(other.prefix_len).min(32);
        let mask = u32::MAX.checked_shl(32 - u32::from(shared)).unwrap_or(0);
        self.address.to_bits() & mask == other.address.to_bits() & mask
    }
}

impl Link {
    fn of(reply: RouteNetlinkMessage) -> Option<Self> {
        let RouteNetlinkMessage::NewLink(link) = reply else {
            return None;
        };
        let name = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name.clone()),
            _ => None,
        })?;
        Some(Self {
            index: link.header.index,
            name,
            is_up: link.header.flags.contains(LinkFlags::Up),
        })
    }
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    pub(crate) fn links(&mut self) -> io::Result<Vec<Link>> {
        let replies = self.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        Ok(replies.into_iter().filter_map(Link::of).collect())
    }

    /// One link by name, or `ENODEV`. It costs the same however many there are: each pod has one on the host.
    pub(crate) fn link(&mut self, name: &str) -> io::Result<Link> {
        let mut asked = LinkMessage::default();
        asked.attributes.push(LinkAttribute::IfName(name.to_owned()));
        // Its counters are most of what the kernel would say of it.
        let mask = LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]);
        asked.attributes.push(mask);
        self.send(RouteNetlinkMessage::GetLink(asked), NLM_F_REQUEST | NLM_F_ACK)?;
        let mut found = None;
        self.replies(|reply| found = Link::of(reply))?;
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }

    /// The index of a link, or `ENODEV`.
    pub(crate) fn index_of(&mut self, name: &str) -> io::Result<u32> {
        Ok(self.link(name)?.index)
    }

    /// Every IPv4 network that this host has an address in or a route to, except those of the link `without`.
    pub(crate) fn networks(&mut self, without: Option<u32>) -> io::Result<Vec<Occupied>> {
        let mut networks = Vec::new();
        for reply in self.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))? {
            let RouteNetlinkMessage::NewAddress(address) = reply else {
                continue;
            };
            let link = Some(address.header.index);
            if link == without {
                continue;
            }
            for attribute in &address.attributes {
                if let AddressAttribute::Address(IpAddr::V4(ip)) | AddressAttribute::Local(IpAddr::V4(ip)) =
                    attribute
                {
                    let prefix_len = address.header.prefix_len;
                    networks.push(Occupied {
                        network: Network {
                            address: *ip,
                            prefix_len,
                        },
                        link,
                        is_route: false,
                    });
                }
            }
        }
        for reply in self.dump(RouteNetlinkMessage::GetRoute(RouteMessage::default()))? {
            let RouteNetlinkMessage::NewRoute(route) = reply else {
                continue;
            };
            let prefix_len = route.header.destination_prefix_length;
            let link = route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
            let destination = route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(ip)) => Some(*ip),
                _ => None,
            });
            // A default route covers everything and says nothing.
            if let Some(address) = destination
                && prefix_len > 0
                && (link.is_none() || link != without)
            {
                networks.push(Occupied {
                    network: Network { address, prefix_len },
                    link,
                    is_route: route.header.table != RT_TABLE_LOCAL,
                });
            }
        }
        Ok(networks)
    }

    /// In the words of `ip route` and `ip address`.
    pub(crate) fn describe(&mut self, occupied: &Occupied) -> io::Result<String> {
        let Network { address, prefix_len } = occupied.network;
        let what = if occupied.is_route { "route" } else { "address" };
        let name = self
            .links()?
            .into_iter()
            .find(|link| Some(link.index) == occupied.link)
            .map_or(String::new(), |link| format!(" dev {}", link.name));
        Ok(format!("{what} {address}/{prefix_len}{name}"))
    }

    pub(crate) fn add_bridge(&mut self, name: &str) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(name.to_owned()));
        link.attributes
            .push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]));
        self.change(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// A pair of links: `name` here on the bridge and up, `peer` in the network namespace of a process.
    pub(crate) fn add_veth(&mut self, name: &str, bridge: u32, peer: &str, peer_pid: u32) -> io::Result<()> {
        let mut other = LinkMessage::default();
        other.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        other.attributes.push(LinkAttribute::NetNsPid(peer_pid));
        let mut link = LinkMessage::default();
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes.push(LinkAttribute::IfName(name.to_owned()));
        link.attributes.push(LinkAttribute::Controller(bridge));
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]));
        self.change(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    pub(crate) fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    pub(crate) fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix_len: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix_len;
        message.header.index = index;
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix_len)).unwrap_or(0);
        message
            .attributes
            .push(AddressAttribute::Local(IpAddr::V4(address)));
        message
            .attributes
            .push(AddressAttribute::Address(IpAddr::V4(address)));
        message
            .attributes
            .push(AddressAttribute::Broadcast(Ipv4Addr::from_bits(
                address.to_bits() | !mask,
            )));
        self.change(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    pub(crate) fn add_default_route(&mut self, gateway: Ipv4Addr) -> io::Result<()> {
        let mut route = RouteMessage::default();
        route.header.address_family = AddressFamily::Inet;
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Boot;
        route.header.scope = RouteScope::Universe;
        route.header.kind = RouteType::Unicast;
        route
            .attributes
            .push(RouteAttribute::Gateway(RouteAddress::Inet(gateway)));
        self.change(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes a link by name; one that is not there is fine.
    pub(crate) fn remove_link(&mut self, name: &str) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.attributes.push(LinkAttribute::IfName(name.to_owned()));
        match self.change(RouteNetlinkMessage::DelLink(link), 0) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            result => result,
        }
    }

    fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        self.replies(|_| ())
    }

    fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut found = Vec::new();
        self.replies(|reply| found.push(reply))?;
        Ok(found)
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    /// Reads up to the acknowledgement, the error or the end of the dump that answers the last request.
    fn replies(&mut self, mut found: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        for _ in 0..DUMP_MESSAGES_MAX {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("netlink: {error}"));
                let packet = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(invalid)?;
                let length = (packet.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
                if packet.header.sequence_number != self.sequence {
                    continue;
                }
                match packet.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(()),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    NetlinkPayload::InnerMessage(message) => found(message),
                    _ => {}
                }
                if length == 0 {
                    break;
                }
            }
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "netlink: an endless dump",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_overlap_when_one_holds_the_other() {
        let network = |text: &str| {
            let (address, prefix_len) = text.split_once('/').expect("a prefix");
            Network {
                address: address.parse().expect("ip"),
                prefix_len: prefix_len.parse().expect("length"),
            }
        };
        for (left, right, overlaps) in [
            ("10.88.0.0/16", "10.88.3.0/24", true),
            ("10.88.0.0/16", "10.0.0.0/8", true),
            ("10.88.0.0/16", "10.89.0.0/16", false),
            ("10.88.0.1/32", "10.88.0.2/32", false),
            ("0.0.0.0/0", "192.0.2.1/32", true),
        ] {
            assert_eq!(network(left).overlaps(network(right)), overlaps, "{left} {right}");
            assert_eq!(network(right).overlaps(network(left)), overlaps, "{right} {left}");
        }
    }

    #[test]
    fn the_hosts_loopback_is_found() {
        let mut netlink = Netlink::open().expect("a route socket needs no rights");
        let found = netlink.link("lo").expect("every network namespace has one");
        assert_eq!((found.name.as_str(), found.index), ("lo", LOOPBACK));
        assert!(netlink.links().expect("links").contains(&found));
        assert_eq!(
            netlink
                .index_of("nosuchlink0")
                .map_err(|error| error.raw_os_error()),
            Err(Some(libc::ENODEV))
        );
    }
}
