//! A watch that begins before the history does is told so, with 410, and a list makes it whole again.

use hotmap_client::{Client, PatchType, ResourcePath, WatchEvent, WatchParams, WriteParams};
use serde_json::json;

use crate::harness::{Server, client_config};

const WRITERS: usize = 8;
/// Together more events than the history always keeps, and more bytes than it keeps beyond these.
const WRITES_EACH: usize = 150;
const VALUE_BYTES: usize = 72 * 1024;

#[test]
fn a_watch_from_before_the_history_ends_with_410() {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let client = Client::new(client_config(&server)).expect("a client of ours");
        let start = client
            .list(&config_maps(), &Default::default())
            .await
            .expect("a list")
            .resource_version;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(write(client.clone(), format!("w{writer}")));
        }
        while let Some(ended) = writers.join_next().await {
            ended.expect("the writer does not panic");
        }
        let told = match watch(&client, &start).await {
            Err(error) => error.status().cloned(),
            Ok(WatchEvent::Error(status)) => Some(status),
            Ok(event) => panic!("the past came back: {event:?}"),
        };
        let told = told.expect("a Status");
        assert_eq!((told.code, &*told.reason), (410, "Expired"), "{}", told.message);
        // From a list on it goes on as always.
        let list = client
            .list(&config_maps(), &Default::default())
            .await
            .expect("a list");
        // Beside what every namespace has.
        assert_eq!(list.items.len(), WRITERS + 1);
        let patch = json!({"data": {"v": "last"}});
        let path = config_maps().name("w0");
        client
            .patch(&path, PatchType::Merge, &patch, &WriteParams::default())
            .await
            .expect("a write");
        let event = watch(&client, &list.resource_version).await.expect("an event");
        assert!(
            matches!(&event, WatchEvent::Modified(object) if object.name() == "w0"),
            "{event:?}"
        );
    });
}

async fn write(client: Client, name: String) {
    let path = config_maps();
    let body = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}});
    client
        .create(&path, &body, &WriteParams::default())
        .await
        .expect("a write");
    let value = "x".repeat(VALUE_BYTES);
    let path = path.name(name);
    for step in 0..WRITES_EACH {
        let patch = json!({"data": {"v": format!("{step}{value}")}});
        client
            .patch(&path, PatchType::Merge, &patch, &WriteParams::default())
            .await
            .expect("a write");
    }
}

/// The first event of a watch.
async fn watch(client: &Client, since: &str) -> Result<WatchEvent, hotmap_client::ClientError> {
    let params = WatchParams {
        resource_version: since.to_owned(),
        ..WatchParams::default()
    };
    let mut watch = client.watch(&config_maps(), &params).await?;
    watch.next().await.expect("an event")
}

fn config_maps() -> ResourcePath {
    ResourcePath::new("", "v1", "configmaps").in_namespace("default")
}
