//! What a controller written with kube-rs does, against the server that `KUBECONFIG` names:
//! `hotmap up --temp -- cargo run`. Ends with 0 when all of it is as it should be.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    Api, Client, Error,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    tokio::time::timeout(PATIENCE, async {
        objects(client.clone()).await?;
        watches(client.clone()).await?;
        reflected(client.clone(), false).await?;
        reflected(client, true).await
    })
    .await??;
    println!("done");
    Ok(())
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("k".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String) {
    match result {
        Err(Error::Api(status)) => (status.code, status.reason.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

/// Create, get, replace, every patch, list in pages, delete; refusals with code and reason.
async fn objects(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    let version = client.apiserver_version().await?;
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let write = PostParams { field_manager: Some("kube-rs".to_owned()), ..PostParams::default() };
    let made = maps.create(&write, &config_map("a", "1")).await?;
    assert!(made.metadata.uid.is_some());
    assert_eq!(code(maps.create(&write, &config_map("a", "1")).await), (409, "AlreadyExists".to_owned()));
    assert_eq!(code(maps.get("none").await), (404, "NotFound".to_owned()));
    assert!(maps.get_opt("none").await?.is_none());
    assert_eq!(code(maps.create(&write, &config_map("A_", "1")).await), (422, "Invalid".to_owned()));

    let patch = PatchParams::default();
    let merged = maps.patch("a", &patch, &Patch::Merge(json!({"data": {"l": "2"}}))).await?;
    assert_eq!(merged.data.map(|data| data.len()), Some(2));
    let patched = maps.patch("a", &patch, &Patch::Strategic(json!({"data": {"l": null}}))).await?;
    assert_eq!(patched.data.map(|data| data.len()), Some(1));
    assert_eq!(code(maps.replace("a", &write, &made).await), (409, "Conflict".to_owned()));
    let applied = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"m": "3"}}));
    assert_eq!(code(maps.patch("a", &PatchParams::apply("kube-rs"), &applied).await).0, 415);
    let metadata = maps.get_metadata("a").await?;
    assert_eq!(metadata.metadata.name.as_deref(), Some("a"));

    for name in ["b", "c"] {
        maps.create(&write, &config_map(name, "1")).await?;
    }
    let (mut names, mut token) = (Vec::new(), None::<String>);
    loop {
        let mut page = ListParams::default().limit(1);
        page.continue_token = token;
        let list = maps.list(&page).await?;
        names.extend(list.items.into_iter().filter_map(|item| item.metadata.name));
        token = list.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    assert_eq!(names, ["a", "b", "c", "kube-root-ca.crt"]);
    assert!(maps.delete("c", &DeleteParams::default()).await?.is_right(), "a ConfigMap's deletion is a Status");

    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"p": "hunter2"}}))?;
    let made = secrets.create(&write, &secret).await?;
    assert_eq!(made.data.and_then(|mut data| data.remove("p")).map(|bytes| bytes.0), Some(b"hunter2".to_vec()));
    let namespaces: Api<Namespace> = Api::all(client);
    let names = namespaces.list(&ListParams::default().fields("metadata.name=kube-system")).await?;
    assert_eq!(names.items.len(), 1);
    Ok(())
}

/// A plain watch: from a revision on, in order.
async fn watches(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let start = maps.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    maps.create(&PostParams::default(), &config_map("w", "1")).await?;
    maps.delete("w", &DeleteParams::default()).await?;
    let watch = maps.watch(&WatchParams::default(), &start).await?;
    pin_mut!(watch);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        match watch.next().await.expect("it goes on")? {
            WatchEvent::Added(map) => seen.push(("added", map.metadata.name)),
            WatchEvent::Deleted(map) => seen.push(("deleted", map.metadata.name)),
            WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [("added", Some("w".to_owned())), ("deleted", Some("w".to_owned()))]);
    Ok(())
}

/// The watcher that controllers are built on, with list and watch and with a streaming list.
async fn reflected(client: Client, streaming: bool) -> Result<(), Box<dyn std::error::Error>> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut config = watcher::Config::default();
    if streaming {
        config = config.streaming_lists();
    }
    let objects = watcher::watcher(maps.clone(), config).applied_objects();
    pin_mut!(objects);
    let mut names = Vec::new();
    while names.len() < 3 {
        names.extend(objects.next().await.expect("it goes on")?.metadata.name);
    }
    assert_eq!(names, ["a", "b", "kube-root-ca.crt"]);
    let value = if streaming { "4" } else { "3" };
    maps.patch("b", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": value}}))).await?;
    let changed = objects.next().await.expect("it goes on")?;
    assert_eq!(changed.data.and_then(|mut data| data.remove("k")).as_deref(), Some(value));
    Ok(())
}
