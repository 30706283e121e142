//! Events about pods and the node, told to the API: repeated ones are counted, not told again; so is newer word of the same matter.
//!
//! Bounded and best effort, as upstream's recorder: an event that cannot be sent is logged and dropped, never waited for.

use std::{collections::VecDeque, time::Duration};

use hotmap_client::{Client, PatchType, ResourcePath, WriteParams};
use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::mpsc;
use tracing::warn;

use crate::pod::Pod;

/// Events that wait for the API; more are dropped.
const WAITING_MAX: usize = 1_000;
/// Kinds of events whose count is kept up; older ones begin anew.
const REMEMBERED_MAX: usize = 4_096;
/// Bytes of a message; probes and projections may have much more to say.
const MESSAGE_BYTES_MAX: usize = 1_024;
/// Longest name of an object (`IsDNS1123Subdomain`).
const NAME_BYTES_MAX: usize = 253;
/// Tries of one event, and the pause before each but the first.
const TRIES: u32 = 3;
const TRY_PAUSE: Duration = Duration::from_secs(1);

/// Normal or Warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

/// Whom an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    kind: &'static str,
    namespace: String,
    name: String,
    uid: String,
    /// Such as `spec.containers{nginx}`.
    field_path: String,
}

impl Subject {
    /// A whole pod.
    pub(crate) fn pod(pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        Self {
            kind: "Pod",
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            field_path: String::new(),
        }
    }

    /// The node itself. Upstream's events about nodes are in `default` and have the name for a uid.
    pub(crate) fn node(name: &str) -> Self {
        Self {
            kind: "Node",
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            field_path: String::new(),
        }
    }

    /// One container of a pod.
    pub(crate) fn container(pod: &Pod, name: &str) -> Self {
        let list = if pod.is_init(name) {
            "initContainers"
        } else if pod.is_ephemeral(name) {
            "ephemeralContainers"
        } else {
            "containers"
        };
        Self {
            field_path: format!("spec.{list}{{{name}}}"),
            ..Self::pod(pod)
        }
    }
}

/// What was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    subject: Subject,
    severity: Severity,
    reason: &'static str,
    message: String,
    /// Of those that differ in their message only, the newest replaces the one before: what it is about.
    topic: Option<String>,
}

impl Told {
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether it is the same event once more, or newer word of the same matter.
    fn repeats(&self, before: &Self) -> bool {
        self.subject == before.subject
            && self.severity == before.severity
            && self.reason == before.reason
            && self.topic == before.topic
            && (self.topic.is_some() || self.message == before.message)
    }
}

/// Where events are told. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    sender: mpsc::Sender<Told>,
}

impl Recorder {
    /// A recorder, and the task that sends what it is told.
    pub(crate) fn new(client: Client, node_name: String) -> (Self, impl Future<Output = ()>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self { sender }, send_for_ever(client, node_name, receiver))
    }

    pub(crate) fn normal(&self, subject: Subject, reason: &'static str, message: impl Into<String>) {
        self.tell(subject, Severity::Normal, reason, None, message.into());
    }

    pub(crate) fn warning(&self, subject: Subject, reason: &'static str, message: impl Into<String>) {
        self.tell(subject, Severity::Warning, reason, None, message.into());
    }

    /// Something normal of which the newest word is enough: it takes the place of what was said before of the same `topic`, and
    /// counts it.
    pub(crate) fn newest(&self, subject: Subject, reason: &'static str, topic: &str, message: String) {
        self.tell(subject, Severity::Normal, reason, Some(topic.to_owned()), message);
    }

    /// A recorder, and what it is told.
    #[cfg(test)]
    pub(crate) fn for_tests() -> (Self, mpsc::Receiver<Told>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self { sender }, receiver)
    }

    fn tell(
        &self,
        subject: Subject,
        severity: Severity,
        reason: &'static str,
        topic: Option<String>,
        message: String,
    ) {
        let message = shortened(message);
        if self
            .sender
            .try_send(Told {
                subject,
                severity,
                reason,
                message,
                topic,
            })
            .is_err()
        {
            warn!(reason, "event dropped: too many wait for the API");
        }
    }
}

fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX - 3));
        message.push_str("...");
    }
    message
}

/// The pod's name, as far as it fits, and the time.
fn event_name(pod: &str, now: Timestamp) -> String {
    let suffix = format!(".{:x}", now.as_nanosecond());
    let room = pod.floor_char_boundary(NAME_BYTES_MAX - suffix.len());
    format!("{}{suffix}", pod[..room].trim_end_matches(['-', '.']))
}

/// An event that was sent, for counting its repetitions.
struct Sent {
    told: Told,
    name: String,
    count: u32,
}

async fn send_for_ever(client: Client, node_name: String, mut receiver: mpsc::Receiver<Told>) {
    let mut remembered: VecDeque<Sent> = VecDeque::new();
    while let Some(told) = receiver.recv().await {
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(TRY_PAUSE).await;
            }
            match send(&client, &node_name, &told, &mut remembered).await {
                Ok(()) => break,
                // The namespace is gone or going: there is nobody left to tell.
                Err(error) if error.status().is_some() => {
                    tracing::debug!(reason = told.reason, %error, "event refused");
                    break;
                }
                Err(error) => warn!(reason = told.reason, %error, "event not sent"),
            }
        }
    }
}

async fn send(
    client: &Client,
    node_name: &str,
    told: &Told,
    remembered: &mut VecDeque<Sent>,
) -> Result<(), hotmap_client::ClientError> {
    let now = Timestamp::now();
    let events = ResourcePath::new("", "v1", "events").in_namespace(told.subject.namespace.as_str());
    if let Some(at) = remembered.iter().position(|sent| told.repeats(&sent.told)) {
        let sent = &mut remembered[at];
        let patch = json!({"count": sent.count + 1, "lastTimestamp": timestamp::seconds(now), "message": told.message});
        match client
            .patch(
                &events.clone().name(sent.name.as_str()),
                PatchType::Merge,
                &patch,
                &WriteParams::default(),
            )
            .await
        {
            Ok(_) => {
                sent.count += 1;
                return Ok(());
            }
            // Events live for an hour; a new one begins.
            Err(error) if error.is_not_found() => drop(remembered.remove(at)),
            Err(error) => return Err(error),
        }
    }
    let subject = &told.subject;
    let name = event_name(&subject.name, now);
    let mut involved =
        json!({"apiVersion": "v1", "kind": subject.kind, "name": subject.name, "uid": subject.uid});
    if subject.kind != "Node" {
        involved["namespace"] = subject.namespace.clone().into();
    }
    if !subject.field_path.is_empty() {
        involved["fieldPath"] = subject.field_path.clone().into();
    }
    let severity = match told.severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": subject.namespace},
        "involvedObject": involved, "type": severity, "reason": told.reason, "message": told.message, "count": 1,
        "firstTimestamp": timestamp::seconds(now), "lastTimestamp": timestamp::seconds(now),
        "source": {"component": "hotmap-agent", "host": node_name},
        "reportingComponent": "hotmap-agent", "reportingInstance": node_name,
    });
    client.create(&events, &event, &WriteParams::default()).await?;
    if remembered.len() == REMEMBERED_MAX {
        remembered.pop_front();
    }
    remembered.push_back(Sent {
        told: told.clone(),
        name,
        count: 1,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_again_is_counted_and_a_topic_has_one_event() {
        let told = |reason: &'static str, topic: Option<&str>, message: &str| Told {
            subject: Subject {
                kind: "Pod",
                namespace: "n".to_owned(),
                name: "web".to_owned(),
                uid: "u".to_owned(),
                field_path: String::new(),
            },
            severity: Severity::Normal,
            reason,
            message: message.to_owned(),
            topic: topic.map(str::to_owned),
        };
        let (plain, cfg) = (told("A", None, "1"), told("A", Some("cfg"), "1"));
        for (one, before, repeats) in [
            (&plain, &plain, true),
            (&told("A", None, "2"), &plain, false),
            (&told("B", None, "1"), &plain, false),
            (&told("A", Some("cfg"), "2"), &cfg, true),
            (&told("A", Some("other"), "1"), &cfg, false),
            (&told("B", Some("cfg"), "1"), &cfg, false),
            (&cfg, &plain, false),
        ] {
            assert_eq!(one.repeats(before), repeats, "{one:?}");
        }
    }

    #[test]
    fn names_and_messages_fit() {
        let now = Timestamp::from_second(1_800_000_000).expect("in range");
        assert_eq!(event_name("web", now), "web.18fae27693b40000");
        let long = format!("{}-{}", "a".repeat(235), "b".repeat(17));
        let name = event_name(&long, now);
        assert!(name.len() <= NAME_BYTES_MAX && !name.contains("-."), "{name}");
        assert_eq!(shortened("short".into()), "short");
        let cut = shortened("é".repeat(2_000));
        assert!(cut.len() <= MESSAGE_BYTES_MAX && cut.ends_with("é..."));
    }
}
