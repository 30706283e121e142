//! `POST /v1/ack`: a program says what it has loaded.

use std::time::Duration;

use bytes::Bytes;
use hotmap_projection::Revision;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;
use serde::Deserialize;
use serde_json::json;

use super::answer::{Answer, Refusal, json_answer};
use super::content::{self, Want};
use super::query::Query;
use super::router::Sources;
use super::standing::Acknowledgement;
use super::volumes::select;
use crate::progress::Progress;

/// Bytes of an acknowledgement: a revision, a volume, and a sentence about what went wrong.
const ACK_BYTES_MAX: usize = 4_096;
/// How long a client may take to send it.
const ACK_TIME_MAX: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ack {
    revision: String,
    ok: bool,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    volume: Option<String>,
}

/// Notes what a program says.
pub(crate) async fn take<B>(sources: &Sources, query: &str, body: B) -> Result<Answer, Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Query::parse(query, &[]).map_err(|message| Refusal::new(400, message))?;
    let ack = read(body).await?;
    let progress = sources.standing.now();
    let index = match &ack.volume {
        Some(volume) => Some(select(&progress, Some(volume))?),
        None => None,
    };
    let index = shown_by(sources, &progress, index, &ack.revision).await?;
    let acknowledgement = Acknowledgement {
        revision: Revision::new(ack.revision),
        is_ok: ack.ok,
        message: ack.message.filter(|message| !message.is_empty()),
    };
    sources.metrics.acknowledged(acknowledgement.is_ok);
    sources
        .standing
        .acknowledge(&progress.volumes[index].path, acknowledgement);
    Ok(json_answer(&json!({"ok": true})))
}

async fn read<B>(body: B) -> Result<Ack, Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let body = Limited::new(body, ACK_BYTES_MAX).collect();
    let body = tokio::time::timeout(ACK_TIME_MAX, body).await.map_err(|_| {
        Refusal::new(
            408,
            format!("the body did not come within {} s", ACK_TIME_MAX.as_secs()),
        )
    })?;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => Refusal::new(
            413,
            format!("an acknowledgement has at most {ACK_BYTES_MAX} bytes"),
        ),
        false => Refusal::new(400, format!("the body broke off: {error}")),
    })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|error| Refusal::new(400, format!("the body is no acknowledgement: {error}")))
}

/// Which volume has shown this revision: this one, or any.
async fn shown_by(
    sources: &Sources,
    progress: &Progress,
    asked: Option<usize>,
    revision: &str,
) -> Result<usize, Refusal> {
    let candidates: Vec<usize> = (0..progress.volumes.len())
        .filter(|index| asked.is_none_or(|asked| asked == *index))
        .collect();
    let has_shown = |index: &&usize| {
        let volume = &progress.volumes[**index];
        let known = [&volume.seen, &volume.loaded].into_iter().flatten();
        known.map(Revision::as_str).any(|known| known == revision)
            || sources.changes.has(&volume.path, revision)
    };
    if let Some(index) = candidates.iter().find(has_shown) {
        return Ok(*index);
    }
    // A program that reads the files may be faster than their watcher.
    for index in candidates {
        let content = content::read(&progress.volumes[index].path, Want::Names).await;
        if content.is_ok_and(|content| content.revision.as_str() == revision) {
            return Ok(index);
        }
    }
    Err(Refusal::new(
        409,
        format!(
            "no watched path has shown the revision {revision:?} lately: ask GET /v1/config which there is"
        ),
    ))
}
