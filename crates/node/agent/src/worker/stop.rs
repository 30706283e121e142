//! Stops containers: the shim keeps the time, the worker only says it once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use hotmap_runtime::Runtime;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tracing::warn;

use super::{RETRY, Worker, min, printed};
use crate::{events::Subject, pod::Pod};

/// Containers that are being stopped.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// The grace that each was given.
    given: BTreeMap<String, Duration>,
    /// The runtime did not take the last one: the next is due then.
    not_before: BTreeMap<String, Timestamp>,
    tasks: JoinSet<(String, bool)>,
}

impl Stops {
    pub(super) fn is_stopping(&self, container: &str) -> bool {
        self.given.contains_key(container)
    }

    /// Returns once a stop has ended, well or not; never while there is none. Cancel safe.
    pub(super) async fn next_ended(&mut self) {
        match self.tasks.join_next().await {
            None => std::future::pending().await,
            Some(Ok((container, stopped))) => {
                self.given.remove(&container);
                if !stopped {
                    self.not_before.insert(container, Timestamp::now() + RETRY);
                }
            }
            // Nobody can tell whose it was; what still runs is stopped again.
            Some(Err(error)) => {
                warn!(%error, "stopping a container broke");
                let due = Timestamp::now() + RETRY;
                let given = std::mem::take(&mut self.given);
                self.not_before
                    .extend(given.into_keys().map(|container| (container, due)));
            }
        }
    }

    /// When the next try is due, if that is not now.
    fn due(&self, container: &str, now: Timestamp) -> Option<Timestamp> {
        self.not_before.get(container).copied().filter(|due| *due > now)
    }

    fn begin(&mut self, runtime: Runtime, pod_uid: String, container: String, grace: Duration) {
        self.given.insert(container.clone(), grace);
        self.tasks.spawn(async move {
            let stopped = runtime.stop_container(&pod_uid, &container, None, grace).await;
            if let Err(error) = &stopped {
                warn!(%pod_uid, %container, error = %printed(error), "container not stopped");
            }
            (container, stopped.is_ok())
        });
    }
}

impl Worker {
    /// Stops containers whose liveness probe has given up on them.
    pub(super) fn stop_dead(&mut self, pod: &Arc<Pod>) {
        let names = pod.spec.containers.iter().map(|container| container.name.clone());
        let dead: Vec<String> = names
            .filter(|name| self.probes.findings(name).is_dead && !self.stops.is_stopping(name))
            .collect();
        let seconds = pod.spec.termination_grace_period_seconds.unwrap_or(30);
        let grace = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        for name in dead {
            let message = format!("Container {name} failed liveness probe, will be restarted");
            self.begin_stop(pod, name, grace, message);
        }
    }

    /// Stops a container of a pod that is to go; a shorter grace than before is passed on.
    pub(super) fn stop(&mut self, pod: &Arc<Pod>, container: String, grace: Duration) {
        let given = self.stops.given.get(&container);
        let held = pod.metadata.deletion_grace_period_seconds;
        if given.is_some_and(|given| !is_shorter(grace, *given, held)) {
            return;
        }
        let message = format!("Stopping container {container}");
        self.begin_stop(pod, container, grace, message);
    }

    fn begin_stop(&mut self, pod: &Arc<Pod>, container: String, grace: Duration, message: String) {
        if let Some(due) = self.stops.due(&container, Timestamp::now()) {
            self.retry_at = min(self.retry_at, Some(due));
            return;
        }
        if !self.stops.is_stopping(&container) {
            self.shared
                .recorder
                .normal(Subject::container(pod, &container), "Killing", message);
        }
        // It may be slow to end; nobody wants to hear again that it is not alive.
        self.probes.end_liveness(&container);
        let (runtime, uid) = (self.shared.runtime.clone(), self.uid.clone());
        self.stops.begin(runtime, uid, container, grace);
    }
}

/// Whether `grace` is a new wish and not the old one a moment later: `given` counts down in the shim, and `held`, what the
/// API says in seconds, does not.
fn is_shorter(grace: Duration, given: Duration, held: Option<i64>) -> bool {
    let held = held.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
    given > grace + Duration::from_secs(1) && held.is_some_and(|held| held < given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shorter_wish_is_passed_on() {
        for (grace, given, held, shorter) in [
            (30, 30, Some(30), false),
            // The same wish, ten seconds later.
            (20, 30, Some(30), false),
            (20, 30, None, false),
            (5, 30, Some(5), true),
            (0, 30, Some(0), true),
            (60, 30, Some(60), false),
            (0, 1, Some(-1), false),
        ] {
            let seconds = Duration::from_secs;
            assert_eq!(
                is_shorter(seconds(grace), seconds(given), held),
                shorter,
                "{grace} {given} {held:?}"
            );
        }
    }
}
