//! Runs all controllers as one.

use std::{any::Any, future::Future, sync::Arc, time::Duration};

use hotmap_client::{Backoff, Client};
use hotmap_clock::ClockJumps;
use tokio::task::{JoinError, JoinSet};

use crate::{
    binding, bootstrap_tokens, certificates,
    certificates::Signer,
    context::{Context, SystemClock},
    cron_job, daemon_set, deployment, disruption,
    events::Events,
    finished_ttl, garbage,
    informers::{Collections, Informers},
    job, namespace_defaults, namespace_lifecycle, node_lifecycle, pod_garbage, replica_set, stateful_set,
    taint_eviction,
};

/// First and longest pause between two attempts at the same thing.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// A controller is gone, and the cluster no longer follows its objects.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// It panicked: a bug of ours.
    #[error("a controller panicked: {0}")]
    Panicked(String),
    /// It ended without being asked to.
    #[error("a controller ended")]
    Ended,
}

/// Runs the controllers until `shutdown` ends; then they stop where they are, which is safe at every point.
///
/// They write through `client` and follow what they look at through `collections`: the client itself, or the server in
/// this process. `root_ca` is what clients inside the cluster shall trust, PEM; `signer` signs for it; `clock_jumps` are those of this machine. The client
/// needs the rights that the server lists for controllers. A failed request is retried with back-off, for ever.
///
/// # Errors
/// [`ControllerError`] if a controller itself breaks. None of them ends on its own account.
pub async fn run(
    client: Client,
    collections: impl Collections,
    root_ca: &str,
    signer: Arc<dyn Signer>,
    clock_jumps: ClockJumps,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let mut tasks = JoinSet::new();
    let (events, event_writer) = Events::new(client.clone());
    let context = Context {
        client,
        informers: Arc::new(Informers::default()),
        events,
        clock: Arc::new(SystemClock),
        clock_jumps,
    };
    tasks.spawn(event_writer.run());
    tasks.spawn(namespace_lifecycle::run(context.clone(), collections.clone()));
    namespace_defaults::start(&context, &collections, root_ca, &mut tasks);
    binding::start(&context, &mut tasks);
    bootstrap_tokens::start(&context, &mut tasks);
    certificates::start(&context, signer, &mut tasks);
    cron_job::start(&context, &mut tasks);
    finished_ttl::start(&context, &mut tasks);
    garbage::start(&context, &collections, &mut tasks);
    node_lifecycle::start(&context, &mut tasks);
    taint_eviction::start(&context, &mut tasks);
    pod_garbage::start(&context, &mut tasks);
    deployment::start(&context, &mut tasks);
    disruption::start(&context, &mut tasks);
    replica_set::start(&context, &mut tasks);
    job::start(&context, &mut tasks);
    daemon_set::start(&context, &mut tasks);
    stateful_set::start(&context, &mut tasks);
    // Last: by now every controller has said what it wants to follow.
    context.informers.start(&collections, &mut tasks);
    tokio::select! {
        () = shutdown => Ok(()),
        ended = tasks.join_next() => Err(match ended {
            Some(Err(error)) => ControllerError::Panicked(panic_text(error)),
            Some(Ok(())) | None => ControllerError::Ended,
        }),
    }
}

/// The pauses between attempts at one thing.
pub(crate) fn retries() -> Backoff {
    Backoff::seeded(RETRY_MIN, RETRY_MAX)
}

/// What a panicked task said.
pub(crate) fn panic_text(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => payload_text(&*payload),
        Err(_) => "cancelled".to_owned(),
    }
}

fn payload_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
