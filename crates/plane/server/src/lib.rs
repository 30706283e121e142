//! Kubernetes REST over a store.
//!
//! ```text
//!   TLS ─▶ authentication ─▶ path ─▶ authorization ─▶ front ─┬▶ objects: list, watch, get, write
//!                                                            ├▶ discovery, openapi, version, health, metrics
//!                                                            ├▶ access and token reviews
//!                                                            └▶ streams: log, exec, attach, ports ─▶ NodeAccess
//!   audit: a line of JSON for each of them, if that is wanted
//! ```
//!
//! A server is one call of [`run`]: it is handed its store, its listener and its shutdown signal. `Status` is the only
//! error that leaves it towards clients.

mod access_reviews;
mod answer;
mod audit;
mod authentication;
mod authorization;
mod cache;
pub mod credentials;
mod discovery;
mod front;
mod health;
mod http;
mod local_objects;
mod metrics;
mod node_access;
mod node_door;
mod nodes;
mod objects;
mod openapi;
mod path;
mod request;
mod server;
mod streams;
mod tls;
mod token_reviews;
mod tokens;
mod uuid;
mod version;

pub use audit::{AuditConfig, AuditLevel, AuditTarget};
pub use local_objects::{LocalChange, LocalChanges, LocalObjects};
pub use node_access::{
    AttachRequest, Duplex, ExecRequest, ExecStreams, ExitStatus, LogRequest, LogStream, NodeAccess, PodPorts,
    PortForward, PortForwardRequest, TerminalSize,
};
pub use node_door::{NodeDoorConfig, NodeGate, NodeUser, ServingPair, open_node_door};
pub use nodes::LocalNode;
pub use server::{PodsDoor, ServeError, ServerConfig, run};
pub use tls::TlsError;
