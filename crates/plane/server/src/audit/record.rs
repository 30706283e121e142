//! One request, from its first byte to its answer.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use hotmap_object::{GroupVersionKind, Status, timestamp};
use hotmap_schema::{decode_protobuf, envelope, kind, yaml};
use hyper::{Request, body::Incoming, header::USER_AGENT};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::{AuditLevel, log::AuditLog};
use crate::{authorization::Attributes, http::negotiation::Media, request::User, uuid};

/// Names the request in logs of both sides; clients may choose it.
pub(crate) const AUDIT_ID: &str = "audit-id";
/// A chosen id is no longer than this, as upstream's.
const AUDIT_ID_BYTES_MAX: usize = 64;
/// Larger bodies are left out: one line stays a line.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// No object has a longer name.
const NAME_BYTES_MAX: usize = 253;

/// What is known of a request. Written when it is dropped: also one that is given up leaves its line.
pub(crate) struct Record {
    level: AuditLevel,
    log: Arc<AuditLog>,
    audit_id: String,
    event: Map<String, Value>,
    annotations: Map<String, Value>,
    is_secret: bool,
    stage: &'static str,
    session: Option<oneshot::Sender<Record>>,
}

impl Record {
    pub(super) fn new(
        level: AuditLevel,
        log: Arc<AuditLog>,
        source: Option<SocketAddr>,
        request: &Request<Incoming>,
        now: Timestamp,
    ) -> Self {
        let header = |name: &str| request.headers().get(name)?.to_str().ok();
        let chosen = header(AUDIT_ID).filter(|id| !id.is_empty() && id.len() <= AUDIT_ID_BYTES_MAX);
        let audit_id = chosen.map_or_else(uuid::distinct, str::to_owned);
        let uri = request.uri().path_and_query().map_or("", |uri| uri.as_str());
        let mut event = Map::new();
        event.insert("requestURI".to_owned(), uri.into());
        event.insert(
            "verb".to_owned(),
            request.method().as_str().to_ascii_lowercase().into(),
        );
        event.insert("user".to_owned(), json!({}));
        if let Some(source) = source {
            event.insert(
                "sourceIPs".to_owned(),
                json!([source.ip().to_canonical().to_string()]),
            );
        }
        if let Some(agent) = header(USER_AGENT.as_str()) {
            event.insert("userAgent".to_owned(), agent.into());
        }
        event.insert(
            "requestReceivedTimestamp".to_owned(),
            timestamp::micros(now).into(),
        );
        let given_up = "the client went away before it was answered";
        event.insert(
            "responseStatus".to_owned(),
            json!({"metadata": {}, "status": "Failure", "message": given_up}),
        );
        Self {
            level,
            log,
            audit_id,
            event,
            annotations: Map::new(),
            is_secret: false,
            stage: "ResponseComplete",
            session: None,
        }
    }

    pub(crate) fn audit_id(&self) -> &str {
        &self.audit_id
    }

    pub(crate) fn user(&mut self, user: &User) {
        self.event.insert("user".to_owned(), user_info(user));
    }

    /// In whose name the user asks.
    pub(crate) fn impersonated(&mut self, user: &User) {
        self.event.insert("impersonatedUser".to_owned(), user_info(user));
    }

    /// What the request is about.
    pub(crate) fn wanted(&mut self, wanted: &Attributes) {
        self.is_secret = holds_secrets(wanted);
        self.event.insert("verb".to_owned(), wanted.verb.as_str().into());
        if wanted.path.is_some() {
            return;
        }
        let mut object = Map::new();
        for (field, value) in [
            ("resource", &wanted.resource),
            ("namespace", &wanted.namespace),
            ("name", &wanted.name),
            ("apiGroup", &wanted.group),
            ("apiVersion", &wanted.version),
            ("subresource", &wanted.subresource),
        ] {
            if !value.is_empty() {
                object.insert(field.to_owned(), value.as_str().into());
            }
        }
        self.event.insert("objectRef".to_owned(), object.into());
    }

    pub(crate) fn decided(&mut self, allowed: bool, reason: String) {
        let decision = if allowed { "allow" } else { "forbid" };
        self.annotations
            .insert("authorization.k8s.io/decision".to_owned(), decision.into());
        self.annotations
            .insert("authorization.k8s.io/reason".to_owned(), reason.into());
    }

    /// The body of the request: kept if the level asks for it and no secret is in it. What is created is named in it.
    pub(crate) fn body(&mut self, content_type: Option<&str>, body: &Bytes) {
        if body.is_empty() {
            return;
        }
        if body.len() > BODY_BYTES_MAX {
            if self.level == AuditLevel::Request && !self.is_secret {
                self.annotations
                    .insert("audit.k8s.io/truncated".to_owned(), "true".into());
            }
            return;
        }
        let is_unnamed_create = self.event.get("verb").is_some_and(|verb| verb == "create")
            && self
                .event
                .get("objectRef")
                .is_some_and(|object| object.get("name").is_none());
        if !is_unnamed_create && (self.is_secret || self.level == AuditLevel::Metadata) {
            return;
        }
        let Some(document) = document(content_type, body) else {
            return;
        };
        let name = document.pointer("/metadata/name").and_then(Value::as_str);
        if is_unnamed_create
            && let Some(name) = name.filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len()))
            && let Some(object) = self.event.get_mut("objectRef")
        {
            object["name"] = name.into();
        }
        // Also one that was sent to the wrong place.
        self.is_secret |= is_of_secrets(&document);
        if self.level == AuditLevel::Request && !self.is_secret {
            self.event.insert("requestObject".to_owned(), document);
        }
    }

    /// The answer opens a session: its record waits here for its end.
    pub(crate) fn session(&mut self) -> oneshot::Receiver<Record> {
        let (sender, receiver) = oneshot::channel();
        self.session = Some(sender);
        receiver
    }

    /// The code of the answer and, where the request failed, why. What is said about a Secret may quote it, and stays out.
    pub(crate) fn answered(&mut self, code: u16, failure: Option<&Status>) {
        let mut status = Map::new();
        status.insert("metadata".to_owned(), json!({}));
        if let Some(failure) = failure {
            status.insert("status".to_owned(), "Failure".into());
            if !failure.reason.is_empty() {
                status.insert("reason".to_owned(), failure.reason.as_str().into());
            }
            if !self.is_secret {
                status.insert("message".to_owned(), failure.message.as_str().into());
            }
        }
        status.insert("code".to_owned(), code.into());
        self.event.insert("responseStatus".to_owned(), status.into());
    }

    /// The request ended in a panic.
    pub(crate) fn panicked(&mut self) {
        self.stage = "Panic";
    }

    /// A watch or a stream begins: that is a line of its own. Returns the record for what ends with its body; that of a
    /// session ends with the session.
    pub(crate) fn started(mut self) -> Option<Self> {
        self.write("ResponseStarted");
        let Some(session) = self.session.take() else {
            return Some(self);
        };
        // A session that is over by now gives it back, and it ends here.
        drop(session.send(self));
        None
    }

    fn write(&self, stage: &str) {
        let mut event = self.event.clone();
        event.insert("kind".to_owned(), "Event".into());
        event.insert("apiVersion".to_owned(), "audit.k8s.io/v1".into());
        event.insert("level".to_owned(), self.level.as_str().into());
        event.insert("auditID".to_owned(), self.audit_id.as_str().into());
        event.insert("stage".to_owned(), stage.into());
        event.insert(
            "stageTimestamp".to_owned(),
            timestamp::micros(Timestamp::now()).into(),
        );
        if !self.annotations.is_empty() {
            event.insert("annotations".to_owned(), self.annotations.clone().into());
        }
        let mut line = Value::Object(event).to_string().into_bytes();
        line.push(b'\n');
        self.log.push(line);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.write(self.stage);
    }
}

/// Whether what is sent there, or said about it, may hold a secret.
fn holds_secrets(wanted: &Attributes) -> bool {
    match (wanted.group.as_str(), wanted.resource.as_str()) {
        ("", "secrets") | ("authentication.k8s.io", "tokenreviews" | "tokenrequests") => true,
        ("", "serviceaccounts") => wanted.subresource == "token",
        _ => false,
    }
}

/// Whether this is, or lists, an object whose content is secret.
fn is_of_secrets(document: &Value) -> bool {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "Secret" | "SecretList" | "TokenReview" | "TokenRequest")
        || document
            .get("items")
            .and_then(Value::as_array)
            .is_some_and(|items| items.iter().any(is_of_secrets))
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        let extra: Map<String, Value> = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), json!(values)))
            .collect();
        info["extra"] = extra.into();
    }
    info
}

/// The body as JSON; nothing for one that cannot be read.
fn document(content_type: Option<&str>, body: &[u8]) -> Option<Value> {
    match content_type {
        Some(patch) if patch.ends_with("+json") => serde_json::from_slice(body).ok(),
        Some(patch) if patch.ends_with("+yaml") => Some(yaml::parse(body).ok()?.0),
        content_type => match Media::of_body(content_type).ok()? {
            Media::Json => serde_json::from_slice(body).ok(),
            Media::Yaml => Some(yaml::parse(body).ok()?.0),
            Media::Protobuf => {
                let unknown = envelope::unwrap(body).ok()?;
                let known = GroupVersionKind::parse(unknown.api_version, unknown.kind);
                let kind = kind(&known.group, &known.version, &known.kind)?;
                let mut decoded = decode_protobuf(kind.message, unknown.raw).ok()?;
                decoded["kind"] = unknown.kind.into();
                decoded["apiVersion"] = unknown.api_version.into();
                Some(decoded)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_tokens_are_known_wherever_they_are_sent() {
        let wanted = |group: &str, resource: &str, subresource: &str| Attributes {
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            ..Attributes::default()
        };
        for (group, resource, subresource, secret) in [
            ("", "secrets", "", true),
            ("", "serviceaccounts", "token", true),
            ("", "serviceaccounts", "", false),
            ("authentication.k8s.io", "tokenreviews", "", true),
            ("", "configmaps", "", false),
            ("example.com", "secrets", "", false),
        ] {
            assert_eq!(
                holds_secrets(&wanted(group, resource, subresource)),
                secret,
                "{group}/{resource}/{subresource}"
            );
        }
    }

    #[test]
    fn what_holds_a_secret_is_known_by_its_kind_too() {
        for (document, secret) in [
            (json!({"kind": "Secret", "data": {}}), true),
            (
                json!({"kind": "List", "items": [{"kind": "Pod"}, {"kind": "Secret"}]}),
                true,
            ),
            (json!({"kind": "SecretList", "items": []}), true),
            (json!({"kind": "TokenReview"}), true),
            (json!({"kind": "TokenRequest"}), true),
            (json!({"kind": "ConfigMap", "data": {"kind": "Secret"}}), false),
            (json!([{"op": "add"}]), false),
        ] {
            assert_eq!(is_of_secrets(&document), secret, "{document}");
        }
    }

    #[test]
    fn bodies_become_json_on_one_line() {
        let json = br#"{"a": "line one\nline two",
            "b": [1, 2]}"#;
        let expected = json!({"a": "line one\nline two", "b": [1, 2]});
        for (content_type, body, document) in [
            (None, &json[..], Some(expected.clone())),
            (Some("application/json"), json, Some(expected.clone())),
            (
                Some("application/strategic-merge-patch+json"),
                json,
                Some(expected.clone()),
            ),
            (
                Some("application/yaml"),
                b"a: \"line one\\nline two\"\nb: [1, 2]\n",
                Some(expected.clone()),
            ),
            (Some("application/apply-patch+yaml"), json, Some(expected)),
            (Some("application/json"), b"{", None),
            (Some("text/plain"), json, None),
            (Some("application/vnd.kubernetes.protobuf"), json, None),
        ] {
            assert_eq!(super::document(content_type, body), document, "{content_type:?}");
        }
        assert!(!Value::from("line one\nline two").to_string().contains('\n'));
    }
}
