//! Where the pods of this node reach the API: the node's address on their bridge.
//!
//! The socket is tied to the bridge, so that another host that takes us for a router does not get in by it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use anyhow::Context;
use hotmap_server::PodsDoor;
use tokio::net::{TcpListener, TcpSocket};

/// As many as the standard library's own listeners let wait.
const BACKLOG: u32 = 128;

/// Listens at the bridge: at the port of `main`, or, where somebody else has that, at a free one.
pub(super) fn open(gateway: Ipv4Addr, bridge: &str, main: SocketAddr) -> anyhow::Result<PodsDoor> {
    let wanted = SocketAddr::from((gateway, main.port()));
    let listener = match listen(wanted, bridge) {
        Ok(listener) => Some(listener),
        // Who listens everywhere listens there as well.
        Err(error) if is_taken(&error) && main.ip().is_unspecified() => None,
        Err(error) if is_taken(&error) => Some(
            listen(SocketAddr::from((gateway, 0)), bridge)
                .with_context(|| format!("cannot listen on {gateway}, for pods"))?,
        ),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot listen on {wanted}, for pods"));
        }
    };
    let address = match &listener {
        Some(listener) => listener.local_addr()?,
        None => wanted,
    };
    Ok(PodsDoor { address, listener })
}

fn listen(address: SocketAddr, bridge: &str) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind_device(Some(bridge.as_bytes()))?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}
