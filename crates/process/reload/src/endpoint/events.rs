//! `GET /v1/events`: changes as server-sent events.
//!
//! The stream is made as it is taken: a client that takes nothing holds a cursor, not a queue.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use hotmap_projection::KeyChange;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::HeaderMap;
use serde_json::json;

use super::answer::{Answer, Refusal, typed};
use super::changes::{Cursor, Passed, TooFarBehind};
use super::metrics::EndpointMetrics;
use super::query::Query;
use super::router::Sources;
use super::standing::Standing;
use super::volumes::{names, select};
use crate::progress::Progress;

/// How often a quiet stream shows that it lives: below the minute after which many things in between give up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long `EventSource` and its like wait before they connect again.
const RETRY: &str = "retry: 1000\n\n";
const LAST_EVENT_ID: &str = "last-event-id";

/// A stream of changes, of one watched path or of all.
pub(crate) fn stream(sources: &Sources, query: &str, headers: &HeaderMap) -> Result<Answer, Refusal> {
    let query = Query::parse(query, &["volume"]).map_err(|message| Refusal::new(400, message))?;
    if let Some(volume) = &query.volume {
        select(&sources.standing.now(), Some(volume))?;
    }
    let last_id = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let resumed = last_id.and_then(|id| sources.changes.after(id));
    let (first, cursor) = match resumed {
        Some(cursor) => (Vec::new(), cursor),
        None => sources.changes.current(),
    };
    let mut telling = Telling {
        standing: sources.standing.clone(),
        metrics: sources.metrics.clone(),
        volume: query.volume,
        cursor,
        ready: VecDeque::new(),
    };
    telling.ready.push_back(Bytes::from_static(RETRY.as_bytes()));
    for change in first {
        let text = telling.text(&change, true);
        telling.ready.extend(text);
    }
    let body = StreamBody::new(stream::unfold(telling, |mut telling| async move {
        let Ok(text) = telling.next().await else {
            telling.metrics.cut_off();
            return None;
        };
        Some((Ok::<_, Infallible>(Frame::data(text)), telling))
    }));
    Ok(typed("text/event-stream", body.boxed_unsync()))
}

struct Telling {
    standing: Standing,
    metrics: EndpointMetrics,
    volume: Option<String>,
    cursor: Cursor,
    ready: VecDeque<Bytes>,
}

impl Telling {
    /// What is told next. Ends the stream for a client that is too far behind: it connects again, and is told what is
    /// there then.
    async fn next(&mut self) -> Result<Bytes, TooFarBehind> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                return Ok(text);
            }
            let Ok(change) = tokio::time::timeout(KEEP_ALIVE, self.cursor.next()).await else {
                return Ok(Bytes::from_static(b":\n\n"));
            };
            let text = self.text(&change?, false);
            self.ready.extend(text);
        }
    }

    /// An event, unless it is of a path that was not asked for.
    fn text(&self, change: &Passed, is_current: bool) -> Option<Bytes> {
        let progress = self.standing.now();
        let index = index_of(&progress, change)?;
        if let Some(volume) = &self.volume
            && select(&progress, Some(volume)) != Ok(index)
        {
            return None;
        }
        let name = &names(&progress)[index];
        let revision = change.revision.as_str();
        let (event, data) = match is_current {
            true => ("current", json!({"volume": name, "revision": revision})),
            false => {
                let keys = |pick: fn(&KeyChange) -> bool| -> Vec<&str> {
                    change
                        .keys
                        .iter()
                        .filter(|key| pick(key))
                        .map(KeyChange::key)
                        .collect()
                };
                let data = json!({
                    "volume": name,
                    "revision": revision,
                    "added": keys(|key| matches!(key, KeyChange::Added(_))),
                    "modified": keys(|key| matches!(key, KeyChange::Modified(_))),
                    "removed": keys(|key| matches!(key, KeyChange::Removed(_))),
                });
                ("change", data)
            }
        };
        Some(format!("event: {event}\nid: {revision}\ndata: {data}\n\n").into())
    }
}

fn index_of(progress: &Progress, change: &Passed) -> Option<usize> {
    progress
        .volumes
        .iter()
        .position(|volume| volume.path == *change.path)
}
