//! Commands in containers that run.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::{Connection, Runtime, validate};
use crate::error::ExecError;
use crate::exec::{ExecConfig, ExecReader, ExecSession, ExecSyncOutput};

impl Runtime {
    /// Runs a command in the newest attempt of a container, which must run.
    pub async fn exec(
        &self,
        pod_uid: &str,
        container: &str,
        config: ExecConfig,
    ) -> Result<ExecSession, ExecError> {
        validate::argv(&config.argv).map_err(ExecError::Invalid)?;
        let Some(sandbox) = self.sandbox(pod_uid) else {
            return Err(ExecError::NoSandbox(pod_uid.to_owned()));
        };
        if !self.is_attached(pod_uid) {
            // Its containers are known to have ended.
            let known = sandbox.container(container).is_some();
            let name = if known { container } else { pod_uid }.to_owned();
            return Err(if known {
                ExecError::NotRunning(name)
            } else {
                ExecError::NoSandbox(name)
            });
        }
        let connection = Connection::open(&self.pod_dir(pod_uid))
            .await
            .map_err(ExecError::Shim)?;
        ExecSession::start(connection, pod_uid, container, config).await
    }

    /// Runs a command to its end and brings back what it printed, at most `output_bytes_max` of each stream; the rest is
    /// read and dropped. At the timeout the command is killed.
    pub async fn exec_sync(
        &self,
        pod_uid: &str,
        container: &str,
        argv: Vec<String>,
        timeout: Duration,
        output_bytes_max: usize,
    ) -> Result<ExecSyncOutput, ExecError> {
        let config = ExecConfig {
            argv,
            stdout: true,
            stderr: true,
            ..ExecConfig::default()
        };
        let run = async {
            let mut session = self.exec(pod_uid, container, config).await?;
            let (stdout, stderr) = (session.stdout.take(), session.stderr.take());
            let (exit_code, stdout, stderr) = tokio::join!(
                session.wait(),
                read_bounded(stdout, output_bytes_max),
                read_bounded(stderr, output_bytes_max),
            );
            let (stdout, stderr) = (stdout.map_err(ExecError::Shim)?, stderr.map_err(ExecError::Shim)?);
            Ok(ExecSyncOutput {
                exit_code: exit_code?,
                stdout,
                stderr,
            })
        };
        tokio::time::timeout(timeout, run)
            .await
            .unwrap_or(Err(ExecError::Timeout(timeout)))
    }
}

async fn read_bounded(reader: Option<ExecReader>, max: usize) -> io::Result<Vec<u8>> {
    let Some(mut reader) = reader else {
        return Ok(Vec::new());
    };
    let mut kept = Vec::new();
    let mut bytes = vec![0; 16 << 10];
    loop {
        let length = reader.read(&mut bytes).await?;
        if length == 0 {
            return Ok(kept);
        }
        let room = max.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..length.min(room)]);
    }
}
