//! A worker for each pod of the node, and another one when it breaks.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
};
use tracing::error;

use crate::{
    nudge::Nudge,
    worker::{Shared, Wanted, Worker},
};

/// First and longest pause before the successor of a worker that broke.
const SUCCESSOR_MIN: Duration = Duration::from_secs(1);
const SUCCESSOR_MAX: Duration = Duration::from_secs(300);

/// Wakes the worker of a pod by its uid.
#[derive(Default)]
pub(super) struct Nudges(Mutex<BTreeMap<String, Arc<Nudge>>>);

impl Nudges {
    pub(super) fn nudge(&self, pod_uid: &str) {
        if let Some(nudge) = self.0.lock().get(pod_uid) {
            nudge.wake();
        }
    }

    pub(super) fn object_changed(&self, pod_uids: &[String]) {
        let nudges = self.0.lock();
        let concerned = pod_uids.iter().filter_map(|pod_uid| nudges.get(pod_uid));
        concerned.for_each(|nudge| nudge.wake_for_object());
    }

    pub(super) fn all(&self) {
        self.0.lock().values().for_each(|nudge| nudge.wake());
    }
}

/// The workers, and what else runs until it is done.
#[derive(Default)]
pub(super) struct Workers {
    by_pod: BTreeMap<String, Running>,
    pub(super) tasks: JoinSet<()>,
}

struct Running {
    wanted: watch::Sender<Wanted>,
    nudge: Arc<Nudge>,
    task: Id,
    /// How many workers of this pod broke.
    broken: u32,
}

impl Workers {
    pub(super) fn attends(&self, pod_uid: &str) -> bool {
        self.by_pod.contains_key(pod_uid)
    }

    /// How many pods have a worker.
    pub(super) fn attended(&self) -> usize {
        self.by_pod.len()
    }

    /// Tells the pod's worker what the API wants, or makes one.
    pub(super) fn pod_is_wanted(&mut self, shared: &Arc<Shared>, nudges: &Nudges, wanted: Wanted) {
        let uid = wanted.pod().metadata.uid.clone();
        if let Some(running) = self.by_pod.get(&uid) {
            running.wanted.send_replace(wanted);
            return;
        }
        let (sender, receiver) = watch::channel(wanted);
        let nudge = Arc::<Nudge>::default();
        nudges.0.lock().insert(uid.clone(), Arc::clone(&nudge));
        let attended = attend(Arc::clone(shared), receiver, Arc::clone(&nudge), Duration::ZERO);
        let running = Running {
            wanted: sender,
            nudge,
            task: self.tasks.spawn(attended).id(),
            broken: 0,
        };
        self.by_pod.insert(uid, running);
    }

    /// Tells the pod's worker that the API has the pod no more; false if there is no worker.
    pub(super) fn pod_is_gone(&self, pod_uid: &str) -> bool {
        let running = self.by_pod.get(pod_uid);
        if let Some(running) = running {
            let last = running.wanted.borrow().pod();
            running.wanted.send_replace(Wanted::Gone(last));
        }
        running.is_some()
    }

    /// Runs something that ends by itself; nobody waits for it.
    pub(super) fn run_beside(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Takes note of a task that ended; the uid of the pod, if it was the pod's worker and its work is done.
    pub(super) fn ended(
        &mut self,
        shared: &Arc<Shared>,
        nudges: &Nudges,
        ended: Result<(Id, ()), JoinError>,
    ) -> Option<String> {
        let task = match &ended {
            Ok((task, ())) => *task,
            Err(error) => error.id(),
        };
        let uid = self
            .by_pod
            .iter()
            .find(|(_, running)| running.task == task)?
            .0
            .clone();
        match ended {
            Ok(_) => {
                self.by_pod.remove(&uid);
                nudges.0.lock().remove(&uid);
                Some(uid)
            }
            Err(error) => {
                let running = self.by_pod.get_mut(&uid)?;
                let pause = successor_pause(running.broken);
                error!(pod_uid = %uid, %error, ?pause, "the worker of a pod broke, another one follows");
                running.broken = running.broken.saturating_add(1);
                let (receiver, nudge) = (running.wanted.subscribe(), Arc::clone(&running.nudge));
                let attended = attend(Arc::clone(shared), receiver, nudge, pause);
                running.task = self.tasks.spawn(attended).id();
                None
            }
        }
    }
}

/// The worker is made inside its task: whatever is wrong with a pod breaks that task and nothing else.
async fn attend(shared: Arc<Shared>, wanted: watch::Receiver<Wanted>, nudge: Arc<Nudge>, pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    Worker::new(shared, wanted, nudge).run().await;
}

fn successor_pause(broken: u32) -> Duration {
    SUCCESSOR_MIN
        .saturating_mul(1 << broken.min(16))
        .min(SUCCESSOR_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successors_come_ever_later() {
        let pauses = [0, 1, 2, 8, 9, 1_000].map(|broken| successor_pause(broken).as_secs());
        assert_eq!(pauses, [1, 2, 4, 256, 300, 300]);
    }
}
