//! How far the last change has come: what the endpoint, `/healthz`, metrics and reports tell.

use std::path::PathBuf;

use hotmap_projection::Revision;

/// What is on the disk, and what is loaded. Published in a `tokio::sync::watch` channel; one per process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// One for each watched path, in the order of the flags.
    pub volumes: Vec<VolumeProgress>,
    /// What happens now, or has happened last.
    pub phase: Phase,
    /// Why changes may be missed, if they may: the watch has failed, the API is away.
    pub deaf: Option<String>,
}

/// What is known of one watched path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeProgress {
    /// The path as it was given.
    pub path: PathBuf,
    /// What was seen last.
    pub seen: Option<Revision>,
    /// What the targets have taken last.
    pub loaded: Option<Revision>,
}

/// Where the last change is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Nothing has been seen yet.
    Starting,
    /// Seen, and on its way: waiting, checked, or told to the targets.
    Loading,
    /// All targets have taken it.
    Loaded,
    /// The check refused it: the targets still have what they had. Why.
    HeldBack(String),
    /// A target has not taken it. Why. It is tried again unless the reason is for good.
    Failed(String),
}
