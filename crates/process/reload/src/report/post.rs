//! Reports as requests: docs/endpoint.md says what a receiver gets.

use std::time::Duration;

use bytes::Bytes;
use hotmap_client::Backoff;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use tracing::{debug, warn};

use super::statement::{Since, Statements};
use crate::endpoint::{EndpointMetrics, Receiver, Reported};
use crate::http::{HttpClient, HttpError};
use crate::target::webhook::{Credentials, CredentialsError};

/// How long a receiver may take.
pub(super) const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two tries: at first, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Who speaks. What a receiver believes is the token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) node: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) uid: Option<String>,
}

/// Sends reports to one place.
#[derive(Debug)]
pub(crate) struct Post {
    pub(super) client: HttpClient,
    pub(super) path: PathAndQuery,
    pub(super) token: Option<Credentials>,
    pub(super) who: Who,
}

/// A report was not taken. The message names no token.
#[derive(Debug, thiserror::Error)]
enum PostError {
    #[error("--report-token-file: {0}")]
    Token(#[from] CredentialsError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the receiver answers {status}{hint}")]
    Status {
        status: hyper::StatusCode,
        hint: &'static str,
    },
}

impl Post {
    /// Sends what there is to say, and again when it is something else, or was not taken. Until it is dropped.
    pub(super) async fn report(&self, mut statements: Statements, metrics: &EndpointMetrics) {
        let mut backoff = Backoff::seeded(RETRY.0, RETRY.1);
        let mut taken: Vec<Since> = Vec::new();
        let mut told: Option<String> = None;
        loop {
            let latest = statements.now(Timestamp::now).await.to_vec();
            if latest == taken {
                if statements.changed().await.is_err() {
                    return std::future::pending().await;
                }
                continue;
            }
            let Err(error) = self.send(&latest).await else {
                metrics.reported(Receiver::Url, Reported::Taken);
                backoff.reset();
                told = None;
                taken = latest;
                continue;
            };
            let is_answered = matches!(error, PostError::Status { .. });
            metrics.reported(
                Receiver::Url,
                if is_answered {
                    Reported::Refused
                } else {
                    Reported::Unreachable
                },
            );
            let error = error.to_string();
            if told.as_ref() != Some(&error) {
                warn!(%error, "a report of what is loaded is not taken; it is tried again");
                told = Some(error);
            } else {
                debug!(%error, "a report of what is loaded is not taken");
            }
            // What changes meanwhile is in the next try; it comes no sooner, or a receiver in need would get more.
            sleep(backoff.next_delay()).await;
        }
    }

    async fn send(&self, latest: &[Since]) -> Result<(), PostError> {
        let mut request = Request::new(Bytes::from(document(&self.who, latest).to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone().into();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = &self.token {
            // Read for each report, as a projected token is renewed. It is a small file in memory.
            headers.insert(AUTHORIZATION, token.header()?);
        }
        let status = self.client.send(request).await?.status;
        match status.is_success() {
            true => Ok(()),
            false => Err(PostError::Status {
                status,
                hint: hint(status.as_u16(), self.token.is_some()),
            }),
        }
    }
}

fn hint(status: u16, has_token: bool) -> &'static str {
    match status {
        401 if !has_token => "; --report-token-file names a token for it",
        401 | 403 => "; it wants a token of another audience or account",
        300..=399 => "; redirects are not followed: name the place itself in --report-to",
        _ => "",
    }
}

fn document(who: &Who, latest: &[Since]) -> Value {
    let mut document = Map::new();
    if let Some(node) = &who.node {
        document.insert("node".to_owned(), node.as_str().into());
    }
    let parts = [
        ("namespace", &who.namespace),
        ("name", &who.name),
        ("uid", &who.uid),
    ];
    let pod: Map<String, Value> = parts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.as_deref()?.into())))
        .collect();
    if !pod.is_empty() {
        document.insert("pod".to_owned(), pod.into());
    }
    let volumes: Vec<Value> = latest.iter().map(volume).collect();
    document.insert("volumes".to_owned(), volumes.into());
    document.into()
}

fn volume(latest: &Since) -> Value {
    let statement = &latest.statement;
    let mut volume = json!({
        "path": statement.path.display().to_string(),
        "revision": statement.revision.as_str(),
        "ok": statement.is_ok,
        "since": latest.since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    if let Some(message) = &statement.message {
        volume["message"] = message.as_str().into();
    }
    volume
}

#[cfg(test)]
mod tests;
