//! From an answer or a failure to what goes over the wire.

use std::{
    convert::Infallible,
    io::Write,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::{StreamExt, stream::BoxStream};
use hotmap_object::{GroupVersionKind, Status};
use hyper::{
    Response, StatusCode,
    body::{Frame, SizeHint},
    header::{
        ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap,
        HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT, VARY, WARNING, X_CONTENT_TYPE_OPTIONS,
    },
};
use tokio_util::sync::CancellationToken;

use super::{
    encoding,
    negotiation::{Accept, Media, Offer},
    pretty,
};
use crate::{
    answer::{Answer, Body},
    audit::Record,
    metrics::Counted,
    request::Query,
    uuid,
};

/// The media type of answers that are no objects.
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// Smaller bodies are not worth compressing; upstream's threshold.
const GZIP_BYTES_MIN: usize = 128 * 1024;
/// All `Warning` headers together have at most this many characters …
const WARNINGS_CHARS_MAX: usize = 4096;
/// … and when they had more, each is cut to this.
const WARNING_CHARS_MAX: usize = 256;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// What a client wants of every answer, whatever the answer is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) accept: Accept,
    pub(crate) is_pretty: bool,
    pub(crate) takes_gzip: bool,
    /// A HEAD request: the answer has no body.
    pub(crate) head_only: bool,
    pub(crate) audit_id: Option<HeaderValue>,
}

impl Wishes {
    pub(crate) fn new(headers: &HeaderMap, query: &Query, head_only: bool) -> Self {
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
                .unwrap_or_default()
        };
        let encodings = text(ACCEPT_ENCODING).split(',');
        let mut gzip = encodings.filter_map(|one| one.trim().strip_prefix("gzip"));
        Self {
            accept: Accept::parse(text(hyper::header::ACCEPT)),
            is_pretty: is_pretty(query, text(USER_AGENT)),
            takes_gzip: gzip.any(|parameters| !parameters.replace(' ', "").contains(";q=0")),
            head_only,
            audit_id: headers.get(AUDIT_ID).cloned(),
        }
    }
}

/// Follows `isPrettyPrint` in `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go`, Kubernetes 1.36.
fn is_pretty(query: &Query, user_agent: &str) -> bool {
    match query.text("pretty") {
        Some(raw) => matches!(raw, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => ["curl", "Wget", "Mozilla/5.0"]
            .into_iter()
            .any(|human| user_agent.starts_with(human)),
    }
}

/// The bytes of a response.
pub(crate) struct ResponseBody {
    content: Content,
    /// Keeps the count of open streams.
    _counted: Option<Counted>,
    /// Writes its last line when the body ends.
    _audited: Option<Record>,
}

enum Content {
    Full(Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl ResponseBody {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self {
            content: Content::Full(bytes.into()),
            _counted: None,
            _audited: None,
        }
    }

    /// Lets the record of the request end with this body.
    pub(crate) fn audited(mut self, record: Record) -> Self {
        self._audited = Some(record);
        self
    }

    /// Counts this body as open until it ends or the client leaves.
    pub(crate) fn counted(mut self, counted: Counted) -> Self {
        self._counted = Some(counted);
        self
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            Content::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Stream(stream) => stream
                .as_mut()
                .poll_next(context)
                .map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// The response to an answer. Streams end when `stopping` is cancelled.
pub(crate) async fn of_answer(
    answer: Answer,
    wishes: &Wishes,
    stopping: &CancellationToken,
) -> Response<ResponseBody> {
    let mut headers = HeaderMap::new();
    let content_type = HeaderValue::try_from(&*answer.content_type).expect("media types are plain text");
    let is_json = answer.content_type == Media::Json.content_type();
    headers.insert(CONTENT_TYPE, content_type);
    headers.extend(answer.headers);
    for warning in warnings(&answer.warnings) {
        headers.append(WARNING, warning);
    }
    let body = match answer.body {
        Body::Full(bytes) => {
            let bytes = if wishes.is_pretty && is_json {
                blocking(move || pretty::indent(&bytes)).await
            } else {
                bytes
            };
            ResponseBody::full(compressed(bytes, wishes, &mut headers).await)
        }
        Body::Stream(stream) => {
            let stream = stream.take_until(stopping.clone().cancelled_owned()).boxed();
            ResponseBody {
                content: Content::Stream(stream),
                _counted: None,
                _audited: None,
            }
        }
    };
    finish(answer.code, headers, body, wishes)
}

/// The response to a failure: a `Status` document in the media type the client takes, JSON if it takes none.
pub(crate) fn of_status(status: &Status, wishes: &Wishes) -> Response<ResponseBody> {
    let gvk = GroupVersionKind::fixed("", "v1", "Status");
    let value = status.to_value();
    let media = wishes
        .accept
        .negotiate(Offer::Plain)
        .map_or(Media::Json, |chosen| chosen.media);
    let (media, mut body) = match encoding::encode(&value, &gvk, media) {
        Ok(body) => (media, body),
        Err(_) => (Media::Json, Bytes::from(value.to_string())),
    };
    if wishes.is_pretty && media == Media::Json {
        body = pretty::indent(&body);
    }
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    if matches!(status.code, 401 | 403) {
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    let retry_after = status
        .details
        .as_ref()
        .map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        headers.insert(RETRY_AFTER, retry_after.into());
    }
    finish(status.code, headers, ResponseBody::full(body), wishes)
}

/// A plain text, as Go's `http.Error` and mux send it.
pub(crate) fn of_text(code: u16, text: impl Into<Bytes>, wishes: &Wishes) -> Response<ResponseBody> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PLAIN_TEXT));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    finish(code, headers, ResponseBody::full(text), wishes)
}

/// The same answer, with a warning.
pub(crate) fn warned(mut response: Response<ResponseBody>, warning: String) -> Response<ResponseBody> {
    for header in warnings(&[warning]) {
        response.headers_mut().append(WARNING, header);
    }
    response
}

/// The headers that every answer has.
pub(crate) fn finish(
    code: u16,
    headers: HeaderMap,
    body: ResponseBody,
    wishes: &Wishes,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    let headers = response.headers_mut();
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-cache, private"));
    headers.insert(AUDIT_ID, wishes.audit_id.clone().unwrap_or_else(new_audit_id));
    if wishes.head_only {
        if let Content::Full(bytes) = &response.body().content {
            let length = bytes.len();
            response.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        *response.body_mut() = ResponseBody::full(Bytes::new());
    }
    response
}

async fn compressed(bytes: Bytes, wishes: &Wishes, headers: &mut HeaderMap) -> Bytes {
    if bytes.len() <= GZIP_BYTES_MIN || !wishes.takes_gzip || headers.contains_key(CONTENT_ENCODING) {
        return bytes;
    }
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    blocking(move || {
        let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(1));
        encoder
            .write_all(&bytes)
            .expect("writing to memory does not fail");
        encoder.finish().expect("writing to memory does not fail").into()
    })
    .await
}

/// Work over large bodies takes milliseconds: not on the threads that serve.
async fn blocking(work: impl FnOnce() -> Bytes + Send + 'static) -> Bytes {
    tokio::task::spawn_blocking(work)
        .await
        .expect("formatting a body does not panic")
}

fn new_audit_id() -> HeaderValue {
    let mut id = HeaderValue::try_from(uuid::distinct()).expect("a uuid is plain text");
    // No secret, but never the same again: HTTP/2 must not put it into its table of headers that repeat, where it would
    // drive out those that do and cost a search for each answer.
    id.set_sensitive(true);
    id
}

/// Follows `apiserver/pkg/endpoints/filters/warning.go`, Kubernetes 1.36: each text once, and less of each if they are
/// too much together.
fn warnings(texts: &[String]) -> Vec<HeaderValue> {
    let mut distinct: Vec<&str> = Vec::new();
    for text in texts {
        if !text.is_empty() && !distinct.contains(&text.as_str()) {
            distinct.push(text);
        }
    }
    let total: usize = distinct.iter().map(|text| text.chars().count()).sum();
    let cut = if total > WARNINGS_CHARS_MAX {
        WARNING_CHARS_MAX
    } else {
        usize::MAX
    };
    let mut left = WARNINGS_CHARS_MAX;
    let mut sent = Vec::new();
    for text in distinct {
        let text: String = text.chars().take(cut).filter(|c| !c.is_control()).collect();
        let Some(rest) = left.checked_sub(text.chars().count()) else {
            break;
        };
        left = rest;
        let quoted = text.replace('\\', r"\\").replace('"', r#"\""#);
        sent.extend(HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()));
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_said_once_and_bounded() {
        let said = |texts: &[String]| -> Vec<String> {
            let headers = warnings(texts).into_iter();
            headers
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                .collect()
        };
        let unknown = r#"unknown field "foo""#.to_owned();
        assert_eq!(
            said(&[unknown.clone(), unknown]),
            [r#"299 - "unknown field \"foo\"""#]
        );
        let long: Vec<String> = (0..30).map(|at| format!("{at:02}{}", "x".repeat(300))).collect();
        let cut = said(&long);
        assert_eq!(cut.len(), WARNINGS_CHARS_MAX / WARNING_CHARS_MAX);
        assert!(
            cut.iter()
                .all(|one| one.len() == WARNING_CHARS_MAX + r#"299 - """#.len())
        );
    }

    #[test]
    fn people_get_pretty_json() {
        for (query, agent, pretty) in [
            ("", "curl/8.0", true),
            ("pretty=false", "curl/8.0", false),
            ("pretty=1", "kubectl/v1.36", true),
            ("", "kubectl/v1.36", false),
        ] {
            assert_eq!(is_pretty(&Query::parse(query), agent), pretty, "{query} {agent}");
        }
    }
}
