//! `--state-file`: how far the last change has come, for `hotmap probe` and for scripts.
//!
//! ```json
//! {"phase": "held-back", "reason": "…", "deaf": "…",
//!  "volumes": [{"path": "/etc/app", "seen": "..2026_01_31_09_05_07.2", "loaded": "..2026_01_31_09_05_07.1"}]}
//! ```
//!
//! It holds no content of files, and is replaced whole.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tracing::warn;

use crate::progress::{Phase, Progress};

/// The content of the file. The local endpoint's `/v1/config` can be read as it, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) phase: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deaf: Option<String>,
    pub(crate) volumes: Vec<VolumeState>,
}

/// What is known of one watched path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VolumeState {
    pub(crate) path: PathBuf,
    /// What is there at this moment, if the source has looked for this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<String>,
    #[serde(default)]
    pub(crate) seen: Option<String>,
    #[serde(default)]
    pub(crate) loaded: Option<String>,
}

/// The word of [`State::phase`] for a change that the check has refused.
pub(crate) const HELD_BACK: &str = "held-back";

impl From<&Progress> for State {
    fn from(progress: &Progress) -> Self {
        let (phase, reason) = match &progress.phase {
            Phase::Starting => ("starting", None),
            Phase::Loading => ("loading", None),
            Phase::Loaded => ("loaded", None),
            Phase::HeldBack(why) => (HELD_BACK, Some(why.clone())),
            Phase::Failed(why) => ("failed", Some(why.clone())),
        };
        let volumes = progress.volumes.iter().map(|volume| VolumeState {
            path: volume.path.clone(),
            revision: None,
            seen: volume.seen.as_ref().map(ToString::to_string),
            loaded: volume.loaded.as_ref().map(ToString::to_string),
        });
        Self {
            phase: phase.to_owned(),
            reason,
            deaf: progress.deaf.clone(),
            volumes: volumes.collect(),
        }
    }
}

/// Keeps the file true, for ever; without a path it does nothing. What cannot be written is said, once for each change.
pub(crate) async fn keep(path: Option<PathBuf>, mut progress: watch::Receiver<Progress>) -> Infallible {
    let Some(path) = path else {
        return std::future::pending().await;
    };
    loop {
        let state = State::from(&*progress.borrow_and_update());
        if let Err(error) = write(&path, &state) {
            warn!(path = %path.display(), %error, "the file of --state-file cannot be written");
        }
        if progress.changed().await.is_err() {
            // Its reloader is gone, and with it whoever waits for this.
            return std::future::pending().await;
        }
    }
}

fn write(path: &Path, state: &State) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let next = path.with_file_name(name);
    fs::write(&next, serde_json::to_vec(state)?)?;
    fs::rename(next, path)
}
