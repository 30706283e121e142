//! Drives [`Objects`] as the front does, over a store in a temporary directory.

mod access;
mod accounts;
mod deletes;
mod evictions;
mod failures;
mod history;
mod local;
mod node_selection;
mod reads;
mod scales;
mod watches;
mod writes;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use hotmap_kinds::resources;
use hotmap_object::Status;
use hotmap_store::{Embedded, SystemClock};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Objects;
use crate::{
    answer::{Answer, Body},
    cache::HistoryLimits,
    http::negotiation::Accept,
    request::{ApiRequest, Query, User, Verb},
};

/// What the injected clock shows.
const NOW: &str = "2026-01-02T03:04:05Z";

struct Server {
    objects: Arc<Objects>,
    store: Arc<Embedded>,
    dir: tempfile::TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(HistoryLimits::default()).await
    }

    async fn start_with(limits: HistoryLimits) -> Self {
        Self::open(tempfile::tempdir().expect("a temporary directory"), limits).await
    }

    async fn open(dir: tempfile::TempDir, limits: HistoryLimits) -> Self {
        let store = Arc::new(Embedded::open(dir.path(), Arc::new(SystemClock)).expect("a store"));
        let now: Timestamp = NOW.parse().expect("a time");
        let objects = Objects::start_with(store.clone(), Arc::new(move || now), limits, None)
            .await
            .expect("starts");
        objects.bootstrap(None).await.expect("bootstraps");
        Self { objects, store, dir }
    }

    async fn restart(self) -> Self {
        let Self { objects, store, dir } = self;
        drop(objects);
        // The feed's task ends at its next turn and lets go of the store.
        while Arc::strong_count(&store) > 1 {
            tokio::task::yield_now().await;
        }
        drop(store);
        Self::open(dir, HistoryLimits::default()).await
    }

    /// `call` is `VERB [NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]][?QUERY]`, a resource optionally `GROUP:PLURAL`.
    async fn answer(&self, call: &str, body: impl Into<Bytes>) -> Result<Answer, Status> {
        self.objects.handle(request(call, body)).await
    }

    /// Code and JSON document of the answer, failures included.
    async fn send(&self, call: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.send_text(call, &body).await
    }

    async fn send_text(&self, call: &str, body: &str) -> (u16, Value) {
        match self.answer(call, body.to_owned()).await {
            Ok(answer) => (answer.code, serde_json::from_slice(&full(answer)).expect("JSON")),
            Err(status) => (status.code, status.to_value()),
        }
    }

    /// The document of a call that must succeed.
    async fn ok(&self, call: &str, body: Value) -> Value {
        let (code, document) = self.send(call, body).await;
        assert!(code < 300, "{call}: {document}");
        document
    }

    /// Code and message of a call that must fail.
    async fn refused(&self, call: &str, body: Value) -> (u16, String) {
        let (code, document) = self.send(call, body).await;
        assert!(code >= 400, "{call}: {document}");
        (code, document["message"].as_str().unwrap_or_default().to_owned())
    }

    async fn config_map(&self, name: &str, value: &str) -> Value {
        self.ok("create default/configmaps", config_map(name, value))
            .await
    }

    async fn watch(&self, query: &str) -> Frames {
        self.watch_call(&format!("watch default/configmaps?{query}"))
            .await
    }

    async fn watch_call(&self, call: &str) -> Frames {
        let answer = self.answer(call, Bytes::new()).await.expect("a watch begins");
        let Body::Stream(stream) = answer.body else {
            panic!("a watch streams")
        };
        Frames {
            stream,
            rest: Vec::new(),
        }
    }
}

/// The frames of a JSON watch.
struct Frames {
    stream: BoxStream<'static, Bytes>,
    rest: Vec<u8>,
}

impl Frames {
    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("one JSON document a line"));
            }
            let next = tokio::time::timeout(Duration::from_secs(600), self.stream.next());
            self.rest
                .extend_from_slice(&next.await.expect("an event in time")?);
        }
    }

    /// `TYPE name value` of the next events.
    async fn take(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(summary(&self.next().await.expect("an event")));
        }
        events
    }
}

fn summary(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["object"];
    let parts = [
        text(&event["type"]),
        text(&object["metadata"]["name"]),
        text(&object["data"]["k"]),
    ];
    parts.join(" ").trim_end().to_owned()
}

fn request(call: &str, body: impl Into<Bytes>) -> ApiRequest {
    let (verb, rest) = call.split_once(' ').expect("a verb");
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts: Vec<&str> = path.split('/').collect();
    let find = |part: &str| {
        let (group, plural) = part
            .split_once(':')
            .map_or((None, part), |(group, plural)| (Some(group), plural));
        resources()
            .iter()
            .find(|one| one.plural == plural && group.is_none_or(|group| group == one.group))
    };
    let namespace = if find(parts[0]).is_none() {
        Some(parts.remove(0).to_owned())
    } else {
        None
    };
    let resource = find(parts[0]).expect("a served resource");
    let subresource = parts.get(2).map(|name| {
        let mut known = resource.subresources.iter();
        known
            .find(|one| one.name == *name)
            .expect("a served sub-resource")
    });
    let query = Query::parse(query);
    let mut content_type = None;
    let verb = match verb {
        "get" => Verb::Get,
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "create" => Verb::Create,
        "update" => Verb::Update,
        "delete" => Verb::Delete,
        "deletecollection" => Verb::DeleteCollection,
        patch => {
            content_type = Some(format!("application/{patch}-patch+json"));
            if patch == "apply" {
                content_type = Some("application/apply-patch+yaml".to_owned());
            }
            Verb::Patch
        }
    };
    // Headers ride in the query: no parameter of the API has these names.
    let content_type = query.text("contentType").map(str::to_owned).or(content_type);
    let accept = Accept::parse(query.text("accept").unwrap_or_default());
    let groups = query.all("group").map(str::to_owned).collect();
    ApiRequest {
        verb,
        resource,
        subresource,
        namespace,
        name: parts.get(1).map(|name| (*name).to_owned()),
        query,
        user: Arc::new(User {
            name: "tester".to_owned(),
            groups,
            ..User::default()
        }),
        user_agent: String::new(),
        accept,
        content_type,
        body: body.into(),
        may_create: true,
    }
}

fn full(answer: Answer) -> Bytes {
    match answer.body {
        Body::Full(body) => body,
        Body::Stream(_) => panic!("a whole body was expected"),
    }
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": value}})
}

fn labelled(name: &str, value: &str, label: &str) -> Value {
    let mut object = config_map(name, value);
    object["metadata"]["labels"] = json!({"l": label});
    object
}

fn revision(document: &Value) -> u64 {
    document["metadata"]["resourceVersion"]
        .as_str()
        .expect("a revision")
        .parse()
        .expect("a number")
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|item| item["metadata"]["name"].as_str().expect("a name"))
        .collect()
}
