//! A watch: one JSON document per line, for as long as the server likes.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use hotmap_object::Status;
use hotmap_trace::TraceContext;
use hyper::body::{Body, Incoming};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ClientError;
use crate::lines::{LINE_BYTES_MAX, LineTooLong, Lines};
use crate::object::RawObject;
use crate::pool::Lease;

/// What a watch says.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent {
    /// The object is new, or began to match the selectors.
    Added(RawObject),
    /// The object changed.
    Modified(RawObject),
    /// The object is gone, or ceased to match; its last state with the revision of the deletion.
    Deleted(RawObject),
    /// Nothing happened up to this revision: a watch may go on from here.
    Bookmark {
        /// The revision.
        resource_version: String,
        /// Whether all objects that existed at the start were sent before this.
        initial_events_end: bool,
    },
    /// The watch ends here; 410 means that its start is too old.
    Error(Status),
}

impl WatchEvent {
    /// Reads one line of a watch.
    ///
    /// # Errors
    /// [`ClientError::Decode`] when it is no event.
    pub(crate) fn from_line(line: &Bytes) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct Frame<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            object: &'a RawValue,
            #[serde(default, rename = "committedUnixNano")]
            committed: Option<u64>,
            #[serde(borrow, default)]
            traceparent: Option<Cow<'a, str>>,
        }
        let failed = |error: serde_json::Error| ClientError::decode("watch event", &error);
        let frame: Frame<'_> = serde_json::from_slice(line).map_err(failed)?;
        let trace = frame.traceparent.as_ref();
        let trace = trace.and_then(|text| TraceContext::parse(text.as_bytes()));
        let object = || {
            RawObject::copied_from(frame.object)
                .map(|object| object.committed_at(frame.committed).traced(trace))
        };
        match &*frame.kind {
            "ADDED" => object().map(Self::Added),
            "MODIFIED" => object().map(Self::Modified),
            "DELETED" => object().map(Self::Deleted),
            "BOOKMARK" => bookmark(frame.object.get()).map_err(failed),
            "ERROR" => serde_json::from_str(frame.object.get())
                .map(Self::Error)
                .map_err(failed),
            _ => Err(ClientError::Decode {
                why: "watch event of an unknown type".to_owned(),
            }),
        }
    }
}

fn bookmark(json: &str) -> Result<WatchEvent, serde_json::Error> {
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        resource_version: String,
        #[serde(default)]
        annotations: Option<Annotations>,
    }
    #[derive(Deserialize)]
    struct Annotations {
        #[serde(default, rename = "k8s.io/initial-events-end")]
        initial_events_end: Option<String>,
    }
    let Metadata {
        resource_version,
        annotations,
    } = serde_json::from_str::<Bookmark>(json)?.metadata;
    let end = annotations.and_then(|annotations| annotations.initial_events_end);
    Ok(WatchEvent::Bookmark {
        resource_version,
        initial_events_end: end.as_deref() == Some("true"),
    })
}

/// The events of one watch, in order. It ends without an error when the server ends it, which servers do after
/// some minutes. After an error it is over. Dropping it ends the watch at the server.
pub struct WatchStream {
    body: Option<Incoming>,
    lines: Lines,
    _lease: Lease,
}

impl WatchStream {
    pub(crate) fn new(body: Incoming, lease: Lease) -> Self {
        Self {
            body: Some(body),
            lines: Lines::default(),
            _lease: lease,
        }
    }

    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ClientError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<WatchEvent, ClientError>>> {
        loop {
            match self.lines.next_line() {
                Ok(Some(line)) => return Poll::Ready(Some(WatchEvent::from_line(&line))),
                Ok(None) => {}
                Err(LineTooLong) => {
                    return Poll::Ready(Some(Err(ClientError::TooLarge {
                        limit: LINE_BYTES_MAX,
                    })));
                }
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(None);
            };
            match ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Some(chunk) = frame.data_ref() {
                        self.lines.push(chunk);
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(ClientError::transport(error)))),
                None if self.lines.is_empty() => return Poll::Ready(None),
                None => {
                    let why = "the watch ended within an event".to_owned();
                    return Poll::Ready(Some(Err(ClientError::Decode { why })));
                }
            }
        }
    }
}

impl Stream for WatchStream {
    type Item = Result<WatchEvent, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(self.poll_event(cx));
        if !matches!(event, Some(Ok(_))) {
            self.body = None;
            self.lines = Lines::default();
        }
        Poll::Ready(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &'static str) -> Result<WatchEvent, ClientError> {
        WatchEvent::from_line(&Bytes::from_static(line.as_bytes()))
    }

    #[test]
    fn lines_become_events() {
        for (line, shown) in [
            (
                r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}"#,
                "Added(/a@1 (47 bytes))",
            ),
            (
                r#"{"object":{"metadata":{"name":"a"}},"type":"DELETED"}"#,
                "Deleted(/a@ (25 bytes))",
            ),
            (
                r#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"5"}}}"#,
                r#"Bookmark { resource_version: "5", initial_events_end: false }"#,
            ),
            (
                r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
                r#"Bookmark { resource_version: "5", initial_events_end: true }"#,
            ),
        ] {
            assert_eq!(format!("{:?}", read(line).unwrap()), shown);
        }
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","code":410,"reason":"Expired","message":"too old resource version: 1 (5)"}}"#;
        let Ok(WatchEvent::Error(status)) = read(gone) else {
            panic!("no error event")
        };
        assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    }

    #[test]
    fn an_event_may_name_its_trace() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (named, trace) in [
            (String::new(), None),
            (format!(r#","traceparent":"{parent}""#), Some(parent)),
            (r#","traceparent":"00-hunter2""#.to_owned(), None),
        ] {
            let line = format!(r#"{{"type":"MODIFIED","object":{{"metadata":{{"name":"a"}}}}{named}}}"#);
            let Ok(WatchEvent::Modified(object)) = WatchEvent::from_line(&line.into()) else {
                panic!("no event with {named:?}");
            };
            assert_eq!(object.trace().map(|trace| trace.to_string()).as_deref(), trace);
        }
    }

    #[test]
    fn what_is_no_event_is_an_error_that_quotes_nothing() {
        for line in [
            "hunter2",
            r#"{"type":"hunter2","object":{}}"#,
            r#"{"type":"ADDED"}"#,
            r#"{"type":"ADDED","object":"hunter2"}"#,
            r#"{"type":"BOOKMARK","object":{}}"#,
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
