//! `GET /v1/config` and `GET /v1/config/KEY`.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{ETAG, HeaderMap};
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::answer::{Answer, Refusal, json_answer, not_modified, whole};
use super::content::{self, Content, Want};
use super::door::Door;
use super::etag::{Known, etag};
use super::query::Query;
use super::router::Sources;
use super::volumes::{names, select};
use crate::progress::{Phase, Progress, VolumeProgress};

/// One revision of each watched path, and how far it has come.
pub(crate) async fn all(sources: &Sources, door: Door, query: &str) -> Result<Answer, Refusal> {
    let query = Query::parse(query, &["volume", "values"]).map_err(|message| Refusal::new(400, message))?;
    let progress = sources.shown_to(door).await;
    let only = match &query.volume {
        Some(volume) => Some(select(&progress, Some(volume))?),
        None => None,
    };
    let mut volumes = Vec::new();
    for (index, (volume, name)) in progress.volumes.iter().zip(names(&progress)).enumerate() {
        if only.is_none_or(|only| only == index) {
            volumes.push(document_of(sources, door, volume, &name, query.values).await);
        }
    }
    let mut document = Map::new();
    let (phase, reason) = phase_of(&progress);
    document.insert("phase".to_owned(), phase.into());
    document.extend(reason.map(|reason| ("reason".to_owned(), reason.into())));
    document.extend(
        progress
            .deaf
            .as_ref()
            .map(|why| ("deaf".to_owned(), why.as_str().into())),
    );
    document.insert("volumes".to_owned(), Value::Array(volumes));
    Ok(json_answer(&Value::Object(document)))
}

/// One file, as it is; with `wait` not before there is another revision than the client has.
pub(crate) async fn key(
    sources: &Sources,
    door: Door,
    key: &str,
    query: &str,
    headers: &HeaderMap,
) -> Result<Answer, Refusal> {
    let query = Query::parse(query, &["volume", "wait"]).map_err(|message| Refusal::new(400, message))?;
    let known = Known::of(headers);
    let deadline = Instant::now() + query.wait.unwrap_or(Duration::ZERO);
    let mut standing = sources.standing.watch();
    let mut changes = sources.changes.subscribe();
    loop {
        // What comes while this looks is another look.
        changes.mark_unchanged();
        let progress = standing.now();
        let volume = &progress.volumes[select(&progress, query.volume.as_deref())?];
        // Who waits is told of what has passed the check; who asks gets what is there.
        let told = sources.changes.newest_of(&volume.path);
        let is_told = query.wait.is_none() || told.is_none_or(|told| !known.has(&told));
        if is_told || Instant::now() >= deadline {
            let content = read_key(sources, door, volume, key).await?;
            if !known.has(&content.revision) {
                return answer_with(content, key, volume);
            }
            if Instant::now() >= deadline {
                return Ok(not_modified(etag(&content.revision)));
            }
        }
        tokio::select! {
            changed = changes.changed() => changed.expect("the sources hold the sender"),
            changed = standing.changed() => {
                changed.map_err(|_| Refusal::new(503, "the program is ending"))?;
            }
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}

async fn read_key(
    sources: &Sources,
    door: Door,
    volume: &VolumeProgress,
    key: &str,
) -> Result<Content, Refusal> {
    let read = content::read(&volume.path, Want::Key(key.to_owned())).await;
    let content = read.map_err(|error| Refusal::new(503, error))?;
    // Only what is in the volume is looked at: a key is what a client says, and may lead anywhere.
    let keys = content.values.keys().cloned().collect();
    if !door.has_secrets()
        && let Some(reason) = withheld(sources, volume, keys).await
    {
        return Err(Refusal::new(403, reason));
    }
    Ok(content)
}

fn answer_with(mut content: Content, key: &str, volume: &VolumeProgress) -> Result<Answer, Refusal> {
    let Some(value) = content.values.remove(key) else {
        let (path, revision) = (volume.path.display(), &content.revision);
        return Err(Refusal::new(
            404,
            format!("there is no file {key:?} in revision {revision} of {path}"),
        ));
    };
    let content_type = match std::str::from_utf8(&value) {
        Ok(_) => "text/plain; charset=utf-8",
        Err(_) => "application/octet-stream",
    };
    let mut answer = whole(content_type, value);
    answer.headers_mut().insert(ETAG, etag(&content.revision));
    Ok(answer)
}

async fn document_of(
    sources: &Sources,
    door: Door,
    volume: &VolumeProgress,
    name: &str,
    has_values: bool,
) -> Value {
    let mut document = Map::new();
    let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
    put("volume", name.into());
    put("path", volume.path.display().to_string().into());
    put(
        "seen",
        volume.seen.as_ref().map(|revision| revision.as_str()).into(),
    );
    put(
        "loaded",
        volume.loaded.as_ref().map(|revision| revision.as_str()).into(),
    );
    let names = content::read(&volume.path, Want::Names).await;
    let keys = names.as_ref().map(|names| names.keys.clone()).unwrap_or_default();
    let secret = withheld(sources, volume, keys).await;
    put("secret", secret.is_some().into());
    if let Some(word) = sources.standing.acknowledged(&volume.path) {
        let mut acknowledged = json!({"revision": word.revision.as_str(), "ok": word.is_ok});
        if let Some(message) = word.message
            && (secret.is_none() || door.has_secrets())
        {
            acknowledged["message"] = message.into();
        }
        put("acknowledged", acknowledged);
    }
    let content = match secret {
        Some(reason) if has_values && !door.has_secrets() => {
            put("withheld", reason.into());
            names
        }
        _ if !has_values || names.is_err() => names,
        _ => content::read(&volume.path, Want::All).await,
    };
    match content {
        Ok(content) => {
            put("revision", content.revision.as_str().into());
            put("keys", content.keys.into());
            if !content.values.is_empty() {
                let (data, binary_data) = data_of(content.values);
                put("data", data.into());
                put("binaryData", binary_data.into());
            }
        }
        Err(error) => {
            put("revision", Value::Null);
            put("error", error.into());
        }
    }
    Value::Object(document)
}

/// Text as it is, all else in base64: as in a ConfigMap.
fn data_of(values: impl IntoIterator<Item = (String, Vec<u8>)>) -> (Map<String, Value>, Map<String, Value>) {
    let (mut data, mut binary_data) = (Map::new(), Map::new());
    for (key, value) in values {
        match String::from_utf8(value) {
            Ok(text) => data.insert(key, text.into()),
            Err(error) => binary_data.insert(key, BASE64_STANDARD.encode(error.as_bytes()).into()),
        };
    }
    (data, binary_data)
}

/// Why values of this path are given over the Unix socket only, if they are.
async fn withheld(sources: &Sources, volume: &VolumeProgress, keys: Vec<String>) -> Option<String> {
    let secrecy = Arc::clone(&sources.secrecy);
    let path = volume.path.clone();
    let reason = spawn_blocking(move || secrecy.reason(&path, keys.iter().map(String::as_str))).await;
    reason.unwrap_or_else(|error| Some(error.to_string()))
}

fn phase_of(progress: &Progress) -> (&'static str, Option<&str>) {
    match &progress.phase {
        Phase::Starting => ("starting", None),
        Phase::Loading => ("loading", None),
        Phase::Loaded => ("loaded", None),
        Phase::HeldBack(why) => ("held-back", Some(why)),
        Phase::Failed(why) => ("failed", Some(why)),
    }
}
