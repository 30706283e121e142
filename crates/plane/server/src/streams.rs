//! Logs, and commands in containers: what flows between a client and a node.

mod channels;
mod exec;
mod log;
mod pod;
mod websocket;

pub(crate) use exec::{exec_request, session};
pub(crate) use log::{log_answer, log_request};
pub(crate) use websocket::handshake;
