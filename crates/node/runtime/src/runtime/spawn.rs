//! Starting a shim without forking this threaded process: the standard library spawns with shared memory and an immediate exec as
//! long as nothing is asked to run in between.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::SandboxError;
use crate::protocol::{Greeting, RECORD_FILE, SHIM_ARGUMENT, SHIM_LOG_FILE, STATE_FILE};
use crate::status::SandboxRecord;

/// A greeting is one line of JSON, never longer.
const GREETING_BYTES_MAX: u64 = 16 << 10;

/// What the shims of earlier sandboxes of a pod have complained of; a longer log is begun anew with the next sandbox.
const SHIM_LOG_BYTES_MAX: u64 = 64 << 10;

/// Writes the pod's record, starts its shim in the pod's directory and waits for its greeting. The shim bounds each of its own steps.
pub(crate) fn shim(program: &Path, pod_dir: &Path, record: &SandboxRecord) -> Result<(), SandboxError> {
    let files = |name: &str| {
        let path = pod_dir.join(name);
        move |source| SandboxError::Files { path, source }
    };
    let _ = std::fs::remove_file(pod_dir.join(STATE_FILE));
    super::write_json(&pod_dir.join(RECORD_FILE), record).map_err(files(RECORD_FILE))?;
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
    let mut child = Command::new(program)
        .args([SHIM_ARGUMENT, &record.instance_id, &record.config.pod_uid])
        .env_clear()
        .current_dir(pod_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(SandboxError::Spawn)?;
    let mut line = String::new();
    let read = child.stdout.take().map_or(Ok(0), |stdout| {
        BufReader::new(stdout.take(GREETING_BYTES_MAX)).read_line(&mut line)
    });
    // It forks and ends at once.
    child.wait().and(read).map_err(SandboxError::Spawn)?;
    match serde_json::from_str(&line) {
        Ok(Greeting::Ready) => Ok(()),
        Ok(Greeting::Failed(reason)) => Err(SandboxError::Setup(reason)),
        Err(_) => Err(SandboxError::Spawn(io::Error::new(
            io::ErrorKind::InvalidData,
            "the program did not become a shim: its main must call shim_main_if_asked first",
        ))),
    }
}
