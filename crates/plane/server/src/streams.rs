//! Logs, and commands in containers: what flows between a client and a node.

mod asked;
mod channels;
mod exec;
mod log;
mod pod;
mod websocket;

pub(crate) use asked::running;
pub(crate) use exec::{exec_request, session, socket_config};
pub(crate) use log::{LogOptions, log_answer, log_request};
pub(crate) use websocket::{Protocol, handshake};
