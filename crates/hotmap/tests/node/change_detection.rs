//! How changes are found: told of, asked for now and then, and by the net when nobody tells.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use crate::{
    harness::{PATIENCE, Release},
    host::{Node, config_map, idle, pod, secret},
};

const REPAIRS: &str = "hotmap_resync_repairs_total";

fn with_volume(name: &str, config_map: &str) -> Value {
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let volume = json!({"name": "v", "configMap": {"name": config_map}});
    pod(name, json!({"containers": [idle(mount)], "volumes": [volume]}))
}

fn set(node: &Node, config_map: &str, value: &str) {
    let patch = json!({"data": {"a": value}}).to_string();
    node.call(&["patch", "configmap", config_map, "-p", &patch]).ok();
}

#[test]
fn a_node_that_asks_each_time_finds_changes_within_its_period() {
    let Some(node) = Node::start_with(
        Release::Newest,
        &["--change-detection", "get", "--sync-frequency", "1s"],
    ) else {
        return;
    };
    let env = json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a"}}}]});
    node.create([
        with_volume("volume", "c"),
        pod("env", json!({"containers": [idle(env)]})),
        secret("s", json!({"a": "1"})),
        pod(
            "secret",
            json!({"containers": [idle(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}))],
                "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
        ),
    ]);
    node.event(
        "volume",
        r#"FailedMount: MountVolume.SetUp failed for volume "v" : configmaps "c" not found"#,
    );
    node.event("env", r#"Failed: Error: configmaps "c" not found"#);
    node.ok("create configmap c --from-literal=a=1");
    node.ready("volume env secret");
    set(&node, "c", "2");
    node.until_file("volume", "/v/a", "2");
    node.call(&["patch", "secret", "s", "-p", r#"{"stringData": {"a": "2"}}"#])
        .ok();
    node.until_file("secret", "/v/a", "2");
    assert_eq!(node.sh("env", "echo $A"), "1");
    // The word that ends the container ends with it.
    drop(node.exec("env", "kill 1"));
    node.wait("env", "jsonpath={.status.containerStatuses[0].restartCount}=1");
    node.ready("env");
    assert_eq!(
        node.sh("env", "echo $A"),
        "2",
        "a container starts with what is there"
    );
}

#[test]
fn a_node_that_keeps_what_it_read_is_told_how_long_and_an_edited_pod_does_not_wait() {
    let Some(node) = Node::start_with(
        Release::Newest,
        &["--change-detection", "cache", "--sync-frequency", "1s"],
    ) else {
        return;
    };
    node.ok("annotate node node-a node.alpha.kubernetes.io/ttl=86400");
    node.create([
        config_map("c", json!({"a": "1"})),
        with_volume("p", "c"),
        with_volume("q", "x"),
    ]);
    node.event("q", r#"configmaps "x" not found"#);
    node.ready("p");
    set(&node, "c", "2");
    node.ok("annotate pod p edited=now");
    node.until_file("p", "/v/a", "2");
    node.ok("annotate --overwrite node node-a node.alpha.kubernetes.io/ttl=0");
    set(&node, "c", "3");
    node.until_file("p", "/v/a", "3");
    node.ok("create configmap x --from-literal=a=1");
    node.ready("q");
}

#[test]
fn the_net_finds_what_no_watch_tells_and_what_somebody_changed() {
    let Some(node) = Node::start_with(
        Release::Newest,
        &["--fault-hold-watches", "--sync-frequency", "1s"],
    ) else {
        return;
    };
    node.create([config_map("c", json!({"a": "1"})), with_volume("p", "c")]);
    node.ready("p");
    assert_eq!(node.metric(REPAIRS), 0.0);
    set(&node, "c", "2");
    node.until_file("p", "/v/a", "2");
    assert_eq!(node.metric(REPAIRS), 1.0);

    let uid = node.field("pod/p", ".metadata.uid");
    let file = node
        .server
        .data_dir()
        .join("volumes")
        .join(uid)
        .join("v/..data/a");
    fs::write(file, "mine").expect("root may");
    node.until_file("p", "/v/a", "2");
    assert_eq!(node.metric("hotmap_volume_repairs_total"), 1.0);
    assert_eq!(node.metric(REPAIRS), 1.0);
}

#[test]
fn one_watch_tells_of_all_that_the_pods_of_a_node_refer_to() {
    let Some(node) = Node::start() else { return };
    let mut object = config_map("i", json!({"a": "1"}));
    object["immutable"] = true.into();
    node.create([
        config_map("c", json!({"a": "1"})),
        object.clone(),
        with_volume("p", "c"),
        with_volume("q", "i"),
        with_volume("r", "x"),
    ]);
    node.event("r", r#"configmap "x" not found"#);
    node.ready("p q");
    let selected = |of: &str| {
        let list = format!("/api/v1/configmaps?fieldSelector=hotmap.dev/node%3D{of}");
        let list = node.call(&["get", "--raw", &list]).ok();
        let list: Value = serde_json::from_str(&list).expect("a list");
        let items = list["items"].as_array().into_iter().flatten();
        Vec::from_iter(items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()))
    };
    assert_eq!(selected("node-a"), ["c", "i", "kube-root-ca.crt"]);
    assert_eq!(selected("node-b"), [""; 0]);
    set(&node, "c", "2");
    node.until_file("p", "/v/a", "2");
    node.ok("create configmap x --from-literal=a=1");
    node.ready("r");
    node.ok("delete configmap i");
    node.event("q", r#"configmap "i" not found"#);
    object["data"]["a"] = "2".into();
    node.create([object]);
    node.until_file("q", "/v/a", "2");
    // Of pods, ConfigMaps and Secrets one each, however many objects there are.
    let begun = Instant::now();
    while node.metric("hotmap_watch_streams") != 3.0 {
        assert!(begun.elapsed() < PATIENCE, "{}", node.ok("get --raw /metrics"));
    }
    node.ok("delete pod r");
    assert_eq!(selected("node-a"), ["c", "i", "kube-root-ca.crt"]);
    assert_eq!(node.metric(REPAIRS), 0.0);
}

#[test]
fn objects_are_followed_one_by_one_where_the_api_does_not_select_by_node() {
    let Some(node) = Node::start_with(
        Release::Newest,
        &["--fault-avoid-node-selector", "--sync-frequency", "1s"],
    ) else {
        return;
    };
    let immutable = |value: &str| {
        let mut object = config_map("i", json!({"a": value}));
        object["immutable"] = true.into();
        object
    };
    node.create([
        config_map("c", json!({"a": "1"})),
        immutable("1"),
        with_volume("p", "c"),
        with_volume("q", "i"),
        with_volume("r", "x"),
    ]);
    node.event("r", r#"configmap "x" not found"#);
    node.ready("p q");
    set(&node, "c", "2");
    node.until_file("p", "/v/a", "2");
    node.ok("create configmap x --from-literal=a=1");
    node.ready("r");
    node.ok("delete configmap i");
    node.create([immutable("2")]);
    node.until_file("q", "/v/a", "2");
    node.ok("delete configmap i");
    node.create([config_map("i", json!({"a": "3"}))]);
    node.until_file("q", "/v/a", "3");
    set(&node, "i", "4");
    node.until_file("q", "/v/a", "4");
    assert_eq!(node.metric(REPAIRS), 0.0);
}
