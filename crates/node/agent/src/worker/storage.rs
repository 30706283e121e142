//! Measures what a pod takes of the host's disk, and ends one that takes too much.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep},
};
use tracing::{info, warn};

use super::{Shared, Worker, log_directory};
use crate::{
    events::Subject,
    pod::Pod,
    status::Failure,
    storage::{Part, StorageLimits, disk_usage},
    termination_message,
};

/// The reason of the pod's status and of the event (`pkg/kubelet/eviction`, Kubernetes 1.36).
const REASON: &str = "Evicted";
/// What the containers of an evicted pod have left (`immediateEvictionGracePeriodSeconds`).
const GRACE: Duration = Duration::from_secs(1);

/// A pod is measured this long after it was, at the latest; a kubelet looks as often, at sizes up to a minute old. Soon after the
/// start of a pod it is measured more often.
const PAUSE_MAX: Duration = Duration::from_secs(10);
const PAUSE_FIRST: Duration = Duration::from_millis(500);
/// A large tree takes a while: no more than a twentieth of the time goes into measuring it.
const PAUSE_PER_WALK: u32 = 20;

/// The measuring of one pod.
#[derive(Debug, Default)]
pub(super) struct StorageWatch {
    task: JoinSet<String>,
}

impl StorageWatch {
    /// Why the pod has to go; never while it need not. Cancel safe.
    pub(super) async fn exceeded(&mut self) -> String {
        loop {
            match self.task.join_next().await {
                Some(Ok(message)) => return message,
                Some(Err(error)) if error.is_cancelled() => {}
                Some(Err(error)) => warn!(%error, "measuring the storage of a pod broke"),
                None => std::future::pending().await,
            }
        }
    }
}

impl Worker {
    /// Measures the pod for as long as it has a sandbox, if anything of it is limited.
    pub(super) fn watch_storage(&mut self, pod: &Arc<Pod>, has_sandbox: bool) {
        if !has_sandbox || pod.is_deleting() || self.failure.is_some() {
            self.storage.task.abort_all();
            return;
        }
        if !self.storage.task.is_empty() {
            return;
        }
        if let Some(limits) = StorageLimits::of(pod) {
            let (shared, pod) = (Arc::clone(&self.shared), Arc::clone(pod));
            self.storage
                .task
                .spawn(measure_until_exceeded(shared, pod, limits));
        }
    }

    pub(super) fn evict(&mut self, message: String) {
        let pod = self.wanted.borrow().pod();
        if self.failure.is_some() || pod.is_deleting() {
            return;
        }
        info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %message, "pod evicted");
        self.shared
            .recorder
            .warning(Subject::pod(&pod), REASON, message.clone());
        self.failure = Some(Failure {
            reason: REASON.into(),
            message: message.into(),
            grace: Some(GRACE),
        });
    }
}

async fn measure_until_exceeded(shared: Arc<Shared>, pod: Arc<Pod>, limits: StorageLimits) -> String {
    let limits = Arc::new(limits);
    let mut pause = PAUSE_FIRST;
    loop {
        sleep(pause).await;
        let turn = shared.measuring.acquire().await;
        let begun = Instant::now();
        let measured = spawn_blocking({
            let (shared, pod, limits) = (Arc::clone(&shared), Arc::clone(&pod), Arc::clone(&limits));
            move || limits.exceeded(&pod, |part| measure(&shared, &pod, part))
        });
        let exceeded = measured.await.expect("measuring does not panic");
        drop(turn);
        if let Some(message) = exceeded {
            return message;
        }
        pause = next_pause(pause, begun.elapsed());
    }
}

fn next_pause(last: Duration, took: Duration) -> Duration {
    (last * 2).min(PAUSE_MAX).max(took * PAUSE_PER_WALK)
}

/// Blocks. What cannot be measured counts as nothing, and is told of.
fn measure(shared: &Shared, pod: &Pod, part: Part<'_>) -> u64 {
    let uid = &pod.metadata.uid;
    let told = |message: String| {
        let subject = Subject::pod(pod);
        shared.recorder.warning(subject, "StorageNotMeasured", message);
    };
    let (places, of_message) = match part {
        Part::Volume(name) => (vec![shared.placement.empty_dir_on_disk(uid, name)], 0),
        Part::Container(name) => {
            let logs = log_directory(&shared.log_root, pod).join(name);
            let sandbox = shared.runtime.sandbox(uid);
            let attempt = sandbox.and_then(|sandbox| Some(sandbox.container(name)?.attempt));
            let layer = attempt.map(|attempt| shared.runtime.layer(uid, name, attempt));
            let messages = shared.placement.messages(uid);
            let of_message = termination_message::disk_usage(&messages, name).unwrap_or_else(|error| {
                told(format!("cannot measure {}: {error}", messages.display()));
                0
            });
            (layer.into_iter().chain([logs]).collect(), of_message)
        }
    };
    let of_place = |place: std::path::PathBuf| match disk_usage(&place) {
        Ok(usage) if usage.is_complete => usage.bytes,
        Ok(usage) => {
            told(format!(
                "{} is not measured to its end: it has too many directories that are too deep",
                place.display()
            ));
            usage.bytes
        }
        Err(error) => {
            told(format!("cannot measure {}: {error}", place.display()));
            0
        }
    };
    places.into_iter().map(of_place).sum::<u64>() + of_message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_measured_often_at_first_and_rarely_if_it_takes_long() {
        let (mut pause, mut seen) = (PAUSE_FIRST, Vec::new());
        for _ in 0..6 {
            pause = next_pause(pause, Duration::from_millis(1));
            seen.push(pause.as_secs());
        }
        assert_eq!(seen, [1, 2, 4, 8, 10, 10]);
        assert_eq!(next_pause(PAUSE_MAX, Duration::from_secs(3)).as_secs(), 60);
    }
}
