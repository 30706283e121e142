//! The objects as this process follows them.

use hotmap_object::Object;
use serde_json::{Value, json};

use super::{Server, config_map};
use crate::{LocalChange, LocalObjects};

async fn config_maps(objects: &LocalObjects) -> (Vec<String>, hotmap_object::Revision) {
    let (listed, revision) = objects.list("", "configmaps").await.expect("a list");
    let names = listed.iter().map(|object| object.index().name.to_string());
    (names.collect(), revision)
}

fn revision(object: &Object) -> String {
    let value: Value = serde_json::from_slice(object.json()).expect("JSON");
    value["metadata"]["resourceVersion"]
        .as_str()
        .expect("a revision")
        .to_owned()
}

#[tokio::test]
async fn a_list_and_its_changes_make_one_story() {
    let server = Server::start().await;
    let objects = server.objects.local();
    server.config_map("before", "1").await;
    let (names, since) = config_maps(&objects).await;
    assert_eq!(names, ["before"]);
    let mut changes = objects
        .changes("", "configmaps", since)
        .expect("the present can be followed");
    let created = server.config_map("app", "1").await;
    let updated = server
        .ok("update default/configmaps/app", config_map("app", "2"))
        .await;
    server.ok("delete default/configmaps/app", Value::Null).await;
    let written = |object: &Value| object["metadata"]["resourceVersion"].clone();
    match changes.next().await {
        Ok(LocalChange::Added(object)) => assert_eq!(json!(revision(&object)), written(&created)),
        other => panic!("{other:?}"),
    }
    match changes.next().await {
        Ok(LocalChange::Modified(object)) => assert_eq!(json!(revision(&object)), written(&updated)),
        other => panic!("{other:?}"),
    }
    match changes.next().await {
        Ok(LocalChange::Deleted(object)) => {
            let deleted: u64 = revision(&object).parse().expect("a number");
            let last: u64 = written(&updated)
                .as_str()
                .and_then(|text| text.parse().ok())
                .expect("a number");
            assert!(deleted > last, "a deletion has a revision of its own");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(config_maps(&objects).await.0, ["before"]);
    let unknown = objects.list("", "widgets").await.expect_err("not stored");
    assert_eq!(
        (unknown.code, unknown.message.as_str()),
        (404, "no widgets of group \"\" are stored")
    );
}
