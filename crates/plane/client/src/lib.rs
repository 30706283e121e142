//! List, watch and write over HTTP/2, for the node and the controllers.
//!
//! ```text
//!   ClientConfig ──▶ Client ──one TLS connection──▶ any Kubernetes API server
//!                      │ get · list · create · update · patch · delete · watch
//!                      ▼
//!                   Follower: list, then watch, for ever: Initial, Applied, Deleted; never a lie, never a gap
//! ```
//!
//! Objects stay the bytes the server sent, with the few metadata fields everybody needs parsed out of them
//! ([`RawObject`]); whoever wants more parses a view of their own. The crate knows no kinds and nobody who uses
//! it.
//!
//! A dead connection is found within 10 s (HTTP/2 PING, or `TCP_USER_TIMEOUT` where the server speaks HTTP/1.1
//! only), a stalled watch after [`FollowerConfig::silence_max`]. Responses, watch lines and connections are
//! bounded.

mod any_server;
mod authority;
mod backoff;
mod client;
mod config;
mod connection;
mod error;
mod follower;
mod lines;
mod object;
mod path;
mod pool;
mod tls;
mod watch;

pub use any_server::any_server;
pub use authority::{AuthorityError, AuthorityHash, find_authority};
pub use backoff::Backoff;
pub use client::{
    AnswerDate, Client, DeleteParams, ListParams, PatchType, Propagation, WatchParams, WriteParams,
};
pub use config::{ClientConfig, ConfigError, Identity, Server, ServerProof, Surroundings, Timeouts, Token};
pub use error::ClientError;
pub use follower::{
    ClientListWatch, FollowEvent, FollowObserver, Follower, FollowerConfig, FollowerCounts, ListWatch,
    WatchEnd,
};
pub use object::{ObjectList, RawObject};
pub use path::ResourcePath;
pub use watch::{WatchEvent, WatchStream};
