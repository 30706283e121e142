//! What lies here of pods that the API does not know: they were deleted while nobody attended to them.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc, time::Duration};

use hotmap_runtime::SandboxError;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use crate::{
    pod::Pod,
    worker::{Shared, log_directory, printed, remove_logs, remove_volumes},
};

/// Pause before what could not be removed is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// One of them.
pub(super) struct Stranger {
    pod_uid: String,
    logs: Option<PathBuf>,
}

impl Stranger {
    pub(super) fn of_pod(shared: &Shared, pod: &Pod) -> Self {
        Self {
            pod_uid: pod.metadata.uid.clone(),
            logs: Some(log_directory(&shared.log_root, pod)),
        }
    }

    /// Takes down what runs of it, then what lies here, for as long as it takes.
    pub(super) async fn remove(self, shared: Arc<Shared>) {
        info!(pod_uid = %self.pod_uid, "pod is gone from the API, taking down what is left of it");
        while let Err(error) = self.try_remove(&shared).await {
            warn!(pod_uid = %self.pod_uid, %error, "what is left of a deleted pod cannot be removed yet");
            tokio::time::sleep(RETRY).await;
        }
        if let Some(logs) = self.logs {
            remove_logs(logs).await;
        }
    }

    async fn try_remove(&self, shared: &Arc<Shared>) -> Result<(), String> {
        // A directory that somebody else put there is no pod's, and not ours to remove.
        let removed = |outcome: Result<(), SandboxError>| match outcome {
            Ok(()) | Err(SandboxError::Invalid(_)) => Ok(()),
            Err(error) => Err(printed(&error)),
        };
        removed(shared.runtime.remove_sandbox(&self.pod_uid).await)?;
        remove_volumes(shared, &self.pod_uid)
            .await
            .map_err(|error| printed(&error))?;
        // Last: whoever has these ids next must not find anything of this pod's.
        removed(shared.runtime.remove_pod(&self.pod_uid).await)
    }
}

/// Everybody of whom something runs or lies here and who is not `known`, by uid.
pub(super) async fn find(shared: &Arc<Shared>, known: &[&str]) -> Vec<Stranger> {
    let mut found: BTreeMap<String, Option<PathBuf>> = BTreeMap::new();
    found.extend(shared.runtime.pods().into_iter().map(|uid| (uid, None)));
    let of_disk = Arc::clone(shared);
    let listed = spawn_blocking(move || {
        let volumes = of_disk.placement.pods().unwrap_or_default();
        let logs = fs::read_dir(&of_disk.log_root).into_iter().flatten().flatten();
        let logs: Vec<PathBuf> = logs.map(|entry| entry.path()).collect();
        (volumes, logs)
    });
    let (volumes, logs) = listed.await.expect("listing what lies here does not panic");
    found.extend(volumes.into_iter().map(|uid| (uid, None)));
    for directory in logs {
        if let Some(uid) = uid_of_logs(&directory) {
            found.insert(uid, Some(directory));
        }
    }
    found.retain(|uid, _| !known.contains(&uid.as_str()));
    let strangers = found
        .into_iter()
        .map(|(pod_uid, logs)| Stranger { pod_uid, logs });
    strangers.collect()
}

/// `<namespace>_<pod>_<uid>`: none of the three holds an underscore.
fn uid_of_logs(directory: &std::path::Path) -> Option<String> {
    let mut parts = directory.file_name()?.to_str()?.split('_');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(_), Some(uid), None) if !uid.is_empty() => Some(uid.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn logs_name_their_pod() {
        for (path, uid) in [
            ("/l/default_web-1_0a-1b", Some("0a-1b")),
            ("/l/default_web", None),
            ("/l/default_web_", None),
            ("/l/a_b_c_d", None),
        ] {
            assert_eq!(uid_of_logs(Path::new(path)).as_deref(), uid, "{path}");
        }
    }
}
