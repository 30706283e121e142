//! A pod's shim: its record, its log and its birth.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::zygote::Zygote;
use crate::error::SandboxError;
use crate::protocol::{Greeting, RECORD_FILE, SHIM_LOG_FILE, STATE_FILE};
use crate::status::SandboxRecord;

/// What the shims of earlier sandboxes of a pod have complained of; a longer log is begun anew with the next sandbox.
const SHIM_LOG_BYTES_MAX: u64 = 64 << 10;

/// Writes the pod's record, starts its shim in the pod's directory and waits for its greeting. The shim bounds each of its own steps.
pub(crate) fn shim(zygote: &Zygote, pod_dir: &Path, record: &SandboxRecord) -> Result<(), SandboxError> {
    let files = |name: &str| {
        let path = pod_dir.join(name);
        move |source| SandboxError::Files { path, source }
    };
    let _ = std::fs::remove_file(pod_dir.join(STATE_FILE));
    super::write_json(&pod_dir.join(RECORD_FILE), record).map_err(files(RECORD_FILE))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(pod_dir, flags, Mode::empty());
    let dir = dir.map_err(|error| files("")(error.into()))?;
    let log_path = pod_dir.join(SHIM_LOG_FILE);
    if std::fs::metadata(&log_path).is_ok_and(|log| log.len() > SHIM_LOG_BYTES_MAX) {
        let _ = std::fs::remove_file(&log_path);
    }
    let log = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log_path);
    let log = log.map_err(files(SHIM_LOG_FILE))?;
    let line = zygote.bear(&record.config.pod_uid, &dir, &log);
    let line = line.map_err(SandboxError::Spawn)?;
    match serde_json::from_str(&line) {
        Ok(Greeting::Ready) => Ok(()),
        Ok(Greeting::Failed(reason)) => Err(SandboxError::Setup(reason)),
        Err(error) => Err(SandboxError::Spawn(io::Error::from(error))),
    }
}
