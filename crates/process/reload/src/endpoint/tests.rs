//! What is asked of the endpoint and answered, by request.

mod ack;
mod config;
mod connections;
mod document;
mod events;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream;
use hotmap_projection::{Change, KeyChange, Revision, Snapshot};
use hotmap_volume::{AtomicWriter, Directory, Durability, FileMode, Options, Payload, PayloadFile};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH};
use hyper::{Request, Response};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::answer::AnswerBody;
use super::*;
use crate::metric_names::MetricNames;
use crate::metrics::Metrics;
use crate::progress::{Phase, Progress, VolumeProgress};

const LOOPBACK: &str = "127.0.0.1:7070";

/// What is behind an endpoint: volumes in a temporary directory, and somebody who tells of progress.
struct Bench {
    directory: tempfile::TempDir,
    progress: watch::Sender<Progress>,
    sources: Sources,
}

impl Bench {
    /// Volumes of these names, each projected, with the file `app.yaml`, and not loaded yet.
    fn new(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &&str| directory.path().join(name);
        let paths: Vec<PathBuf> = names.iter().map(path).collect();
        let volumes = paths.iter().map(|path| VolumeProgress {
            path: path.clone(),
            seen: None,
            told: None,
            loaded: None,
        });
        let volumes = volumes.collect();
        let (progress, receiver) = watch::channel(Progress {
            volumes,
            phase: Phase::Starting,
            deaf: None,
        });
        let secrecy = Secrecy {
            secret: Vec::new(),
            public: paths.clone(),
        };
        let sources = Sources {
            standing: Standing::new(receiver, true),
            changes: Changes::default(),
            secrecy: Arc::new(secrecy),
            health: HealthRule::default(),
            metrics: EndpointMetrics::new(Metrics::new(MetricNames::Hotmap)),
        };
        for path in &paths {
            std::fs::create_dir(path).unwrap();
        }
        let bench = Self {
            directory,
            progress,
            sources,
        };
        for name in names {
            bench.write(name, &[("app.yaml", b"level: info\n")]);
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Swaps what is in a volume, and says nothing of it.
    fn write(&self, name: &str, files: &[(&str, &[u8])]) -> Revision {
        let path = self.path(name);
        let options = Options {
            durability: Durability::Process,
            ..Options::default()
        };
        let mut payload = Payload::new();
        for (key, value) in files {
            let mode = FileMode::new(0o644).unwrap();
            payload
                .insert(key.parse().unwrap(), PayloadFile::new(value.to_vec(), mode))
                .unwrap();
        }
        AtomicWriter::new(Directory::open(&path).unwrap(), options)
            .write(&payload)
            .unwrap();
        Snapshot::open(&path).unwrap().revision().clone()
    }

    /// A change that was seen, has passed the check and was loaded.
    fn load(&self, name: &str, files: &[(&str, &[u8])]) -> Revision {
        let revision = self.write(name, files);
        let keys = files
            .iter()
            .map(|(key, _)| KeyChange::Modified((*key).into()))
            .collect();
        self.loaded(name, &revision, keys);
        revision
    }

    fn loaded(&self, name: &str, revision: &Revision, keys: Vec<KeyChange>) {
        let path = self.path(name);
        self.sources.changes.passed(&[Change {
            path: Arc::new(path.clone()),
            revision: revision.clone(),
            keys: keys.into(),
            is_initial: false,
            seen: Instant::now(),
        }]);
        self.progress.send_modify(|progress| {
            for volume in progress.volumes.iter_mut().filter(|volume| volume.path == path) {
                volume.seen = Some(revision.clone());
                volume.loaded = Some(revision.clone());
            }
            progress.phase = Phase::Loaded;
        });
    }

    fn mark_secret(&mut self, name: &str) {
        self.sources.secrecy = Arc::new(Secrecy {
            secret: vec![self.path(name)],
            ..Secrecy::default()
        });
    }

    async fn get(&self, door: Door, uri: &str, headers: &[(&str, &str)]) -> Answered {
        self.ask(door, "GET", uri, headers, "").await
    }

    async fn post(&self, body: &str) -> Answered {
        self.ask(Door::Unix, "POST", "/v1/ack", &[], body).await
    }

    async fn ask(
        &self,
        door: Door,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if headers.iter().all(|(name, _)| *name != "host") {
            request = request.header(HOST, LOOPBACK);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        Answered::of(self.sources.answer(door, request).await).await
    }
}

fn loopback() -> Door {
    Door::Loopback(LOOPBACK.parse().unwrap())
}

/// An answer, read to its end.
#[derive(Debug)]
struct Answered {
    status: u16,
    etag: Option<String>,
    content_type: Option<String>,
    body: Bytes,
}

impl Answered {
    async fn of(answer: Response<AnswerBody>) -> Self {
        let header = |name| {
            answer
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let (status, etag, content_type) = (answer.status().as_u16(), header(ETAG), header(CONTENT_TYPE));
        // A stream has no end.
        let body = match content_type.as_deref() {
            Some("text/event-stream") => Bytes::new(),
            _ => answer.into_body().collect().await.unwrap().to_bytes(),
        };
        Self {
            status,
            etag,
            content_type,
            body,
        }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
