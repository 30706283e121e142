//! The node: follows objects, keeps volumes true, runs pods.
//!
//! ```text
//!   pods of this node ──▶ worker per pod ──decide──▶ runtime (sandbox, containers)
//!        │                    ▲     │ status, events ──▶ API
//!        ▼ references         │     ▼
//!   objects (watched, read) ──┴─▶ volumes (two threads, latest wins) ──▶ one rename
//! ```

mod access;
mod active_deadline;
mod agent;
mod api_clock;
mod backoff;
mod clock;
mod command;
mod configuration_events;
mod dial;
mod env_restart;
mod environment;
mod events;
mod expansion;
mod fields;
mod hooks;
mod host_ports;
mod hosts;
mod http_get;
mod images;
mod join;
mod lifecycle;
mod live_subpath;
mod logs;
mod metrics;
mod node;
mod nudge;
mod objects;
mod pod;
mod pod_files;
mod pod_socket;
mod probes;
mod records;
mod references;
mod report;
mod resolver;
mod resources;
mod status;
mod storage;
mod sub_path;
mod termination_message;
mod tokens;
mod volumes;
mod worker;

pub use access::{Access, LogError, LogOptions, LogPieces};
pub use agent::{Agent, AgentConfig, AgentError, PreparedAgent, down};
pub use api_clock::ApiClock;
pub use environment::ApiForPods;
pub use join::{JoinConfig, JoinError, Rotation, ServingRotation, certificate_end, join};
pub use metrics::Metrics;
pub use node::HeldByAnother;
pub use objects::{ChangeDetection, UnknownChangeDetection};
pub use report::{DigestKey, DigestKeyError};
