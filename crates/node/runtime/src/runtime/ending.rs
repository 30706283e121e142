//! Asks the containers of an instance to end, with nobody but their shims there.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::JoinSet;
use tracing::warn;

use super::{Connection, state_dir};
use crate::protocol::{Call, Reply};
use crate::status::ContainerState;

/// How long a shim may take to say that a container which it has killed is gone.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Sends SIGTERM to every container that runs, all at once, SIGKILL after `grace`, and returns when none is left or nobody answers.
/// What cannot be asked is left to whoever kills.
pub(crate) async fn end_all(state_dir: PathBuf, grace: Duration) {
    let mut stops = JoinSet::new();
    for (pod_uid, pod) in state_dir::read_pods(&state_dir).unwrap_or_default() {
        let containers = pod.state.into_iter().flat_map(|state| state.containers);
        for container in containers.filter(|one| matches!(one.state, ContainerState::Running { .. })) {
            let (directory, pod_uid, name) = (state_dir.join(&pod_uid), pod_uid.clone(), container.name);
            let call = Call::Stop {
                name: name.clone(),
                attempt: Some(container.attempt),
                signal: libc::SIGTERM,
                grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
            };
            stops.spawn(async move {
                let stop = async { Connection::open(&directory).await?.call(call, &[]).await };
                match tokio::time::timeout(grace.saturating_add(KILL_PATIENCE), stop).await {
                    Ok(Ok(Reply::Done)) => {}
                    Ok(Ok(reply)) => warn!(uid = pod_uid, container = name, ?reply, "container not stopped"),
                    Ok(Err(error)) => warn!(uid = pod_uid, container = name, %error, "container not stopped"),
                    Err(_) => warn!(uid = pod_uid, container = name, "container not stopped in time"),
                }
            });
        }
    }
    stops.join_all().await;
}
