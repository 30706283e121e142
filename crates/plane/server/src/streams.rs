//! Logs, commands in containers, containers' own streams and ports: what flows between a client and a node.

mod asked;
mod channels;
mod exec;
mod log;
mod pod;
mod port_forward;
mod spdy;
mod websocket;

pub(crate) use asked::{Wanted, running};
pub(crate) use exec::{attach_request, exec_request, session, socket_config, wanted_streams};
pub(crate) use log::{LogOptions, log_answer, log_request};
pub(crate) use port_forward::{port_forward_request, port_forward_session};
pub(crate) use websocket::{Protocol, TUNNEL, handshake, tunnel_handshake};
