//! Bodies and refusals.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

/// The body of every answer.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;
/// What goes back.
pub(crate) type Answer = Response<AnswerBody>;

/// A request that is not done, and what the client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

impl From<(u16, String)> for Refusal {
    fn from((status, message): (u16, String)) -> Self {
        Self { status, message }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let mut answer = json_answer(&json!({"error": refusal.message}));
        *answer.status_mut() =
            StatusCode::from_u16(refusal.status).expect("refusals are made with statuses of HTTP");
        answer
    }
}

/// 200 with a document.
pub(crate) fn json_answer(document: &Value) -> Answer {
    whole("application/json", format!("{document}\n"))
}

/// 200 with these bytes.
pub(crate) fn whole(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    typed(content_type, Full::new(body.into()).boxed_unsync())
}

/// 200 with this body.
pub(crate) fn typed(content_type: &'static str, body: AnswerBody) -> Answer {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // What is true now is no business of caches.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The client has it already.
pub(crate) fn not_modified(etag: HeaderValue) -> Answer {
    let mut answer = Response::new(Empty::new().boxed_unsync());
    *answer.status_mut() = StatusCode::NOT_MODIFIED;
    answer.headers_mut().insert(ETAG, etag);
    answer
}

/// The path is there, and not for this method.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Answer {
    let mut answer = Answer::from(Refusal::new(405, format!("only {allowed} is known here")));
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}
