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

#[tokio::test]
async fn everything_is_said_of_each_volume() {
    let bench = Bench::new(&["app", "site"]);
    let revision = bench.load(
        "app",
        &[("app.yaml", b"level: debug\n"), ("logo.png", &[0x89, b'P', 0xff])],
    );
    let answer = bench.get(loopback(), "/v1/config?volume=app", &[]).await;
    let expected = json!({
        "phase": "loaded",
        "volumes": [{
            "volume": "app",
            "path": bench.path("app").display().to_string(),
            "revision": revision.as_str(),
            "seen": revision.as_str(),
            "loaded": revision.as_str(),
            "secret": false,
            "keys": ["app.yaml", "logo.png"],
            "data": {"app.yaml": "level: debug\n"},
            "binaryData": {"logo.png": "iVD/"},
        }],
    });
    assert_eq!((answer.status, answer.json()), (200, expected));

    let all = bench.get(loopback(), "/v1/config?values=false", &[]).await.json();
    let [app, site] = all["volumes"].as_array().unwrap().as_slice() else {
        panic!("two volumes: {all}")
    };
    assert_eq!(app["data"], Value::Null);
    assert_eq!(app["keys"], json!(["app.yaml", "logo.png"]));
    assert_eq!((&site["seen"], &site["loaded"]), (&Value::Null, &Value::Null));
    assert!(
        site["revision"].is_string(),
        "what is in the files is known without anybody having seen it"
    );

    bench.progress.send_modify(|progress| {
        progress.phase = Phase::HeldBack("exit code 1".to_owned());
        progress.deaf = Some("no watches left".to_owned());
    });
    std::fs::remove_dir_all(bench.path("site")).unwrap();
    let all = bench.get(loopback(), "/v1/config", &[]).await.json();
    assert_eq!(
        (&all["phase"], &all["reason"]),
        (&json!("held-back"), &json!("exit code 1"))
    );
    assert_eq!(all["deaf"], json!("no watches left"));
    assert_eq!(all["volumes"][1]["revision"], Value::Null);
    assert!(
        all["volumes"][1]["error"]
            .as_str()
            .unwrap()
            .contains("is not there"),
        "{all}"
    );
}

#[tokio::test]
async fn a_key_is_given_raw_with_its_revision_until_the_client_has_it() {
    let bench = Bench::new(&["app"]);
    let revision = bench.load("app", &[("app.yaml", b"level: debug\n"), ("a/b.bin", &[0xff])]);
    let tag = format!("\"{revision}\"");
    let answer = bench.get(loopback(), "/v1/config/app.yaml", &[]).await;
    assert_eq!(
        (answer.status, answer.text(), answer.etag.as_deref()),
        (200, "level: debug\n", Some(&*tag))
    );
    assert_eq!(answer.content_type.as_deref(), Some("text/plain; charset=utf-8"));
    for uri in ["/v1/config/a/b.bin", "/v1/config/a%2Fb.bin"] {
        let answer = bench.get(loopback(), uri, &[]).await;
        assert_eq!((answer.status, answer.body.as_ref()), (200, &[0xff][..]));
        assert_eq!(answer.content_type.as_deref(), Some("application/octet-stream"));
    }
    let has_it = [(IF_NONE_MATCH.as_str(), &*tag)];
    let answer = bench.get(loopback(), "/v1/config/app.yaml", &has_it).await;
    assert_eq!((answer.status, answer.etag.as_deref()), (304, Some(&*tag)));
    for elsewhere in [
        "..%2F..%2Fetc%2Fshadow",
        "/etc/passwd",
        "..data%2Fapp.yaml",
        "%00",
    ] {
        let uri = format!("/v1/config/{elsewhere}");
        let answer = bench.get(loopback(), &uri, &[]).await;
        assert_eq!(answer.status, 404, "{elsewhere}");
    }
    let answer = bench.get(loopback(), "/v1/config/absent", &[]).await;
    assert_eq!(answer.status, 404);
    assert!(answer.json()["error"].as_str().unwrap().contains("\"absent\""));
}

#[tokio::test]
async fn who_waits_is_told_of_what_has_passed_the_check() {
    let bench = Bench::new(&["app"]);
    let first = bench.load("app", &[("app.yaml", b"1")]);
    let tag = format!("\"{first}\"");
    let headers = [(IF_NONE_MATCH.as_str(), &*tag)];
    let waiting = bench.get(loopback(), "/v1/config/app.yaml?wait=10m", &headers);
    let acting = async {
        // Held back: it is in the files, and nobody who waits is told.
        let bad = bench.write("app", &[("app.yaml", b"bad")]);
        bench.progress.send_modify(|progress| {
            progress.volumes[0].seen = Some(bad);
            progress.phase = Phase::HeldBack("no".to_owned());
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        bench.load("app", &[("app.yaml", b"2")])
    };
    let (answer, second) = tokio::join!(waiting, acting);
    assert_eq!((answer.status, answer.text()), (200, "2"));
    assert_eq!(answer.etag, Some(format!("\"{second}\"")));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_and_needs_no_revision_to_wait_for() {
    let bench = Bench::new(&["app"]);
    let revision = bench.load("app", &[("app.yaml", b"1")]);
    let answer = bench.get(loopback(), "/v1/config/app.yaml?wait=10m", &[]).await;
    assert_eq!(answer.status, 200, "a client that has nothing gets what there is");
    let tag = format!("\"{revision}\"");
    let started = tokio::time::Instant::now();
    let answer = bench
        .get(
            loopback(),
            "/v1/config/app.yaml?wait=30s",
            &[("if-none-match", &tag)],
        )
        .await;
    assert_eq!(answer.status, 304);
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn values_of_secrets_are_given_over_the_unix_socket_only() {
    let mut bench = Bench::new(&["app"]);
    bench.load("app", &[("password", b"hunter2")]);
    bench.mark_secret("app");
    bench
        .progress
        .send_modify(|progress| progress.phase = Phase::Failed("line 1: hunter2".to_owned()));
    for uri in ["/v1/config/password", "/v1/config/absent"] {
        let refused = bench.get(loopback(), uri, &[]).await;
        assert_eq!(refused.status, 403);
        let sentence = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(
            sentence.contains("is a Secret") && sentence.contains("--serve unix:PATH"),
            "{sentence}"
        );
    }
    for uri in ["/v1/config", "/healthz", "/metrics"] {
        let told = bench.get(loopback(), uri, &[]).await;
        assert!(!told.text().contains("hunter2"), "{uri}: {}", told.text());
    }
    let document = bench.get(loopback(), "/v1/config", &[]).await.json();
    assert_eq!(document["volumes"][0]["secret"], json!(true));
    assert_eq!(document["volumes"][0]["keys"], json!(["password"]));
    assert!(document["volumes"][0]["withheld"].is_string());
    let document = bench.get(Door::Unix, "/v1/config", &[]).await.json();
    assert_eq!(document["volumes"][0]["data"], json!({"password": "hunter2"}));
    assert_eq!(document["reason"], json!("line 1: hunter2"));
    assert_eq!(
        bench.get(Door::Unix, "/v1/config/password", &[]).await.text(),
        "hunter2"
    );
}

#[tokio::test]
async fn streams_begin_with_what_is_there_and_go_on_where_the_client_was() {
    let bench = Bench::new(&["app", "site"]);
    let one = bench.load("app", &[("app.yaml", b"1")]);
    let mut stream = events(&bench, "/v1/events", None).await;
    assert_eq!(next(&mut stream).await, "retry: 1000");
    let current = |volume: &str, revision: &Revision| {
        let data = json!({"volume": volume, "revision": revision.as_str()});
        format!("event: current\nid: {revision}\ndata: {data}")
    };
    assert_eq!(next(&mut stream).await, current("app", &one));
    let two = bench.load("app", &[("app.yaml", b"2")]);
    let change = |volume: &str, revision: &Revision| {
        let data = json!({
            "volume": volume, "revision": revision.as_str(), "added": [], "modified": ["app.yaml"], "removed": [],
        });
        format!("event: change\nid: {revision}\ndata: {data}")
    };
    assert_eq!(next(&mut stream).await, change("app", &two));

    let site = bench.load("site", &[("app.yaml", b"3")]);
    let mut resumed = events(&bench, "/v1/events", Some(&one)).await;
    for expected in ["retry: 1000", &change("app", &two), &change("site", &site)] {
        assert_eq!(next(&mut resumed).await, expected);
    }
    let mut of_site = events(&bench, "/v1/events?volume=site", Some(&one)).await;
    for expected in ["retry: 1000", &change("site", &site)] {
        assert_eq!(next(&mut of_site).await, expected);
    }
    let mut unknown = events(&bench, "/v1/events", Some(&Revision::new("long-ago"))).await;
    for expected in ["retry: 1000", &current("app", &two), &current("site", &site)] {
        assert_eq!(next(&mut unknown).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_shows_that_it_lives_and_one_that_is_too_far_behind_ends() {
    let bench = Bench::new(&["app"]);
    let mut stream = events(&bench, "/v1/events", None).await;
    assert_eq!(next(&mut stream).await, "retry: 1000");
    let started = tokio::time::Instant::now();
    assert_eq!(next(&mut stream).await, ":");
    assert_eq!(started.elapsed().as_secs(), 15);
    for number in 0..65 {
        bench.loaded("app", &Revision::new(number.to_string()), Vec::new());
    }
    assert!(stream.frame().await.is_none(), "it has missed one");
    let metrics = bench.get(Door::Unix, "/metrics", &[]).await;
    assert!(
        metrics
            .text()
            .contains("hotmap_endpoint_connections_cut_off_total 1"),
        "{}",
        metrics.text()
    );
}

async fn events(bench: &Bench, uri: &str, after: Option<&Revision>) -> AnswerBody {
    let mut request = Request::builder().uri(uri);
    if let Some(after) = after {
        request = request.header("Last-Event-ID", after.as_str());
    }
    let request = request.body(Full::new(Bytes::new())).unwrap();
    bench.sources.answer(Door::Unix, request).await.into_body()
}

/// The next event, without the empty line behind it.
async fn next(stream: &mut AnswerBody) -> String {
    let frame = stream.frame().await.expect("a stream has no end").unwrap();
    let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
    text.strip_suffix("\n\n")
        .expect("an empty line ends it")
        .to_owned()
}

#[tokio::test]
async fn what_a_program_says_is_what_is_loaded() {
    let bench = Bench::new(&["app"]);
    let one = bench.load("app", &[("app.yaml", b"1")]);
    let two = bench.load("app", &[("app.yaml", b"2")]);
    assert_eq!(
        bench
            .post(&json!({"revision": one.as_str(), "ok": true}).to_string())
            .await
            .status,
        200
    );
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(document["phase"], json!("loading"));
    assert_eq!(document["volumes"][0]["loaded"], json!(one.as_str()));
    assert_eq!(document["volumes"][0]["seen"], json!(two.as_str()));

    let refusal = json!({"revision": two.as_str(), "ok": false, "message": "line 3", "volume": "app"});
    assert_eq!(bench.post(&refusal.to_string()).await.status, 200);
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(
        document["volumes"][0]["acknowledged"],
        json!({"revision": two.as_str(), "ok": false, "message": "line 3"})
    );
    let health = bench.get(Door::Metrics, "/healthz", &[]).await;
    assert_eq!(
        health.text(),
        "the last change is not loaded: the program has refused it: line 3\n"
    );
    let metrics = bench.get(Door::Metrics, "/metrics", &[]).await;
    let path = bench.path("app");
    for line in [
        format!(
            "hotmap_loaded_info{{volume=\"{}\",revision=\"{one}\"}} 1",
            path.display()
        ),
        "hotmap_endpoint_acknowledgements_total{outcome=\"refused\"} 1".to_owned(),
        "hotmap_endpoint_requests_total{path=\"/v1/ack\",code=\"200\"} 2".to_owned(),
    ] {
        assert!(
            metrics.text().contains(&line),
            "{line} is not in\n{}",
            metrics.text()
        );
    }
    assert_eq!(metrics.text().matches("# EOF").count(), 1);
}

#[tokio::test]
async fn a_program_may_be_faster_than_the_watcher() {
    let bench = Bench::new(&["app"]);
    bench.load("app", &[("app.yaml", b"1")]);
    let unseen = bench.write("app", &[("app.yaml", b"2")]);
    let word = json!({"revision": unseen.as_str(), "ok": true}).to_string();
    assert_eq!(bench.post(&word).await.status, 200);
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(document["volumes"][0]["loaded"], json!(unseen.as_str()));
    bench.loaded("app", &unseen, Vec::new());
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(document["phase"], json!("loaded"));
}

#[tokio::test]
async fn acknowledgements_that_are_not_understood_are_refused_by_name() {
    let bench = Bench::new(&["app", "site"]);
    let revision = bench.load("app", &[("app.yaml", b"1")]);
    for (body, status, error) in [
        (json!({"ok": true}), 400, "missing field `revision`"),
        (json!({"revision": "x"}), 400, "missing field `ok`"),
        (
            json!({"revision": "x", "ok": true, "pod": "web-0"}),
            400,
            "unknown field `pod`",
        ),
        (json!({"revision": "..2020", "ok": true}), 409, "\"..2020\""),
        (
            json!({"revision": revision.as_str(), "ok": true, "volume": "site"}),
            409,
            "lately",
        ),
        (
            json!({"revision": revision.as_str(), "ok": true, "volume": "etc"}),
            404,
            "app, site",
        ),
        (
            json!({"revision": "x".repeat(5_000), "ok": true}),
            413,
            "4096 bytes",
        ),
    ] {
        let answer = bench.post(&body.to_string()).await;
        let told = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(
            answer.status == status && told.contains(error),
            "{body}: {} {told}",
            answer.status
        );
    }
    let document = bench.get(Door::Unix, "/v1/config", &[]).await.json();
    assert_eq!(document["volumes"][0]["acknowledged"], Value::Null);
}

/// The document and the program say the same.
#[tokio::test(start_paused = true)]
async fn every_path_method_and_status_of_the_document_is_served_and_no_other() {
    let mut bench = Bench::new(&["app", "site"]);
    let revision = bench.load("app", &[("app.yaml", b"1")]);
    let tag = format!("\"{revision}\"");
    let ack = json!({"revision": revision.as_str(), "ok": true}).to_string();
    let evil = [("host", "evil.example")];
    let mut served = BTreeSet::new();
    type Case<'a> = (Route, &'a str, &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 24] = [
        (Route::Config, "/v1/config", &[], ""),
        (Route::Config, "/v1/config?wiat=3s", &[], ""),
        (Route::Config, "/v1/config?volume=etc", &[], ""),
        (Route::Config, "/v1/config", &evil, ""),
        (Route::Key, "/v1/config/app.yaml?volume=app", &[], ""),
        (
            Route::Key,
            "/v1/config/app.yaml?volume=app",
            &[("if-none-match", &tag)],
            "",
        ),
        (Route::Key, "/v1/config/app.yaml", &[], ""),
        (Route::Key, "/v1/config/absent?volume=app", &[], ""),
        (Route::Key, "/v1/config/app.yaml?volume=app", &evil, ""),
        (Route::Key, "/v1/config/app.yaml?volume=gone", &[], ""),
        (Route::Events, "/v1/events", &[], ""),
        (Route::Events, "/v1/events?wait=3s", &[], ""),
        (Route::Events, "/v1/events?volume=etc", &[], ""),
        (Route::Events, "/v1/events", &evil, ""),
        (Route::Ack, "/v1/ack", &[], &ack),
        (Route::Ack, "/v1/ack", &[], "{}"),
        (Route::Ack, "/v1/ack", &[], "{\"revision\": \"x\", \"ok\": true}"),
        (
            Route::Ack,
            "/v1/ack",
            &[],
            "{\"revision\": \"x\", \"ok\": true, \"volume\": \"etc\"}",
        ),
        (Route::Ack, "/v1/ack", &evil, &ack),
        (Route::Metrics, "/metrics", &[], ""),
        (Route::Metrics, "/metrics", &evil, ""),
        (Route::Healthz, "/healthz", &[], ""),
        (Route::Healthz, "/healthz", &evil, ""),
        (Route::Ack, "/v1/ack", &[], &"x".repeat(5_000)),
    ];
    bench.progress.send_modify(|progress| {
        let path = bench.directory.path().join("gone");
        progress.volumes.push(VolumeProgress {
            path,
            seen: None,
            told: None,
            loaded: None,
        });
    });
    bench.sources.secrecy = Arc::new(Secrecy {
        secret: Vec::new(),
        public: vec![bench.path("app"), bench.path("site"), bench.path("gone")],
    });
    for (route, uri, headers, body) in cases {
        let answer = bench.ask(loopback(), route.method(), uri, headers, body).await;
        served.insert((route.template(), route.method().to_lowercase(), answer.status));
        let other = if route.method() == "GET" { "PUT" } else { "GET" };
        assert_eq!(
            bench.ask(loopback(), other, uri, &[], "").await.status,
            405,
            "{uri}"
        );
    }
    bench
        .progress
        .send_modify(|progress| progress.deaf = Some("no watches left".to_owned()));
    let answer = bench.get(loopback(), "/healthz", &[]).await;
    served.insert(("/healthz", "get".to_owned(), answer.status));
    // A body that never comes.
    let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
    let request = Request::builder()
        .method("POST")
        .uri("/v1/ack")
        .header(HOST, LOOPBACK);
    let answer = bench
        .sources
        .answer(loopback(), request.body(body).unwrap())
        .await;
    served.insert(("/v1/ack", "post".to_owned(), answer.status().as_u16()));

    let document: Value =
        serde_saphyr::from_str(include_str!("../../../../../docs/endpoint.openapi.yaml")).unwrap();
    let mut documented = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for status in operation["responses"].as_object().unwrap().keys() {
                documented.insert((path.as_str(), method.clone(), status.parse().unwrap()));
            }
        }
    }
    assert_eq!(served, documented);
    let routes: BTreeSet<&str> = Route::ALL.iter().map(|route| route.template()).collect();
    assert_eq!(routes, documented.iter().map(|(path, ..)| *path).collect());
}

#[tokio::test]
async fn at_an_address_for_metrics_nothing_else_is_served() {
    let bench = Bench::new(&["app"]);
    let anywhere = [("host", "10.0.0.7:9533")];
    for (uri, status) in [
        ("/metrics", 200),
        ("/healthz", 200),
        ("/v1/config", 404),
        ("/v1/config/app.yaml", 404),
        ("/v1/events", 404),
        ("/v1/ack", 404),
        ("/", 404),
    ] {
        assert_eq!(
            bench.get(Door::Metrics, uri, &anywhere).await.status,
            status,
            "{uri}"
        );
    }
}

#[tokio::test]
async fn several_addresses_are_served_over_real_connections() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let bench = Bench::new(&["app"]);
    bench.load("app", &[("app.yaml", b"level: debug\n")]);
    let socket = bench.path("hotmap.sock");
    let endpoint = Endpoint::bind(&EndpointConfig {
        addresses: vec![ServeAddress::Unix(socket.clone()), "127.0.0.1:0".parse().unwrap()],
        socket_mode: 0o600,
        metrics_addresses: vec!["127.0.0.1:0".parse().unwrap()],
    })
    .unwrap();
    let ports: Vec<u16> = endpoint.tcp_addresses().map(|address| address.port()).collect();
    let serving = tokio::spawn(endpoint.serve(bench.sources.clone()));
    let ask = async |stream: &mut dyn ReadWrite, host: &str, uri: &str| {
        let request = format!("GET {uri} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let mut unix = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let answer = ask(&mut unix, "localhost", "/v1/config/app.yaml").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("level: debug\n"),
        "{answer}"
    );
    let mut tcp = tokio::net::TcpStream::connect(("127.0.0.1", ports[0]))
        .await
        .unwrap();
    let answer = ask(
        &mut tcp,
        &format!("localhost:{}", ports[0]),
        "/v1/config/app.yaml",
    )
    .await;
    assert!(answer.ends_with("level: debug\n"), "{answer}");
    let mut tcp = tokio::net::TcpStream::connect(("127.0.0.1", ports[0]))
        .await
        .unwrap();
    let answer = ask(&mut tcp, "evil.example", "/v1/config/app.yaml").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let mut tcp = tokio::net::TcpStream::connect(("127.0.0.1", ports[1]))
        .await
        .unwrap();
    let answer = ask(&mut tcp, "evil.example", "/v1/config/app.yaml").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");

    // One more than there may be is closed at once.
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        held.push(stream);
    }
    let mut refused = tokio::net::UnixStream::connect(&socket).await.unwrap();
    // Nothing was written, so the end is in order.
    assert_eq!(refused.read(&mut [0; 1]).await.unwrap(), 0);
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    assert!(!Path::new(&socket).exists(), "the socket goes with the endpoint");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_cut_off_and_counted() {
    use tokio::io::AsyncWriteExt;

    let bench = Bench::new(&["app"]);
    bench.load("app", &[("app.yaml", "level: debug\n".repeat(10_000).as_bytes())]);
    let (near, mut far) = tokio::io::duplex(1_024);
    far.write_all(b"GET /v1/config/app.yaml HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let started = tokio::time::Instant::now();
    converse(near, Door::Unix, &bench.sources).await;
    assert_eq!(started.elapsed(), stall::STALL_MAX);
    let metrics = bench.get(Door::Unix, "/metrics", &[]).await;
    assert!(
        metrics
            .text()
            .contains("hotmap_endpoint_connections_cut_off_total 1"),
        "{}",
        metrics.text()
    );
}

trait ReadWrite: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ReadWrite for T {}
