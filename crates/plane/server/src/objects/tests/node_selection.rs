//! What nodes select: lists and watches of what their pods refer to.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Frames, Server, config_map, revision, summary};

const OF_NODE: &str = "fieldSelector=hotmap.dev/node%3Dn";

fn pod(name: &str, node: &str, config_maps: &[&str]) -> Value {
    let volumes = config_maps
        .iter()
        .map(|name| json!({"name": name, "configMap": {"name": name}}));
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"nodeName": node,
        "serviceAccountName": "default", "automountServiceAccountToken": false,
        "containers": [{"name": "c", "image": "i"}], "volumes": volumes.collect::<Vec<_>>()}})
}

async fn with_account() -> Server {
    let server = Server::start().await;
    let account = json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}});
    // It may have come with the namespace.
    server.send("create default/serviceaccounts", account).await;
    server
}

/// Every event up to the one about this object, bookmarks left out.
async fn until(frames: &mut Frames, last: &str) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.last().is_none_or(|one| one != last) {
        let event = frames.next().await.expect("an event");
        if event["type"] != "BOOKMARK" {
            seen.push(summary(&event));
        }
    }
    seen
}

#[tokio::test]
async fn objects_come_with_the_first_pod_of_the_node_and_go_with_the_last() {
    let server = with_account().await;
    server.config_map("a", "1").await;
    server.config_map("b", "1").await;
    let query = format!("{OF_NODE}&allowWatchBookmarks=true");
    let mut frames = server.watch_call(&format!("watch configmaps?{query}")).await;
    let delete = async |name: &str| {
        let call = format!("delete default/pods/{name}?gracePeriodSeconds=0");
        server.ok(&call, Value::Null).await;
    };
    server
        .ok("create default/pods", pod("one", "n", &["a", "c"]))
        .await;
    assert_eq!(until(&mut frames, "ADDED a 1").await, ["ADDED a 1"]);
    let at = server.objects.cache.revision().0;
    let bookmark = frames.next().await.expect("a bookmark");
    assert_eq!(
        (&bookmark["type"], revision(&bookmark["object"])),
        (&"BOOKMARK".into(), at)
    );

    server
        .ok("update default/configmaps/b", config_map("b", "2"))
        .await;
    server
        .ok("create default/pods", pod("elsewhere", "m", &["b"]))
        .await;
    server
        .ok("update default/configmaps/a", config_map("a", "2"))
        .await;
    server.config_map("c", "1").await;
    server.ok("create default/pods", pod("two", "n", &["a"])).await;
    delete("one").await;
    server
        .ok("update default/configmaps/c", config_map("c", "2"))
        .await;
    server
        .ok("update default/configmaps/a", config_map("a", "3"))
        .await;
    let seen = until(&mut frames, "MODIFIED a 3").await;
    assert_eq!(seen, ["MODIFIED a 2", "ADDED c 1", "DELETED c 1", "MODIFIED a 3"]);
    delete("two").await;
    assert_eq!(until(&mut frames, "DELETED a 3").await, ["DELETED a 3"]);
    server.ok("create default/pods", pod("three", "n", &["a"])).await;
    assert_eq!(until(&mut frames, "ADDED a 3").await, ["ADDED a 3"]);
    server.ok("delete default/configmaps/a", Value::Null).await;
    assert_eq!(until(&mut frames, "DELETED a 3").await, ["DELETED a 3"]);
}

#[tokio::test]
async fn only_configmaps_and_secrets_are_selected_by_one_node() {
    let server = Server::start().await;
    for (call, message) in [
        (
            "list pods?fieldSelector=hotmap.dev/node%3Dn",
            "field label not supported: hotmap.dev/node",
        ),
        (
            "watch services?fieldSelector=hotmap.dev/node%3Dn",
            "field label not supported: hotmap.dev/node",
        ),
        (
            "list secrets?fieldSelector=hotmap.dev/node!%3Dn",
            "field label not supported: hotmap.dev/node",
        ),
        (
            "list secrets?fieldSelector=hotmap.dev/node%3D",
            "field label not supported: hotmap.dev/node",
        ),
        (
            "list configmaps?fieldSelector=hotmap.dev/node%3Dn,hotmap.dev/node%3Dm",
            "field label not supported: hotmap.dev/node",
        ),
    ] {
        let refused = server.refused(call, Value::Null).await;
        assert_eq!(refused, (400, message.to_owned()), "{call}");
    }
}

/// One step of a history: `PodChange` makes the pod anew with these objects on that node, or removes it.
#[derive(Debug, Clone)]
enum Step {
    Object(&'static str, Option<u8>),
    Pod(&'static str, Option<(&'static str, Vec<&'static str>)>),
}

fn step() -> impl Strategy<Value = Step> {
    let object = prop::sample::select(vec!["a", "b", "c"]);
    let objects = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3);
    let node = prop::sample::select(vec!["n", "n", "m"]);
    let pod = prop::sample::select(vec!["p", "q"]);
    prop_oneof![
        (object, prop::option::weighted(0.75, any::<u8>()))
            .prop_map(|(name, value)| Step::Object(name, value)),
        (pod, prop::option::weighted(0.6, (node, objects))).prop_map(|(name, pod)| Step::Pod(name, pod)),
    ]
}

async fn take(server: &Server, step: &Step) {
    match step {
        Step::Object(name, Some(value)) => {
            let object = config_map(name, &value.to_string());
            let call = format!("update default/configmaps/{name}");
            if server.send(&call, object.clone()).await.0 == 404 {
                server.ok("create default/configmaps", object).await;
            }
        }
        Step::Object(name, None) => {
            let call = format!("delete default/configmaps/{name}");
            server.send(&call, Value::Null).await;
        }
        Step::Pod(name, made) => {
            let call = format!("delete default/pods/{name}?gracePeriodSeconds=0");
            server.send(&call, Value::Null).await;
            if let Some((node, objects)) = made {
                server.ok("create default/pods", pod(name, node, objects)).await;
            }
        }
    }
}

type World = BTreeMap<String, String>;

fn world(list: &Value) -> World {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .map(|item| (name(item), item["data"]["k"].to_string()))
        .collect()
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_watch_by_node_from_any_revision_leads_where_the_list_is(steps in prop::collection::vec(step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let server = with_account().await;
            let mut revisions = vec![server.objects.cache.revision().0];
            for step in &steps {
                take(&server, step).await;
                revisions.push(server.objects.cache.revision().0);
            }
            // The last change of all is a member's, so that it shows where the watch has arrived.
            server.ok("create default/pods", pod("end", "n", &["end"])).await;
            server.config_map("end", "1").await;
            let end = world(&server.ok(&format!("list configmaps?{OF_NODE}"), Value::Null).await);
            for revision in revisions {
                let exactly = format!("resourceVersion={revision}&resourceVersionMatch=Exact");
                let list = server.ok(&format!("list configmaps?{OF_NODE}&{exactly}"), Value::Null).await;
                let mut known = world(&list);
                let call = format!("watch configmaps?{OF_NODE}&resourceVersion={revision}");
                let mut frames = server.watch_call(&call).await;
                while !known.contains_key("end") {
                    let event = frames.next().await.expect("an event");
                    let name = name(&event["object"]);
                    // No change is told of what was not there, and nothing comes twice.
                    let was_there = known.contains_key(&name);
                    prop_assert_eq!(was_there, event["type"] != "ADDED", "{} after {}", event, revision);
                    if event["type"] == "DELETED" {
                        known.remove(&name);
                    } else {
                        known.insert(name, event["object"]["data"]["k"].to_string());
                    }
                }
                prop_assert_eq!(&known, &end, "after {}", revision);
            }
            Ok(())
        })?;
    }
}
