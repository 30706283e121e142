//! Tells the API what a pod's status is: the newest one, until it has arrived.

use std::sync::Arc;

use hotmap_client::{Backoff, Client, ClientError, PatchType, WriteParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{sync::watch, task::AbortHandle};
use tracing::{debug, warn};

use super::object_path;
use crate::{nudge::Nudge, pod::Pod};

/// First and longest pause between two tries.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Writes the status of one pod, the latest only. Dropping it ends the writing.
pub(super) struct StatusWriter {
    wanted: watch::Sender<Option<Value>>,
    /// The newest status that the API has taken, or was found with.
    settled: watch::Receiver<Option<Value>>,
    last: Mutex<Option<Value>>,
    task: AbortHandle,
}

impl Drop for StatusWriter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl StatusWriter {
    /// `nudge` wakes the pod's worker once the API has the last word on a pod.
    pub(super) fn start(client: Client, pod: &Arc<Pod>, nudge: Arc<Nudge>) -> Self {
        let (wanted, receiver) = watch::channel(None);
        let (settled_sender, settled) = watch::channel(None);
        let writer = write_for_ever(client, Arc::clone(pod), receiver, settled_sender, nudge);
        let task = tokio::spawn(writer).abort_handle();
        Self {
            wanted,
            settled,
            last: Mutex::default(),
            task,
        }
    }

    /// Makes `status` what the API shall know.
    pub(super) fn write(&self, status: Value) {
        let mut last = self.last.lock();
        if last.as_ref() != Some(&status) {
            *last = Some(status.clone());
            self.wanted.send_replace(Some(status));
        }
    }

    /// The newest status handed in.
    pub(super) fn last(&self) -> Option<Value> {
        self.last.lock().clone()
    }

    /// Writes no more: the pod is gone.
    pub(super) fn end(&self) {
        self.task.abort();
    }

    /// Whether a status was handed in, and the API has the newest one or has refused it for good.
    pub(super) fn is_settled(&self) -> bool {
        let wanted = self.wanted.borrow();
        wanted.is_some() && *wanted == *self.settled.borrow()
    }

    /// Waits until the API has the newest status, or has refused it for good.
    pub(super) async fn settle(&mut self) {
        let wanted = self.wanted.borrow().clone();
        // An error means that the writer has ended: there is nothing to wait for.
        let _ = self.settled.wait_for(|settled| *settled == wanted).await;
    }
}

async fn write_for_ever(
    client: Client,
    pod: Arc<Pod>,
    mut wanted: watch::Receiver<Option<Value>>,
    settled: watch::Sender<Option<Value>>,
    nudge: Arc<Nudge>,
) {
    let path = object_path(&pod).subresource("status");
    let mut retries = Backoff::seeded(RETRY_MIN, RETRY_MAX);
    while wanted.changed().await.is_ok() {
        loop {
            let Some(status) = wanted.borrow_and_update().clone() else {
                break;
            };
            // The uid guards against a new pod under the old name.
            let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": as_patch(&status)});
            match client
                .patch(&path, PatchType::StrategicMerge, &patch, &WriteParams::default())
                .await
            {
                Ok(_) => {}
                Err(error) if error.is_not_found() || error.is_conflict() => {
                    debug!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %error, "the pod is gone, nobody needs its status");
                }
                Err(error) if is_final(&error) => {
                    warn!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %error, "status refused, the API goes without it");
                }
                Err(error) => {
                    warn!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %error, "status not written");
                    tokio::time::sleep(retries.next_delay()).await;
                    continue;
                }
            }
            retries.reset();
            let is_last_word = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
            settled.send_replace(Some(status));
            if is_last_word {
                nudge.wake();
            }
            break;
        }
    }
}

/// A status as a strategic merge patch. Conditions merge by type, so that those of others stay; what of ours no longer has a
/// reason loses the one it had. Addresses are replaced.
fn as_patch(status: &Value) -> Value {
    let mut patch = status.clone();
    for condition in patch["conditions"].as_array_mut().into_iter().flatten() {
        for field in ["reason", "message"] {
            if condition[field].is_null() {
                condition[field] = Value::Null;
            }
        }
    }
    for addresses in ["hostIPs", "podIPs"] {
        if let Some(addresses) = patch.get_mut(addresses).and_then(Value::as_array_mut) {
            addresses.push(json!({"$patch": "replace"}));
        }
    }
    patch
}

/// Whether the same words would be refused for ever: a status that breaks a rule must not keep its pod from going. Who may
/// not write yet, or came too fast, tries again.
fn is_final(error: &ClientError) -> bool {
    let code = error.status().map(|status| status.code);
    matches!(code, Some(400 | 413 | 415 | 422))
}

#[cfg(test)]
mod tests {
    use hotmap_object::Status;

    use super::*;

    #[test]
    fn conditions_of_others_stay_and_addresses_are_replaced() {
        let status = json!({"phase": "Running", "podIPs": [{"ip": "10.88.0.2"}],
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "False", "reason": "R"}]});
        let expected = json!({"phase": "Running", "podIPs": [{"ip": "10.88.0.2"}, {"$patch": "replace"}], "conditions": [
            {"type": "Ready", "status": "True", "reason": null, "message": null},
            {"type": "Initialized", "status": "False", "reason": "R", "message": null}]});
        assert_eq!(as_patch(&status), expected);
    }

    #[test]
    fn only_what_can_never_be_taken_is_given_up() {
        for (code, given_up) in [
            (400, true),
            (422, true),
            (413, true),
            // Not yet known to be ours, too fast, or a server in trouble.
            (403, false),
            (401, false),
            (429, false),
            (500, false),
            (503, false),
        ] {
            let error = ClientError::from(Status::new(code, "Reason", "message"));
            assert_eq!(is_final(&error), given_up, "{code}");
        }
        let after = Duration::from_secs(1);
        assert!(!is_final(&ClientError::Timeout { after }));
    }
}
