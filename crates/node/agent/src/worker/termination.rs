//! Reads what containers have said about their end.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::{Worker, log_directory};
use crate::{
    pod::{Pod, TerminationMessagePolicy},
    termination_message,
};

impl Worker {
    /// Each message once: right after the end of its container was seen, or by an agent that has just started.
    pub(super) async fn read_messages(&mut self, pod: &Arc<Pod>) {
        for container in pod.all_containers() {
            let Some(ended) = self
                .records
                .get(&container.name)
                .and_then(|record| record.unread())
            else {
                continue;
            };
            let (attempt, has_failed) = (ended.attempt, ended.exit_code != 0);
            let directory = self.shared.placement.messages(&self.uid);
            let name = container.name.clone();
            let read = spawn_blocking(move || termination_message::read(&directory, &name, attempt));
            let mut message = read.await.expect("reading a message does not panic");
            let policy = container.termination_message_policy;
            if message.is_empty() && has_failed && policy == TerminationMessagePolicy::FallbackToLogsOnError {
                let logs = log_directory(&self.shared.log_root, pod).join(&container.name);
                message = termination_message::from_log(logs.join(format!("{attempt}.log"))).await;
            }
            if let Some(record) = self.records.get_mut(&container.name) {
                record.said(attempt, &message);
            }
        }
    }
}
