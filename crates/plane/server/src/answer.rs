//! What comes back from behind the front: a code, a body, and what goes into the headers.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use hyper::header::{HeaderName, HeaderValue};

/// A successful answer; failures are a `Status`.
#[derive(Debug)]
pub(crate) struct Answer {
    /// HTTP status code: 200, 201 or 202.
    pub(crate) code: u16,
    /// The `Content-Type` header, with parameters if the media type has some.
    pub(crate) content_type: Cow<'static, str>,
    /// Headers besides those that every answer gets.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Sentences for `Warning` headers; repeated ones are sent once.
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Body,
}

/// The bytes of an answer.
pub(crate) enum Body {
    /// All of them. JSON is indented and large bodies are compressed on the way out, if the client wants that.
    Full(Bytes),
    /// One frame after the other, each sent at once, until the stream ends or the server stops.
    Stream(BoxStream<'static, Bytes>),
}

impl Answer {
    /// 200 with a whole body.
    pub(crate) fn ok(content_type: impl Into<Cow<'static, str>>, body: impl Into<Bytes>) -> Self {
        Self::new(200, content_type, Body::Full(body.into()))
    }

    /// 200 with a stream: a watch or a followed log.
    pub(crate) fn stream(
        content_type: impl Into<Cow<'static, str>>,
        body: BoxStream<'static, Bytes>,
    ) -> Self {
        Self::new(200, content_type, Body::Stream(body))
    }

    /// Any code with any body.
    pub(crate) fn new(code: u16, content_type: impl Into<Cow<'static, str>>, body: Body) -> Self {
        Self {
            code,
            content_type: content_type.into(),
            headers: Vec::new(),
            warnings: Vec::new(),
            body,
        }
    }

    /// The same answer with another code.
    pub(crate) fn with_code(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    /// The same answer with sentences for `Warning` headers.
    pub(crate) fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// The same answer with one more header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl fmt::Debug for Body {
    // A body may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Full(bytes) => write!(f, "Full({} bytes)", bytes.len()),
            Body::Stream(_) => f.write_str("Stream"),
        }
    }
}
