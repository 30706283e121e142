//! The task that swaps the live mounts of one pod, one after the other.

use std::{sync::Arc, time::Instant};

use hotmap_runtime::{MountSwap, MountSwaps, Runtime, SwapError, Swapped};
use tracing::{Instrument, Span, debug, debug_span, warn};

use super::{
    LiveMount,
    desk::{Job, PodMounts, Tried, Turn},
};
use crate::{
    metrics::{Metrics, SwapOutcome},
    worker::printed,
};

/// Swaps what is handed over, for ever: whoever started the task ends it.
pub(crate) async fn follow(runtime: Runtime, pod_uid: String, mounts: Arc<PodMounts>, metrics: Metrics) {
    let mut swaps = None;
    loop {
        match mounts.next(Instant::now()) {
            Turn::Now(mount, job) => {
                let swapping = swap(&runtime, &pod_uid, &mut swaps, &mount, &job);
                let swapped = swapping.instrument(span(&pod_uid, &mount, &job)).await;
                let tried = told(&pod_uid, &mount, &job, swapped, &metrics);
                mounts.tried(&mount, &job, tried, Instant::now());
            }
            Turn::At(due) => tokio::select! {
                () = mounts.changed() => {}
                () = tokio::time::sleep_until(due.into()) => {}
            },
            Turn::Never => mounts.changed().await,
        }
    }
}

/// The span of a swap, in the trace of the volume's write if that has one.
fn span(pod_uid: &str, mount: &LiveMount, job: &Job) -> Span {
    if job.trace.is_none() {
        return Span::none();
    }
    let span = debug_span!(
        target: hotmap_trace::TARGET, parent: None, "subpath", %pod_uid, container = %mount.container,
        volume = %mount.volume, path = %mount.target.display(),
    );
    hotmap_trace::continue_from(&span, job.trace);
    span
}

/// One swap over the connection that there is; one that broke, with an earlier sandbox maybe, is made anew once.
async fn swap(
    runtime: &Runtime,
    pod_uid: &str,
    connected: &mut Option<MountSwaps>,
    mount: &LiveMount,
    job: &Job,
) -> Result<Swapped, SwapError> {
    let wanted = MountSwap {
        container: &mount.container,
        attempt: mount.attempt,
        target: &mount.target,
        source: &job.source,
        read_only: true,
    };
    if let Some(swaps) = connected {
        match swaps.swap(wanted).await {
            Err(SwapError::Shim(_)) => *connected = None,
            swapped => return swapped,
        }
    }
    let swaps = connected.insert(runtime.mount_swaps(pod_uid).await?);
    let swapped = swaps.swap(wanted).await;
    if matches!(swapped, Err(SwapError::Shim(_))) {
        *connected = None;
    }
    swapped
}

fn told(
    pod_uid: &str,
    mount: &LiveMount,
    job: &Job,
    swapped: Result<Swapped, SwapError>,
    metrics: &Metrics,
) -> Tried {
    let (container, volume, path) = (&mount.container, &mount.volume, mount.target.display());
    let elapsed = job.since.elapsed();
    match swapped {
        Ok(swapped) => {
            let outcome = match swapped {
                Swapped::Unchanged => SwapOutcome::Unchanged,
                Swapped::Changed { .. } => SwapOutcome::Swapped(elapsed),
            };
            metrics.swapped(outcome);
            debug!(%pod_uid, %container, %volume, %path, ?swapped, ?elapsed, "subPath mount is up to date");
            Tried::Shown
        }
        Err(SwapError::NotRunning) => Tried::Ended,
        Err(error @ (SwapError::Unavailable(_) | SwapError::OldShim)) => {
            metrics.swapped(SwapOutcome::Unavailable);
            warn!(%pod_uid, %container, %volume, %path, %error, "subPath mount cannot follow its volume");
            Tried::Unavailable(error.to_string())
        }
        Err(error @ (SwapError::Failed(_) | SwapError::Shim(_))) => {
            metrics.swapped(SwapOutcome::Failed);
            let error = printed(&error);
            warn!(%pod_uid, %container, %volume, %path, %error, "subPath mount is behind its volume, the last content stays");
            Tried::Failed(error)
        }
    }
}
