//! Makes the pod's sandbox and stops it, and waits longer each time one does not last.

use std::sync::Arc;

use hotmap_runtime::SandboxConfig;
use jiff::Timestamp;
use tracing::info;

use super::{RETRY, Worker, printed};
use crate::{backoff::BackOff, events::Subject, pod::Pod, pod_files, resources};

/// The sandboxes of one pod so far.
#[derive(Debug, Default)]
pub(super) struct SandboxTries {
    back_off: BackOff,
    /// When the sandbox that stands was made, or seen first.
    stands_since: Option<Timestamp>,
    not_before: Option<Timestamp>,
}

impl SandboxTries {
    /// When the next sandbox is due, now that there is one or none. One that vanishes counts like a container that ends.
    pub(super) fn not_before(&mut self, stands: bool, now: Timestamp) -> Option<Timestamp> {
        if stands {
            self.stands_since.get_or_insert(now);
            self.not_before = None;
        } else if let Some(since) = self.stands_since.take() {
            let stood = now.duration_since(since).try_into().unwrap_or_default();
            self.not_before = Some(now + self.back_off.after_exit(stood));
        }
        self.not_before
    }

    /// One was made; that it may be gone at the next look must not go unnoticed.
    fn made(&mut self, now: Timestamp) {
        self.stands_since = Some(now);
    }

    fn failed(&mut self, now: Timestamp) {
        self.not_before = Some(now + RETRY);
    }
}

impl Worker {
    pub(super) async fn make_sandbox(&mut self, pod: &Arc<Pod>) -> bool {
        // One that is not ready any more is in the way of its successor.
        let cleared = match self.shared.runtime.sandbox(&self.uid) {
            Some(_) => self.shared.runtime.remove_sandbox(&self.uid).await,
            None => Ok(()),
        };
        let made = match (cleared, pod_files::kernel_name(pod)) {
            (Ok(()), Ok(hostname)) => {
                let config = SandboxConfig {
                    pod_uid: self.uid.clone(),
                    namespace: pod.metadata.namespace.clone(),
                    name: pod.metadata.name.clone(),
                    hostname,
                    share_process_namespace: pod.spec.share_process_namespace,
                    host_network: pod.spec.host_network,
                    resources: resources::of_pod(pod, self.shared.pod_max_pids),
                };
                let made = self.shared.runtime.run_sandbox(config).await;
                made.map_err(|error| printed(&error))
            }
            (Err(error), _) => Err(printed(&error)),
            (_, Err(message)) => Err(message),
        };
        match made {
            Ok(sandbox) => {
                let ip = self.standing(Some(&sandbox)).ip;
                info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %ip, "sandbox made");
                self.sandboxes.made(Timestamp::now());
                self.records
                    .values_mut()
                    .for_each(|record| record.in_sandbox = false);
                true
            }
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {error}");
                self.shared
                    .recorder
                    .warning(Subject::pod(pod), "FailedCreatePodSandBox", message);
                self.sandboxes.failed(Timestamp::now());
                self.retry_later();
                false
            }
        }
    }

    pub(super) async fn stop_sandbox(&mut self, pod: &Arc<Pod>) -> bool {
        match self.shared.runtime.stop_sandbox(&self.uid).await {
            Ok(()) => true,
            Err(error) => {
                self.cannot_kill(pod, &printed(&error));
                false
            }
        }
    }

    pub(super) fn cannot_kill(&mut self, pod: &Pod, error: &str) {
        let message = format!("error killing pod: {error}");
        self.shared
            .recorder
            .warning(Subject::pod(pod), "FailedKillPod", message);
        self.retry_later();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandboxes_that_do_not_last_come_ever_later() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let mut tries = SandboxTries::default();
        for (stands, now, due) in [
            (false, 0, None),
            (true, 1, None),
            (true, 2, None),
            // The first successor comes at once, the second waits.
            (false, 3, Some(3)),
            (true, 4, None),
            (false, 5, Some(15)),
            (false, 9, Some(15)),
            (true, 15, None),
            (false, 16, Some(36)),
            // One that stood for long has redeemed them all.
            (true, 36, None),
            (false, 836, Some(836)),
        ] {
            assert_eq!(tries.not_before(stands, at(now)), due.map(at), "at {now}");
        }
        tries.failed(at(900));
        assert_eq!(tries.not_before(false, at(901)), Some(at(910)));
        // One that died before anybody saw it counts too.
        tries.made(at(910));
        assert_eq!(tries.not_before(false, at(911)), Some(at(921)));
    }
}
