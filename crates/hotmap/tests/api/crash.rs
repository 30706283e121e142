//! kill -9 while clients write: every answered write is there afterwards.

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use hotmap_client::{Client, ClientError, PatchType, ResourcePath, WatchEvent, WatchParams, WriteParams};
use serde_json::json;

use crate::harness::{PATIENCE, Server, client_config};

/// Rounds of writing and killing; `scripts/soak` asks for more.
const KILLS_VARIABLE: &str = "HOTMAP_TEST_KILLS";
const ROUNDS: u32 = 20;
const WRITERS: usize = 8;
/// So many answered writes of one round are enough; the kill comes while the next ones are on their way.
const WRITES_A_ROUND: u64 = 60;

/// What clients know to be stored: per object the last value that was answered, and the one on its way, if any.
#[derive(Default)]
struct Known {
    objects: BTreeMap<String, Value>,
    newest_version: u64,
}

#[derive(Clone, Default, Debug)]
struct Value {
    answered: Option<String>,
    in_flight: Option<Option<String>>,
}

#[test]
fn every_answered_write_survives_kill_9() {
    let rounds = env::var(KILLS_VARIABLE)
        .ok()
        .map_or(ROUNDS, |text| text.parse().expect("a number of rounds"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut server = Server::start();
    let known = Arc::new(Mutex::new(Known::default()));
    for round in 0..rounds {
        let write_and_watch = async {
            let watching = watch_from_here(&server).await;
            write_until_killed(&mut server, &known, round).await;
            watching.await.expect("the watcher does not panic")
        };
        let last_seen = runtime.block_on(write_and_watch);
        server.restart();
        runtime.block_on(async {
            compare(&server, &known, round).await;
            resume(&server, last_seen, round).await;
        });
    }
}

/// Writes from many clients until enough was answered, then kills the server under them.
async fn write_until_killed(server: &mut Server, known: &Arc<Mutex<Known>>, round: u32) {
    let config = client_config(server);
    let (answered, killed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let enough = Arc::new(tokio::sync::Notify::new());
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let client = Client::new(config.clone()).expect("a client of ours");
        let (known, answered, killed, enough) =
            (known.clone(), answered.clone(), killed.clone(), enough.clone());
        writers.spawn(async move {
            for step in 0.. {
                if killed.load(Ordering::Relaxed) {
                    break;
                }
                match write_one(&client, &known, writer, round, step).await {
                    Ok(()) => {
                        if answered.fetch_add(1, Ordering::Relaxed) + 1 == WRITES_A_ROUND {
                            enough.notify_one();
                        }
                    }
                    Err(error) => {
                        assert!(
                            killed.load(Ordering::Acquire),
                            "refused while the server lived: {error}"
                        );
                        break;
                    }
                }
            }
        });
    }
    tokio::time::timeout(PATIENCE, enough.notified())
        .await
        .expect("writes are answered");
    killed.store(true, Ordering::Release);
    server.crash();
    while let Some(ended) = writers.join_next().await {
        ended.expect("the writer does not panic");
    }
}

/// Creates, changes and deletes, in turns, objects that only this writer touches.
async fn write_one(
    client: &Client,
    known: &Mutex<Known>,
    writer: usize,
    round: u32,
    step: u32,
) -> Result<(), ClientError> {
    let name = format!("w{writer}-{}", step % 5);
    let value = format!("{round}-{step}");
    let path = config_maps();
    let write = WriteParams::default();
    let before = known
        .lock()
        .expect("no panics")
        .objects
        .get(&name)
        .cloned()
        .unwrap_or_default()
        .answered;
    let next = if before.is_some() && step % 7 == 6 {
        None
    } else {
        Some(value.clone())
    };
    known
        .lock()
        .expect("no panics")
        .objects
        .entry(name.clone())
        .or_default()
        .in_flight = Some(next.clone());
    let version = match (&before, &next) {
        (None, _) => {
            let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"v": value}});
            client
                .create(&path, &body, &write)
                .await?
                .resource_version()
                .to_owned()
        }
        (Some(_), Some(value)) => {
            let patch = json!({"data": {"v": value}});
            client
                .patch(&path.name(&name), PatchType::Merge, &patch, &write)
                .await?
                .resource_version()
                .to_owned()
        }
        (Some(_), None) => {
            client.delete(&path.name(&name), &Default::default()).await?;
            "0".to_owned()
        }
    };
    let mut known = known.lock().expect("no panics");
    known.newest_version = known.newest_version.max(version.parse().expect("a number"));
    known.objects.insert(
        name,
        Value {
            answered: next,
            in_flight: None,
        },
    );
    Ok(())
}

/// Every answered value is there; of the last write without an answer, either side of it.
async fn compare(server: &Server, known: &Mutex<Known>, round: u32) {
    let client = Client::new(client_config(server)).expect("a client of ours");
    let list = client
        .list(&config_maps(), &Default::default())
        .await
        .expect("a list");
    let mut known = known.lock().expect("no panics");
    let version: u64 = list.resource_version.parse().expect("a number");
    assert!(
        version >= known.newest_version,
        "round {round}: at {version}, answered {}",
        known.newest_version
    );
    let mut found = BTreeMap::new();
    // Every namespace has one that nobody here wrote.
    for item in list.items.iter().filter(|item| item.name() != "kube-root-ca.crt") {
        let object: serde_json::Value = item.parse().expect("JSON");
        found.insert(
            item.name().to_owned(),
            object["data"]["v"].as_str().map(str::to_owned),
        );
    }
    for (name, value) in &mut known.objects {
        let stored = found.remove(name).flatten();
        let expected = [Some(value.answered.clone()), value.in_flight.clone()];
        assert!(
            expected.contains(&Some(stored.clone())),
            "round {round}: {name} is {stored:?}, not {value:?}"
        );
        *value = Value {
            answered: stored,
            in_flight: None,
        };
    }
    assert!(found.is_empty(), "round {round}: nobody wrote {found:?}");
}

/// Follows until the connection breaks; what it saw last.
async fn watch_from_here(server: &Server) -> tokio::task::JoinHandle<u64> {
    let client = Client::new(client_config(server)).expect("a client of ours");
    let list = client
        .list(&config_maps(), &Default::default())
        .await
        .expect("a list");
    let start = list.resource_version.clone();
    let params = WatchParams {
        resource_version: start.clone(),
        ..WatchParams::default()
    };
    let mut watch = client.watch(&config_maps(), &params).await.expect("a watch");
    tokio::spawn(async move {
        let mut seen: u64 = start.parse().expect("a number");
        while let Some(Ok(event)) = watch.next().await {
            if let Some(version) = version_of(&event) {
                assert!(version > seen, "{version} after {seen}");
                seen = version;
            }
        }
        seen
    })
}

/// A watch goes on after what it saw last, or is told with 410 that it cannot.
async fn resume(server: &Server, last_seen: u64, round: u32) {
    let client = Client::new(client_config(server)).expect("a client of ours");
    let params = WatchParams {
        resource_version: last_seen.to_string(),
        ..WatchParams::default()
    };
    let mut watch = match client.watch(&config_maps(), &params).await {
        Ok(watch) => watch,
        Err(error) if error.is_expired() => return,
        Err(error) => panic!("round {round}: {error}"),
    };
    // One more write: the watch must reach it, through everything that it missed.
    let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"generateName": "marker-"}});
    let written = client
        .create(&config_maps(), &body, &WriteParams::default())
        .await
        .expect("a write");
    let target: u64 = written.resource_version().parse().expect("a number");
    let mut seen = last_seen;
    while seen < target {
        let event = tokio::time::timeout(PATIENCE, watch.next())
            .await
            .expect("an event in time");
        match event.expect("the watch goes on").expect("an event") {
            WatchEvent::Error(status) => {
                assert_eq!(status.code, 410, "round {round}: {status:?}");
                break;
            }
            event => {
                let version = version_of(&event).expect("an event has a revision");
                assert!(version > seen, "round {round}: {version} after {seen}");
                seen = version;
            }
        }
    }
    client
        .delete(&config_maps().name(written.name()), &Default::default())
        .await
        .expect("a write");
}

fn version_of(event: &WatchEvent) -> Option<u64> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            object.resource_version().parse().ok()
        }
        WatchEvent::Bookmark { .. } | WatchEvent::Error(_) => None,
    }
}

fn config_maps() -> ResourcePath {
    ResourcePath::new("", "v1", "configmaps").in_namespace("default")
}
