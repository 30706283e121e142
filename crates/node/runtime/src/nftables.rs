//! The instance's nftables table, over one netfilter socket: no program of the host is run, and no library of nftables is linked.
//!
//! ```text
//! table ip hotmap-<id> {
//!     chain postrouting {
//!         type nat hook postrouting priority srcnat; policy accept;
//!         ip saddr POD_CIDR ip daddr != POD_CIDR masquerade
//!     }
//! }
//! ```
//!
//! The kernel answers within the call that asks, so nothing here waits: once the socket is empty all has been said. Numbers are
//! those of `linux/netfilter/nf_tables.h` and `nfnetlink.h`.

use std::io;
use std::net::Ipv4Addr;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

use crate::config::InstanceId;
use crate::pod_cidr::PodCidr;

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = 0;
const GET_TABLE: u16 = 1;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const GET_CHAIN: u16 = 4;
const NEW_RULE: u16 = 6;

const FAMILY_ANY: u8 = 0;
const FAMILY_INET: u8 = 1;
const FAMILY_IPV4: u8 = 2;

const HOOK_FORWARD: u32 = 2;
const HOOK_POSTROUTING: u32 = 4;
/// `srcnat`.
const PRIORITY_SOURCE_NAT: u32 = 100;
const VERDICT_DROP: u32 = 0;
const VERDICT_ACCEPT: u32 = 1;

const REGISTER: u32 = 1;
const NETWORK_HEADER: u32 = 1;
/// Of the addresses in an IPv4 header.
const SOURCE_OFFSET: u32 = 12;
const DESTINATION_OFFSET: u32 = 16;
const COMPARE_EQUAL: u32 = 0;
const COMPARE_NOT_EQUAL: u32 = 1;

const NESTED: u16 = 0x8000;
const CHAIN: &str = "postrouting";

/// The name of an instance's table.
pub(crate) fn table_name(id: &InstanceId) -> String {
    format!("hotmap-{id}")
}

/// Makes the table, or makes it anew in one step; connections that are under way keep their translation.
pub(crate) fn masquerade(table: &str, pods: PodCidr) -> io::Result<()> {
    let mut batch = Batch::default();
    batch.add_table(table);
    batch.request(DELETE_TABLE, 0, |message| {
        message.text(attribute::TABLE_NAME, table)
    });
    batch.add_table(table);
    batch.request(NEW_CHAIN, NLM_F_CREATE, |message| {
        message.text(attribute::CHAIN_TABLE, table);
        message.text(attribute::CHAIN_NAME, CHAIN);
        message.nest(attribute::CHAIN_HOOK, |hook| {
            hook.number(attribute::HOOK_NUMBER, HOOK_POSTROUTING);
            hook.number(attribute::HOOK_PRIORITY, PRIORITY_SOURCE_NAT);
        });
        message.number(attribute::CHAIN_POLICY, VERDICT_ACCEPT);
        message.text(attribute::CHAIN_TYPE, "nat");
    });
    batch.request(NEW_RULE, NLM_F_CREATE | NLM_F_APPEND, |message| {
        message.text(attribute::RULE_TABLE, table);
        message.text(attribute::RULE_CHAIN, CHAIN);
        message.nest(attribute::RULE_EXPRESSIONS, |rule| {
            rule.compare_address(SOURCE_OFFSET, COMPARE_EQUAL, pods);
            rule.compare_address(DESTINATION_OFFSET, COMPARE_NOT_EQUAL, pods);
            rule.expression("masq", |_| {});
        });
    });
    Conversation::open()?.commit(batch)
}

/// Whether the table is there.
pub(crate) fn exists(table: &str) -> io::Result<bool> {
    let ask = Message::request(GET_TABLE, 0, 1, FAMILY_IPV4, |message| {
        message.text(attribute::TABLE_NAME, table);
    });
    match Conversation::open()?.ask(&ask) {
        Ok(found) => Ok(!found.is_empty()),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the table; one that is not there is fine, and so is a kernel that has no tables or does not let us ask.
pub(crate) fn remove(table: &str) -> io::Result<()> {
    let remove = || {
        let mut batch = Batch::default();
        batch.request(DELETE_TABLE, 0, |message| {
            message.text(attribute::TABLE_NAME, table)
        });
        Conversation::open()?.commit(batch)
    };
    match remove() {
        Err(error) if is_beyond_us(&error) || error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        result => result,
    }
}

/// Whether this says that there are no tables here, or none that we could have made.
fn is_beyond_us(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::EINVAL)
    )
}

/// Chains of other tables that drop what is forwarded unless a rule of theirs accepts it, as `table/chain`.
pub(crate) fn dropping_forward_chains() -> io::Result<Vec<String>> {
    let ask = Message::request(GET_CHAIN, NLM_F_DUMP, 1, FAMILY_ANY, |_| {});
    let answers = Conversation::open()?.ask(&ask)?;
    Ok(answers
        .iter()
        .filter_map(|answer| dropping_chain(answer))
        .collect())
}

/// One answer about a chain, from its nfgenmsg on.
fn dropping_chain(answer: &[u8]) -> Option<String> {
    let family = *answer.first()?;
    if !matches!(family, FAMILY_INET | FAMILY_IPV4) {
        return None;
    }
    let members = answer.get(4..)?;
    let hook = find(members, attribute::CHAIN_HOOK)?;
    let drops = number(find(members, attribute::CHAIN_POLICY)?)? == VERDICT_DROP;
    let forwards = number(find(hook, attribute::HOOK_NUMBER)?)? == HOOK_FORWARD;
    let (table, chain) = (
        find(members, attribute::CHAIN_TABLE)?,
        find(members, attribute::CHAIN_NAME)?,
    );
    (drops && forwards).then(|| format!("{}/{}", text(table), text(chain)))
}

/// The payload of the first attribute of a kind.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while let Some(head) = attributes.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let found = u16::from_ne_bytes([head[2], head[3]]) & !NESTED;
        let payload = attributes.get(4..length)?;
        if found == kind {
            return Some(payload);
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn text(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload).trim_end_matches('\0').to_owned()
}

mod attribute {
    pub(super) const TABLE_NAME: u16 = 1;
    pub(super) const CHAIN_TABLE: u16 = 1;
    pub(super) const CHAIN_NAME: u16 = 3;
    pub(super) const CHAIN_HOOK: u16 = 4;
    pub(super) const CHAIN_POLICY: u16 = 5;
    pub(super) const CHAIN_TYPE: u16 = 7;
    pub(super) const HOOK_NUMBER: u16 = 1;
    pub(super) const HOOK_PRIORITY: u16 = 2;
    pub(super) const RULE_TABLE: u16 = 1;
    pub(super) const RULE_CHAIN: u16 = 2;
    pub(super) const RULE_EXPRESSIONS: u16 = 4;
    pub(super) const ELEMENT: u16 = 1;
    pub(super) const EXPRESSION_NAME: u16 = 1;
    pub(super) const EXPRESSION_DATA: u16 = 2;
    pub(super) const DATA_VALUE: u16 = 1;
    pub(super) const PAYLOAD_REGISTER: u16 = 1;
    pub(super) const PAYLOAD_BASE: u16 = 2;
    pub(super) const PAYLOAD_OFFSET: u16 = 3;
    pub(super) const PAYLOAD_LENGTH: u16 = 4;
    pub(super) const BITWISE_SOURCE: u16 = 1;
    pub(super) const BITWISE_TARGET: u16 = 2;
    pub(super) const BITWISE_LENGTH: u16 = 3;
    pub(super) const BITWISE_MASK: u16 = 4;
    pub(super) const BITWISE_XOR: u16 = 5;
    pub(super) const COMPARE_REGISTER: u16 = 1;
    pub(super) const COMPARE_HOW: u16 = 2;
    pub(super) const COMPARE_DATA: u16 = 3;
}

/// One message to the kernel, its length still open.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16, sequence: u32, family: u8, resource: u16) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([family, 0]);
        bytes.extend(resource.to_be_bytes());
        Self(bytes)
    }

    fn request(kind: u16, flags: u16, sequence: u32, family: u8, fill: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut message = Self::new(SUBSYSTEM << 8 | kind, flags, sequence, family, 0);
        fill(&mut message);
        message.finish()
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }

    fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.attribute(kind | NESTED, &inner.0);
    }

    fn text(&mut self, kind: u16, text: &str) {
        let mut payload = text.as_bytes().to_vec();
        payload.push(0);
        self.attribute(kind, &payload);
    }

    fn number(&mut self, kind: u16, number: u32) {
        self.attribute(kind, &number.to_be_bytes());
    }

    fn address(&mut self, kind: u16, address: Ipv4Addr) {
        self.nest(kind, |data| {
            data.attribute(attribute::DATA_VALUE, &address.octets())
        });
    }

    fn attribute(&mut self, kind: u16, payload: &[u8]) {
        let length = 4 + payload.len();
        self.0.extend((length as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(payload);
        self.0
            .resize(self.0.len() + length.next_multiple_of(4) - length, 0);
    }

    fn expression(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        self.nest(attribute::ELEMENT, |element| {
            element.text(attribute::EXPRESSION_NAME, name);
            element.nest(attribute::EXPRESSION_DATA, fill);
        });
    }

    /// Loads an address of the packet, cuts it to the network, and compares.
    fn compare_address(&mut self, offset: u32, how: u32, network: PodCidr) {
        self.expression("payload", |load| {
            load.number(attribute::PAYLOAD_REGISTER, REGISTER);
            load.number(attribute::PAYLOAD_BASE, NETWORK_HEADER);
            load.number(attribute::PAYLOAD_OFFSET, offset);
            load.number(attribute::PAYLOAD_LENGTH, 4);
        });
        self.expression("bitwise", |mask| {
            mask.number(attribute::BITWISE_SOURCE, REGISTER);
            mask.number(attribute::BITWISE_TARGET, REGISTER);
            mask.number(attribute::BITWISE_LENGTH, 4);
            mask.address(attribute::BITWISE_MASK, network.mask());
            mask.address(attribute::BITWISE_XOR, Ipv4Addr::UNSPECIFIED);
        });
        self.expression("cmp", |compare| {
            compare.number(attribute::COMPARE_REGISTER, REGISTER);
            compare.number(attribute::COMPARE_HOW, how);
            compare.address(attribute::COMPARE_DATA, network.first());
        });
    }
}

/// Changes that happen together or not at all.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    requests: u32,
}

impl Batch {
    fn add_table(&mut self, table: &str) {
        self.request(NEW_TABLE, NLM_F_CREATE, |message| {
            message.text(attribute::TABLE_NAME, table)
        });
    }

    fn request(&mut self, kind: u16, flags: u16, fill: impl FnOnce(&mut Message)) {
        self.requests += 1;
        let message = Message::request(kind, flags | NLM_F_ACK, self.requests, FAMILY_IPV4, fill);
        self.bytes.extend(message);
    }
}

struct Conversation {
    socket: Socket,
}

impl Conversation {
    fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_non_blocking(true)?;
        Ok(Self { socket })
    }

    fn commit(&self, batch: Batch) -> io::Result<()> {
        let frame = |kind| Message::new(kind, 0, 0, FAMILY_ANY, SUBSYSTEM).finish();
        let mut bytes = frame(BATCH_BEGIN);
        bytes.extend(batch.bytes);
        bytes.extend(frame(BATCH_END));
        self.socket.send(&bytes, 0)?;
        let mut acknowledged = 0;
        self.answers(|kind, body| {
            // An error of zero is an acknowledgement.
            if kind == NLMSG_ERROR && body.get(..4) == Some(&[0; 4]) {
                acknowledged += 1;
            }
        })?;
        if acknowledged < batch.requests {
            let message = format!(
                "nftables: {acknowledged} of {} requests were answered",
                batch.requests
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(())
    }

    /// Every answer to one request, from its nfgenmsg on.
    fn ask(&self, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.socket.send(request, 0)?;
        let mut found = Vec::new();
        self.answers(|kind, body| {
            if kind >> 8 == SUBSYSTEM {
                found.push(body.to_vec());
            }
        })?;
        Ok(found)
    }

    /// Reads what the kernel has said; the first error ends it.
    fn answers(&self, mut hear: impl FnMut(u16, &[u8])) -> io::Result<()> {
        loop {
            let bytes = match self.socket.recv_from_full() {
                Ok((bytes, _)) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut rest = bytes.as_slice();
            while let Some(head) = rest.first_chunk::<6>() {
                let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
                let kind = u16::from_ne_bytes([head[4], head[5]]);
                let Some(body) = rest.get(16..length) else {
                    break;
                };
                if kind == NLMSG_ERROR {
                    let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    if code != 0 {
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                }
                hear(kind, body);
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own_network;

    #[test]
    fn attributes_are_found_by_kind_and_padding_is_skipped() {
        let mut message = Message::default();
        message.text(attribute::CHAIN_TABLE, "t");
        message.text(attribute::CHAIN_NAME, "chain");
        message.nest(attribute::CHAIN_HOOK, |hook| {
            hook.number(attribute::HOOK_NUMBER, HOOK_FORWARD)
        });
        message.number(attribute::CHAIN_POLICY, VERDICT_DROP);
        let answer = |family: u8| [&[family, 0, 0, 0], message.0.as_slice()].concat();
        assert_eq!(dropping_chain(&answer(FAMILY_IPV4)), Some("t/chain".to_owned()));
        assert_eq!(dropping_chain(&answer(FAMILY_INET)), Some("t/chain".to_owned()));
        assert_eq!(
            dropping_chain(&answer(10)),
            None,
            "that of IPv6 drops nothing of ours"
        );
        for length in 0..message.0.len() {
            // Whatever is cut off, nothing is read that is not there.
            let _ = dropping_chain(&[&[FAMILY_IPV4, 0, 0, 0], &message.0[..length]].concat());
        }
    }

    #[test]
    fn a_table_comes_is_replaced_and_goes_and_others_stay() {
        if !own_network::enter("nftables::tests::a_table_comes_is_replaced_and_goes_and_others_stay") {
            return;
        }
        let pods = |text: &str| text.parse::<PodCidr>().expect("a network");
        for _ in 0..2 {
            masquerade("hotmap-one", pods("10.88.0.0/16")).expect("made");
            masquerade("hotmap-two", pods("10.89.0.0/24")).expect("made");
        }
        assert!(exists("hotmap-one").expect("asked") && exists("hotmap-two").expect("asked"));
        assert_eq!(dropping_forward_chains().expect("asked"), [""; 0]);
        let mut theirs = Batch::default();
        theirs.add_table("theirs");
        for (chain, hook) in [("forward", HOOK_FORWARD), ("output", 3)] {
            theirs.request(NEW_CHAIN, NLM_F_CREATE, |message| {
                message.text(attribute::CHAIN_TABLE, "theirs");
                message.text(attribute::CHAIN_NAME, chain);
                message.nest(attribute::CHAIN_HOOK, |hook_of| {
                    hook_of.number(attribute::HOOK_NUMBER, hook);
                    hook_of.number(attribute::HOOK_PRIORITY, 0);
                });
                message.number(attribute::CHAIN_POLICY, VERDICT_DROP);
                message.text(attribute::CHAIN_TYPE, "filter");
            });
        }
        Conversation::open()
            .and_then(|to| to.commit(theirs))
            .expect("made");
        assert_eq!(dropping_forward_chains().expect("asked"), ["theirs/forward"]);
        remove("hotmap-one").expect("removed");
        remove("hotmap-one").expect("a second time there is nothing to do");
        assert!(!exists("hotmap-one").expect("asked") && exists("hotmap-two").expect("asked"));
    }
}
