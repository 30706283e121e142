//! The end of a pod on this node: what it leaves when it is finished, and when it is deleted.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use hotmap_client::DeleteParams;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::{Shared, Wanted, Worker, log_directory, object_path, printed};
use crate::{pod::Pod, volumes::PlacementError};

impl Worker {
    /// Removes what a finished pod no longer needs: volumes, sandbox, ids, watches. Status and logs stay. True once it is gone.
    pub(super) async fn retire(&mut self, pod: &Arc<Pod>) -> bool {
        self.forget_sources();
        // Kills what may still run, so that nobody uses the volumes.
        if !self.stop_sandbox(pod).await || !self.clear_volumes().await {
            return false;
        }
        if let Err(error) = self.shared.runtime.remove_pod(&self.uid).await {
            self.cannot_kill(pod, &printed(&error));
            return false;
        }
        info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, "finished pod cleared away");
        true
    }

    /// Removes everything of the pod from this node, then the object itself. True once nobody has to hear of it any more.
    pub(super) async fn take_down(&mut self, pod: &Arc<Pod>, wanted: &Wanted) -> bool {
        if let Err(error) = self.shared.runtime.remove_sandbox(&self.uid).await {
            self.cannot_kill(pod, &printed(&error));
            return false;
        }
        self.forget_sources();
        if !self.clear_volumes().await {
            return false;
        }
        // Last: whoever has these ids next must not find anything of this pod's.
        if let Err(error) = self.shared.runtime.remove_pod(&self.uid).await {
            self.cannot_kill(pod, &printed(&error));
            return false;
        }
        if let Wanted::Here { .. } = wanted {
            let mut changes = self.wanted.clone();
            tokio::select! {
                () = self.status.settle() => {}
                // It may be gone by now, and then nobody takes its status any more.
                _ = changes.changed() => {
                    self.nudge.wake();
                    return false;
                }
            }
            if !self.delete_object(pod).await {
                return false;
            }
        }
        remove_logs(log_directory(&self.shared.log_root, pod)).await;
        self.is_taken_down = true;
        // Finalizers may keep the object, and the watch may be behind: nobody starts over with it before it is gone.
        matches!(wanted, Wanted::Gone(_))
    }

    /// Follows no object for the pod any more, renews no token, and reports nothing.
    fn forget_sources(&self) {
        self.shared.objects.set_references(&self.uid, &BTreeSet::new());
        self.shared.tokens.set_wanted(&self.uid, BTreeSet::new());
        self.shared.reports.note(|ledger, _| ledger.gone(&self.uid));
        self.shared.sockets.close(&self.uid);
    }

    pub(super) async fn clear_volumes(&mut self) -> bool {
        let removed = remove_volumes(&self.shared, &self.uid).await;
        // Volumes made anew count from the beginning.
        self.told_failures.clear();
        self.told_shadowed.clear();
        if let Err(error) = &removed {
            warn!(pod_uid = %self.uid, %error, "volumes of a pod that has ended are still there");
            self.retry_later();
        }
        removed.is_ok()
    }

    async fn delete_object(&mut self, pod: &Arc<Pod>) -> bool {
        let params = DeleteParams {
            grace_period: Some(Duration::ZERO),
            uid: self.uid.clone(),
            ..DeleteParams::default()
        };
        match self.shared.client.delete(&object_path(pod), &params).await {
            Ok(_) => true,
            Err(error) if error.is_not_found() || error.is_conflict() => true,
            Err(error) => {
                warn!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %error, "pod not deleted from the API");
                self.retry_later();
                false
            }
        }
    }
}

/// Takes the volumes of a pod away: first from the writers, then from the disk.
pub(crate) async fn remove_volumes(shared: &Arc<Shared>, pod_uid: &str) -> Result<(), PlacementError> {
    let (shared, uid) = (Arc::clone(shared), pod_uid.to_owned());
    let removed = spawn_blocking(move || {
        shared.volumes.forget(&uid);
        shared.placement.remove(&uid)
    });
    removed.await.expect("removing volumes does not panic")
}

/// Removes the logs of a deleted pod.
pub(crate) async fn remove_logs(directory: PathBuf) {
    let removed = spawn_blocking({
        let directory = directory.clone();
        move || std::fs::remove_dir_all(directory)
    });
    if let Err(error) = removed.await.expect("removing logs does not panic")
        && error.kind() != std::io::ErrorKind::NotFound
    {
        warn!(path = %directory.display(), %error, "logs of a deleted pod are still there");
    }
}
