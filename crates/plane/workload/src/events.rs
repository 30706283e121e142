//! Says what controllers did, in Event objects.
//!
//! Best effort: events are news, the state is in the objects. A repeated event counts up the first one. One task writes
//! them, so that no reconcile waits for its news.

use std::collections::{HashMap, VecDeque};

use hotmap_client::{Client, ClientError, PatchType, ResourcePath, WriteParams};
use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use crate::view::{Metadata, View};

/// Events that wait to be written; more than one burst of a large rollout.
const WAITING_EVENTS_MAX: usize = 4096;
/// Events that a repetition finds again; upstream's cache holds as many.
const REMEMBERED_EVENTS_MAX: usize = 4096;

/// Whether an event is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EventType {
    Normal,
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Where controllers drop their news; clones share one task.
#[derive(Clone)]
pub(crate) struct Events {
    waiting: mpsc::Sender<News>,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Subject {
    pub(crate) api_version: String,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

#[derive(Debug)]
struct News {
    subject: Subject,
    resource_version: String,
    component: &'static str,
    kind: EventType,
    reason: &'static str,
    message: String,
    at: Timestamp,
}

/// Writes what its [`Events`] are told.
pub(crate) struct EventWriter {
    client: Client,
    waiting: mpsc::Receiver<News>,
    remembered: Remembered,
}

impl Events {
    /// A place for news, and the task's work that writes them.
    pub(crate) fn new(client: Client) -> (Self, EventWriter) {
        let (sender, waiting) = mpsc::channel(WAITING_EVENTS_MAX);
        let writer = EventWriter {
            client,
            waiting,
            remembered: Remembered::default(),
        };
        (Self { waiting: sender }, writer)
    }

    /// Says that something happened to `object`; `component` is who says so: `deployment-controller`.
    pub(crate) fn publish<V: View>(
        &self,
        object: &V,
        component: &'static str,
        kind: EventType,
        reason: &'static str,
        message: impl Into<String>,
        at: Timestamp,
    ) {
        let Metadata {
            namespace,
            name,
            uid,
            resource_version,
            ..
        } = object.metadata();
        let subject = Subject {
            api_version: V::API_VERSION.to_owned(),
            kind: V::KIND,
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
        };
        self.publish_about(
            subject,
            resource_version.clone(),
            component,
            kind,
            reason,
            message.into(),
            at,
        );
    }

    /// As [`Events::publish`], about an object of which there is no view.
    #[expect(clippy::too_many_arguments, reason = "an event has that many parts")]
    pub(crate) fn publish_about(
        &self,
        subject: Subject,
        resource_version: String,
        component: &'static str,
        kind: EventType,
        reason: &'static str,
        message: String,
        at: Timestamp,
    ) {
        let news = News {
            subject,
            resource_version,
            component,
            kind,
            reason,
            message,
            at,
        };
        if let Err(lost) = self.waiting.try_send(news) {
            warn!(reason, "too many events wait to be written, dropping one: {lost}");
        }
    }
}

impl EventWriter {
    /// Writes for ever.
    pub(crate) async fn run(mut self) {
        while let Some(news) = self.waiting.recv().await {
            let (reason, name) = (news.reason, news.subject.name.clone());
            if let Err(error) = self.write(news).await {
                debug!(reason, name, %error, "cannot write an event");
            }
        }
        // All controllers are gone; who owns this task ends it.
        std::future::pending().await
    }

    async fn write(&mut self, news: News) -> Result<(), ClientError> {
        // Events about cluster-scoped objects live in `default`.
        let namespace = match news.subject.namespace.as_str() {
            "" => "default".to_owned(),
            namespace => namespace.to_owned(),
        };
        let events = ResourcePath::new("", "v1", "events").in_namespace(&namespace);
        if let Some((name, count)) = self.remembered.again(&news) {
            let patch = json!({"count": count, "lastTimestamp": timestamp::seconds(news.at)});
            let repeated = self
                .client
                .patch(
                    &events.clone().name(name),
                    PatchType::Merge,
                    &patch,
                    &WriteParams::default(),
                )
                .await;
            match repeated {
                // It has expired, or somebody deleted it: it is told anew.
                Err(error) if error.is_not_found() => {}
                written => return written.map(drop),
            }
        }
        let event = event(&news, &namespace);
        let name = event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.client
            .create(&events, &event, &WriteParams::default())
            .await?;
        self.remembered.first(&news, name);
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sameness {
    subject: Subject,
    component: &'static str,
    kind: EventType,
    reason: &'static str,
    message: String,
}

/// The events written lately, oldest first.
#[derive(Default)]
struct Remembered {
    names: HashMap<Sameness, (String, i64)>,
    order: VecDeque<Sameness>,
}

impl Remembered {
    /// The name of the event that said the same, and how often it has been said now.
    fn again(&mut self, news: &News) -> Option<(String, i64)> {
        let (name, count) = self.names.get_mut(&sameness(news))?;
        *count += 1;
        Some((name.clone(), *count))
    }

    fn first(&mut self, news: &News, name: String) {
        let key = sameness(news);
        if self.names.insert(key.clone(), (name, 1)).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED_EVENTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }
}

fn sameness(news: &News) -> Sameness {
    Sameness {
        subject: news.subject.clone(),
        component: news.component,
        kind: news.kind,
        reason: news.reason,
        message: news.message.clone(),
    }
}

fn event(news: &News, namespace: &str) -> Value {
    let at = timestamp::seconds(news.at);
    let Subject {
        api_version,
        kind,
        name,
        uid,
        ..
    } = &news.subject;
    let mut subject = json!({
        "kind": kind,
        "apiVersion": api_version,
        "name": name,
        "uid": uid,
        "resourceVersion": news.resource_version,
    });
    if !news.subject.namespace.is_empty() {
        subject["namespace"] = news.subject.namespace.as_str().into();
    }
    json!({
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {
            "namespace": namespace,
            // Upstream's form: unique as long as no two events of an object share a nanosecond.
            "name": format!("{name}.{:x}", news.at.as_nanosecond()),
        },
        "involvedObject": subject,
        "type": news.kind.as_str(),
        "reason": news.reason,
        "message": news.message,
        "source": {"component": news.component},
        "reportingComponent": news.component,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(namespace: &str, message: &str) -> News {
        News {
            subject: Subject {
                api_version: "v1".to_owned(),
                kind: "Pod",
                namespace: namespace.to_owned(),
                name: "web".to_owned(),
                uid: "u1".to_owned(),
            },
            resource_version: "7".to_owned(),
            component: "default-scheduler",
            kind: EventType::Normal,
            reason: "Scheduled",
            message: message.to_owned(),
            at: "2026-01-02T15:04:05.000000001Z".parse().expect("a time"),
        }
    }

    #[test]
    fn events_are_about_their_object_and_from_their_component() {
        let event = event(&news("shop", "text"), "shop");
        assert_eq!(event["metadata"]["name"], "web.1886f23c653db201");
        assert_eq!(event["involvedObject"]["namespace"], "shop");
        assert_eq!(event["source"]["component"], "default-scheduler");
        assert_eq!(event["lastTimestamp"], "2026-01-02T15:04:05Z");
        let event = super::event(&news("", "text"), "default");
        assert_eq!(event["metadata"]["namespace"], "default");
        assert_eq!(event["involvedObject"].get("namespace"), None);
    }

    #[test]
    fn what_is_said_again_counts_up_until_it_is_forgotten() {
        let mut remembered = Remembered::default();
        assert_eq!(remembered.again(&news("a", "x")), None);
        remembered.first(&news("a", "x"), "web.1".to_owned());
        assert_eq!(remembered.again(&news("a", "x")), Some(("web.1".to_owned(), 2)));
        assert_eq!(remembered.again(&news("a", "x")), Some(("web.1".to_owned(), 3)));
        assert_eq!(remembered.again(&news("a", "y")), None);
        for at in 0..REMEMBERED_EVENTS_MAX {
            remembered.first(&news("a", &at.to_string()), at.to_string());
        }
        assert_eq!(remembered.again(&news("a", "x")), None);
        assert_eq!(remembered.names.len(), REMEMBERED_EVENTS_MAX);
    }
}
