//! What a running container was started with.

use std::io;

use super::{REPLY_PATIENCE, Runtime};
use crate::error::CompareError;
use crate::protocol::{Call, Refusal, Reply};

impl Runtime {
    /// The names of the variables that this attempt of a container would have otherwise, or not at all, if it were started
    /// with `env` (as [`ContainerConfig::env`](crate::ContainerConfig::env)); sorted. Works after a restart of the caller, too:
    /// the shim remembers, and tells no values.
    ///
    /// # Errors
    /// [`CompareError`].
    pub async fn environment_differs(
        &self,
        pod_uid: &str,
        name: &str,
        attempt: u32,
        env: Vec<(String, String)>,
    ) -> Result<Vec<String>, CompareError> {
        if !self.is_attached(pod_uid) {
            return Err(CompareError::NotRunning);
        }
        let call = Call::CompareEnv {
            name: name.to_owned(),
            attempt,
            env,
        };
        let reply = self.call(pod_uid, call, Some(REPLY_PATIENCE)).await;
        match reply.map_err(CompareError::Shim)? {
            Reply::EnvDiffers { names } => Ok(names),
            Reply::Refused { refusal } => Err(match refusal {
                Refusal::NotRunning | Refusal::Stopped => CompareError::NotRunning,
                Refusal::Unsupported => CompareError::OldShim,
                refusal => CompareError::Failed(format!("refused: {refusal:?}")),
            }),
            _ => Err(CompareError::Shim(io::ErrorKind::InvalidData.into())),
        }
    }
}
