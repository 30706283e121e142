//! The postStart hooks of a pod: each runs beside its container, which is not there for others before it has ended.

use std::{collections::BTreeMap, sync::Arc};

use tokio::task::{AbortHandle, JoinSet};
use tracing::{info, warn};

use super::Worker;
use crate::{
    events::Subject,
    hooks,
    pod::{Container, Hook, Pod},
};

/// Hooks under way, and those whose end nobody has looked at yet.
#[derive(Debug, Default)]
pub(super) struct PostStarts {
    running: BTreeMap<String, AbortHandle>,
    tasks: JoinSet<Ended>,
    ended: Vec<Ended>,
}

#[derive(Debug)]
struct Ended {
    container: String,
    attempt: u32,
    outcome: Result<(), String>,
}

impl PostStarts {
    /// Returns once a hook has ended, well or not; never while there is none. Cancel safe.
    pub(super) async fn next_ended(&mut self) {
        loop {
            match self.tasks.join_next().await {
                None => return std::future::pending().await,
                Some(Ok(ended)) => {
                    self.running.remove(&ended.container);
                    return self.ended.push(ended);
                }
                // Its container is gone.
                Some(Err(error)) if error.is_cancelled() => {}
                Some(Err(error)) => warn!(%error, "a postStart hook broke"),
            }
        }
    }

    /// Asks no more how the hook of a container ends.
    pub(super) fn cancel(&mut self, container: &str) {
        if let Some(task) = self.running.remove(container) {
            task.abort();
        }
    }
}

impl Worker {
    /// Runs the hook of a container that was started right now.
    pub(super) fn begin_post_start(
        &mut self,
        pod: &Arc<Pod>,
        container: &Container,
        attempt: u32,
        hook: Hook,
    ) {
        let (runtime, pod, pod_ip) = (self.shared.runtime.clone(), Arc::clone(pod), self.pod_ip());
        let name = container.name.clone();
        let container = container.clone();
        let task = self.hooks.tasks.spawn(async move {
            let outcome = hooks::run(&runtime, &pod, &container, &pod_ip, &hook).await;
            Ended {
                container: container.name,
                attempt,
                outcome,
            }
        });
        self.hooks.running.insert(name, task);
    }

    /// Lets containers whose hook succeeded be seen, and stops those whose hook failed.
    pub(super) fn conclude_hooks(&mut self, pod: &Arc<Pod>) {
        for ended in std::mem::take(&mut self.hooks.ended) {
            let Ended {
                container,
                attempt,
                outcome,
            } = ended;
            let Some(record) = self.records.get_mut(&container) else {
                continue;
            };
            if record.attempt != Some(attempt) || !record.is_starting {
                continue;
            }
            match outcome {
                Ok(()) => {
                    record.is_starting = false;
                    info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %container, attempt, "postStart hook done");
                }
                Err(message) => {
                    info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %container, attempt, "postStart hook failed");
                    record.hook_failure = Some(message);
                    // What the hook printed may be secret: the event says only that it failed.
                    let subject = Subject::container(pod, &container);
                    self.shared
                        .recorder
                        .warning(subject, "FailedPostStartHook", "PostStartHook failed");
                    let grace = pod.grace_period();
                    self.begin_stop(pod, container, grace, true, "FailedPostStartHook".to_owned());
                }
            }
        }
    }
}
