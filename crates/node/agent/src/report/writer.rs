//! Tells the API: on a transition, a moment after it, and at most once a second.

use std::time::Duration;

use hotmap_client::{Backoff, Client, ClientError, PatchType, ResourcePath, WriteParams};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::{debug, warn};

use super::Reports;
use crate::{clock::Clock, metrics::Metrics};

/// A change is heard of, and the volumes follow in the next milliseconds: one report speaks of both.
const SETTLE: Duration = Duration::from_millis(20);
/// The same for the first report: the pods that ran before this agent are found one after the other, and none of them shall
/// be missing where the agent before us told of it.
const FIRST_SETTLE: Duration = Duration::from_secs(1);
/// Pause between two reports, and how much of it is chance, so that nodes do not write in step.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_JITTER_PERCENT: u32 = 25;
/// First and longest pause after a report that was not taken.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Where reports go.
pub(super) trait Target {
    /// Replaces what was told before.
    async fn tell(&mut self, document: &Map<String, Value>) -> Result<(), ClientError>;
}

/// When reports go.
pub(super) struct Pace {
    retries: Backoff,
    /// Random numbers for the jitter, one for each pause.
    random: fn() -> u32,
}

impl Pace {
    pub(super) fn seeded() -> Self {
        Self {
            retries: Backoff::seeded(RETRY_MIN, RETRY_MAX),
            random: rand_u32,
        }
    }

    /// From one report to the next: a second, and up to a quarter more.
    fn pause(&self) -> Duration {
        let part = (self.random)() % (PAUSE_JITTER_PERCENT + 1);
        PAUSE + PAUSE * part / 100
    }
}

fn rand_u32() -> u32 {
    use ring::rand::{SecureRandom, SystemRandom};
    let mut bytes = [0; 4];
    // Without random numbers nodes only lose their jitter.
    let _ = SystemRandom::new().fill(&mut bytes);
    u32::from_ne_bytes(bytes)
}

/// Writes for ever what is new; nothing is written, and no timer runs, while nothing changes.
pub(super) async fn write_for_ever(
    reports: &Reports,
    mut target: impl Target,
    mut pace: Pace,
    clock: impl Clock,
) {
    let mut told: Option<Map<String, Value>> = None;
    let mut not_before: Option<Timestamp> = None;
    // A failure is told at every try; one line about it is enough.
    let mut is_refused = false;
    loop {
        reports.inner.changed.notified().await;
        let wait = not_before.and_then(|due| Duration::try_from(due.duration_since(clock.now())).ok());
        // A longer one comes from a clock that was set back.
        let wait = wait.map(|wait| wait.min(RETRY_MAX));
        let settle = if told.is_some() { SETTLE } else { FIRST_SETTLE };
        clock.sleep(wait.unwrap_or_default().max(settle)).await;
        let document = reports.document();
        if told.as_ref() == Some(&document) {
            continue;
        }
        let pause = match target.tell(&document).await {
            Ok(()) => {
                debug!("deliveries reported");
                told = Some(document);
                is_refused = false;
                pace.retries.reset();
                pace.pause()
            }
            Err(error) => {
                let pause = pace.retries.next_delay();
                if !std::mem::replace(&mut is_refused, true) {
                    warn!(%error, "deliveries not reported, the next try speaks of the newest ones");
                }
                // Also if nothing happens in between.
                reports.inner.changed.notify_one();
                pause
            }
        };
        not_before = Some(clock.now() + pause);
    }
}

/// The DeliveryReport of this node.
pub(super) struct ApiReport {
    client: Client,
    node_name: String,
    metrics: Metrics,
}

impl ApiReport {
    pub(super) fn new(client: Client, node_name: String, metrics: Metrics) -> Self {
        Self {
            client,
            node_name,
            metrics,
        }
    }

    async fn create(&self, document: &Map<String, Value>) -> Result<(), ClientError> {
        let nodes = ResourcePath::new("", "v1", "nodes");
        let node = self.client.get(&nodes.name(self.node_name.as_str())).await?;
        let mut report = document.clone();
        report.insert("apiVersion".to_owned(), "hotmap.dev/v1alpha1".into());
        report.insert("kind".to_owned(), "DeliveryReport".into());
        // With the node goes what it said.
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": self.node_name, "uid": node.uid()});
        let metadata = json!({"name": self.node_name, "ownerReferences": [owner]});
        report.insert("metadata".to_owned(), metadata);
        self.client
            .create(&self.reports(), &Value::Object(report), &WriteParams::default())
            .await
            .map(drop)
    }

    async fn replace(&self, document: &Map<String, Value>) -> Result<(), ClientError> {
        let path = self.reports().name(self.node_name.as_str());
        let patch = Value::Object(document.clone());
        self.client
            .patch(&path, PatchType::Merge, &patch, &WriteParams::default())
            .await
            .map(drop)
    }

    fn reports(&self) -> ResourcePath {
        ResourcePath::new("hotmap.dev", "v1alpha1", "deliveryreports")
    }
}

impl Target for ApiReport {
    async fn tell(&mut self, document: &Map<String, Value>) -> Result<(), ClientError> {
        let told = match self.replace(document).await {
            Err(error) if error.is_not_found() => match self.create(document).await {
                Err(error) if error.is_already_exists() => self.replace(document).await,
                other => other,
            },
            other => other,
        };
        self.metrics.reported(told.is_ok());
        told
    }
}

#[cfg(test)]
mod tests;
