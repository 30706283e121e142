//! Stops containers: hook first, then the signal. The shim keeps the time, the worker only says it once.
//!
//! Order and limits follow `killContainer` in `pkg/kubelet/kuberuntime`, Kubernetes 1.36: the time of the preStop hook is part of
//! the grace period, and whatever it took, the container has two seconds for its signal. Hooks of sidecars run at once, their
//! signals wait for those who go before them, within the same time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use hotmap_runtime::Runtime;
use jiff::Timestamp;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::Instant,
};
use tracing::warn;

use super::{RETRY, Worker, min, printed};
use crate::{
    events::{Recorder, Subject},
    hooks,
    lifecycle::{GRACE_DEFAULT_SECONDS, still_waits},
    pod::{Container, Pod},
};

/// What a container has left after its preStop hook and the wait for its turn, at least (`minimumGracePeriodInSeconds`).
const GRACE_LEAST: Duration = Duration::from_secs(2);

/// Containers that are being stopped.
#[derive(Debug, Default)]
pub(super) struct Stops {
    running: BTreeMap<String, Stopping>,
    /// The runtime did not take the last one: the next is due then.
    not_before: BTreeMap<String, Timestamp>,
    tasks: JoinSet<(String, bool)>,
}

#[derive(Debug)]
struct Stopping {
    /// The grace that was given.
    given: Duration,
    orders: watch::Sender<Orders>,
    task: AbortHandle,
}

/// What a stop under way is told.
#[derive(Debug, Clone, Copy)]
struct Orders {
    /// When the grace ends; it only ever comes nearer.
    deadline: Instant,
    /// Whoever goes before this container has gone; that stays so.
    is_due: bool,
}

impl Orders {
    fn has_time(&self) -> bool {
        self.deadline > Instant::now()
    }
}

impl Stops {
    pub(super) fn is_stopping(&self, container: &str) -> bool {
        self.running.contains_key(container)
    }

    /// Returns once a stop has ended, well or not; never while there is none. Cancel safe.
    pub(super) async fn next_ended(&mut self) {
        loop {
            match self.tasks.join_next().await {
                None => std::future::pending().await,
                Some(Ok((container, stopped))) => {
                    self.running.remove(&container);
                    if !stopped {
                        self.not_before.insert(container, Timestamp::now() + RETRY);
                    }
                    return;
                }
                // The container ended before.
                Some(Err(error)) if error.is_cancelled() => {}
                // Nobody can tell whose it was; what still runs is stopped again.
                Some(Err(error)) => {
                    warn!(%error, "stopping a container broke");
                    let due = Timestamp::now() + RETRY;
                    let running = std::mem::take(&mut self.running);
                    self.not_before
                        .extend(running.into_keys().map(|container| (container, due)));
                    return;
                }
            }
        }
    }

    /// The container has ended: there is nothing left to stop, and nothing left to wait for.
    pub(super) fn ended(&mut self, container: &str) {
        if let Some(stopping) = self.running.remove(container) {
            stopping.task.abort();
        }
    }

    /// When the next try is due, if that is not now.
    fn due(&self, container: &str, now: Timestamp) -> Option<Timestamp> {
        let due = self.not_before.get(container).copied();
        due.filter(|due| still_waits(*due, now))
    }

    /// Says that it is the turn of a container that is being stopped.
    fn turn_has_come(&mut self, container: &str) {
        if let Some(stopping) = self.running.get_mut(container) {
            stopping
                .orders
                .send_if_modified(|orders| !std::mem::replace(&mut orders.is_due, true));
        }
    }

    /// Stops a container, or brings the end of its grace forward.
    fn begin(&mut self, stop: Stop, grace: Duration, is_due: bool) {
        let end = Instant::now() + grace;
        let container = stop.container.name.clone();
        if let Some(stopping) = self.running.get_mut(&container) {
            stopping.given = grace;
            stopping.orders.send_if_modified(|orders| {
                let is_nearer = end < orders.deadline;
                orders.deadline = end.min(orders.deadline);
                is_nearer
            });
            return;
        }
        let (orders, receiver) = watch::channel(Orders {
            deadline: end,
            is_due,
        });
        let task = self.tasks.spawn({
            let container = container.clone();
            async move { (container, stop.run(receiver).await) }
        });
        let stopping = Stopping {
            given: grace,
            orders,
            task,
        };
        self.running.insert(container, stopping);
    }
}

/// One container's way out.
struct Stop {
    runtime: Runtime,
    recorder: Recorder,
    pod: Arc<Pod>,
    container: Container,
    /// What is stopped: never a later start of the same container.
    attempt: Option<u32>,
    pod_ip: String,
}

impl Stop {
    /// True once it is stopped.
    async fn run(self, mut orders: watch::Receiver<Orders>) -> bool {
        let uid = &self.pod.metadata.uid;
        let name = &self.container.name;
        let has_time = orders.borrow().has_time();
        let hook = self.hook().filter(|_| has_time);
        let waits = has_time && !orders.borrow().is_due;
        let least = if hook.is_some() || waits {
            GRACE_LEAST
        } else {
            Duration::ZERO
        };
        if let Some(hook) = hook
            && let Some(Err(message)) = until(hook, &mut orders).await
        {
            // What the hook printed may be secret: the event says only that it failed.
            warn!(pod_uid = %uid, container = %name, "preStop hook failed");
            tracing::debug!(pod_uid = %uid, container = %name, %message, "preStop hook failed");
            let subject = Subject::container(&self.pod, name);
            self.recorder
                .warning(subject, "FailedPreStopHook", "PreStopHook failed");
        }
        turn(&mut orders).await;
        let signal = self
            .container
            .lifecycle
            .stop_signal
            .as_deref()
            .and_then(hooks::signal);
        loop {
            let deadline = orders.borrow_and_update().deadline;
            let grace = deadline.saturating_duration_since(Instant::now()).max(least);
            tokio::select! {
                stopped = self.runtime.stop_container(uid, name, self.attempt, signal, grace) => {
                    if let Err(error) = &stopped {
                        warn!(pod_uid = %uid, container = %name, error = %printed(error), "container not stopped");
                    }
                    return stopped.is_ok();
                }
                Ok(()) = orders.changed() => {}
            }
        }
    }

    fn hook(&self) -> Option<BoxFuture<'_, Result<(), String>>> {
        let hook = self.container.lifecycle.pre_stop.as_ref()?;
        let (pod, container) = (&self.pod, &self.container);
        Some(Box::pin(hooks::run(
            &self.runtime,
            pod,
            container,
            &self.pod_ip,
            hook,
        )))
    }
}

/// What the hook comes to, if it does before the deadline, which may move.
async fn until<T>(hook: impl Future<Output = T>, orders: &mut watch::Receiver<Orders>) -> Option<T> {
    let mut hook = std::pin::pin!(hook);
    loop {
        let end = orders.borrow_and_update().deadline;
        tokio::select! {
            outcome = &mut hook => return Some(outcome),
            () = tokio::time::sleep_until(end) => return None,
            Ok(()) = orders.changed() => {}
        }
    }
}

/// Returns once it is this container's turn, or there is no time left to wait for it.
async fn turn(orders: &mut watch::Receiver<Orders>) {
    let is_due = orders.clone();
    let come = async {
        let mut is_due = is_due;
        let _ = is_due.wait_for(|orders| orders.is_due).await;
    };
    until(come, orders).await;
}

impl Worker {
    /// Stops containers whose liveness or startup probe has given up on them.
    pub(super) fn stop_dead(&mut self, pod: &Arc<Pod>) {
        let mut dead = Vec::new();
        for container in pod.lasting_containers() {
            let findings = self.probes.findings(&container.name);
            if !findings.is_dead || self.stops.is_stopping(&container.name) {
                continue;
            }
            let (word, probe) = if findings.is_started {
                ("liveness", &container.liveness_probe)
            } else {
                ("startup", &container.startup_probe)
            };
            let own = probe
                .as_ref()
                .and_then(|probe| probe.termination_grace_period_seconds);
            let name = container.name.clone();
            let message = if pod.is_init(&name) {
                format!("Init container {name} failed {word} probe")
            } else {
                format!("Container {name} failed {word} probe, will be restarted")
            };
            dead.push((name, own.map_or_else(|| pod.grace_period(), seconds), message));
        }
        for (name, grace, message) in dead {
            self.begin_stop(pod, name, grace, true, message);
        }
    }

    /// Stops a container of a pod that is to go; a shorter grace than before is passed on.
    pub(super) fn stop(&mut self, pod: &Arc<Pod>, container: String, grace: Duration, is_due: bool) {
        if is_due {
            self.stops.turn_has_come(&container);
        }
        let stopping = self.stops.running.get(&container);
        let held = pod.metadata.deletion_grace_period_seconds;
        if stopping.is_some_and(|stopping| !is_shorter(grace, stopping.given, held)) {
            return;
        }
        // Whoever looks at the pod now sees what runs.
        self.hooks.cancel(&container);
        if let Some(record) = self.records.get_mut(&container) {
            record.is_starting = false;
        }
        let message = format!("Stopping container {container}");
        self.begin_stop(pod, container, grace, is_due, message);
    }

    pub(super) fn begin_stop(
        &mut self,
        pod: &Arc<Pod>,
        container: String,
        grace: Duration,
        is_due: bool,
        message: String,
    ) {
        if let Some(due) = self.stops.due(&container, Timestamp::now()) {
            self.retry_at = min(self.retry_at, Some(due));
            return;
        }
        let Some(spec) = pod.all_containers().find(|spec| spec.name == container) else {
            return;
        };
        if !self.stops.is_stopping(&container) {
            self.shared
                .recorder
                .normal(Subject::container(pod, &container), "Killing", message);
        }
        // It may be slow to end; nobody wants to hear again that it is not alive.
        self.probes.end_liveness(&container);
        let stop = Stop {
            runtime: self.shared.runtime.clone(),
            recorder: self.shared.recorder.clone(),
            pod: Arc::clone(pod),
            container: spec.clone(),
            attempt: self.records.get(&container).and_then(|record| record.attempt),
            pod_ip: self.pod_ip(),
        };
        self.stops.begin(stop, grace, is_due);
    }
}

impl Pod {
    /// How long a container may take to end while its pod stays, and while nobody says otherwise.
    pub(crate) fn grace_period(&self) -> Duration {
        seconds(
            self.spec
                .termination_grace_period_seconds
                .unwrap_or(GRACE_DEFAULT_SECONDS),
        )
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Whether `grace` is a new wish and not the old one a moment later: `given` counts down in the shim, and `held`, what the
/// API says in seconds, does not.
fn is_shorter(grace: Duration, given: Duration, held: Option<i64>) -> bool {
    let held = held.map(seconds);
    given > grace + Duration::from_secs(1) && held.is_some_and(|held| held < given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hook_has_the_grace_period_and_no_more() {
        let now = Instant::now();
        let far = |is_due| Orders {
            deadline: now + Duration::from_secs(3600),
            is_due,
        };
        let (sender, mut orders) = watch::channel(far(true));
        assert_eq!(until(async { 7 }, &mut orders).await, Some(7));
        // Whoever waits is told that the end has come nearer.
        let waits = until(std::future::pending::<u8>(), &mut orders);
        let nearer = async { sender.send_modify(|orders| orders.deadline = now) };
        let (outcome, ()) = tokio::join!(waits, nearer);
        assert_eq!(outcome, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sidecar_waits_for_its_turn_within_its_time() {
        let start = Instant::now();
        let given = Orders {
            deadline: start + Duration::from_secs(30),
            is_due: false,
        };
        let (_sender, mut orders) = watch::channel(given);
        turn(&mut orders).await;
        assert_eq!(start.elapsed().as_secs(), 30);

        let start = Instant::now();
        let deadline = start + Duration::from_secs(30);
        let (sender, mut orders) = watch::channel(Orders { deadline, ..given });
        let come = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            sender.send_modify(|orders| orders.is_due = true);
        };
        tokio::join!(turn(&mut orders), come);
        assert_eq!(start.elapsed().as_secs(), 5);
    }

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
            assert_eq!(
                is_shorter(seconds(grace), seconds(given), held),
                shorter,
                "{grace} {given} {held:?}"
            );
        }
    }
}
