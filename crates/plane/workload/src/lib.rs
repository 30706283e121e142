//! Controllers: what makes the state of a cluster follow what its objects say.
//!
//! ```text
//!   informers (one per kind) ──changes──▶ queues of keys ──▶ reconcile: observe, decide, act once
//!        ▲                                                        │
//!        └──────────────── every write is awaited here ◀──────────┘
//! ```
//!
//! - binding: a pod without a node gets one, or a condition and an event that say why not
//! - garbage: what nobody owns any more goes; deletions that wait for dependents end
//! - deployment: a ReplicaSet for each pod template it had, the newest with the pods
//! - replica set: as many pods as it asks for
//! - stateful set: pods with a name of their own each, started, stopped and updated in order
//! - daemon set: a pod on every node that takes it
//! - job: pods run until enough of them have succeeded; cron job: Jobs start by the clock; finished TTL: they go in time
//! - disruption: how many pods may be evicted now, per budget
//! - node lifecycle, taint eviction, pod garbage: a silent node is told of, tainted, and loses its pods
//! - certificates: nodes get theirs, approved requests are signed, old ones go; bootstrap tokens: they go when they end
//! - namespace defaults: the account and the ConfigMap that every namespace has are restored
//! - namespace lifecycle: a deleted namespace is emptied, awaited and finalized
//!
//! All work from what is, never from which event came: started anew, they carry on where they were. They speak to the
//! API like any client and know neither disks nor agents.

mod batches;
mod binding;
mod bootstrap_tokens;
mod certificates;
mod claims;
mod context;
mod controller;
mod controllers;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod events;
mod finished_ttl;
mod garbage;
mod informer;
mod informers;
mod job;
mod namespace_defaults;
mod namespace_lifecycle;
mod node_lifecycle;
mod pod_garbage;
mod pod_template;
mod queue;
mod replica_set;
mod revision;
mod stateful_set;
mod taint_eviction;
mod view;

pub use certificates::Signer;
pub use controllers::{ControllerError, run};
pub use informers::Collections;
