//! What `down` ends, what it leaves, and that instances never meet.

use serde_json::json;

use crate::{
    has,
    host::{Node, config_map, idle, leftovers, pod, shell},
};

fn reader(name: &str) -> serde_json::Value {
    pod(
        name,
        json!({"containers": [idle(json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]}))],
        "volumes": [{"name": "c", "configMap": {"name": "c"}}]}),
    )
}

#[test]
fn pods_outlive_up_and_down_ends_them() {
    let Some(mut node) = Node::start() else { return };
    node.create([config_map("c", json!({"a": "1"}))]);
    node.create([reader("p")]);
    node.ready("p");
    let (process, address) = (node.process("p"), node.field("pod/p", ".status.podIP"));
    has(
        &node.down(&[]).refused(),
        &["another hotmap (process", "stop it first"],
    );

    has(
        &node.server.stop().join("\n"),
        &["1 pod goes on running: `hotmap down"],
    );
    node.server.restart();
    node.ready("p");
    assert_eq!(node.process("p"), process, "the same process after a clean stop");

    let asked =
        "trap 'echo asked > /e/asked; exit 0' TERM; echo > /e/trapped; busybox sleep 1000000 & wait $!";
    node.create([pod(
        "asked",
        json!({"containers": [shell(asked, json!({"volumeMounts": [{"name": "e", "mountPath": "/e"}]}))],
            "volumes": [{"name": "e", "emptyDir": {}}]}),
    )]);
    node.ready("asked");
    node.until_file("asked", "/e/trapped", "");
    node.server.stop();
    has(
        &node.down(&["--grace-period", "10s"]).ok(),
        &["no pods of", "are running"],
    );
    let left = leftovers(&node.id(), &node.server.data_dir());
    assert_eq!(
        left,
        [node.server.data_dir().display().to_string()],
        "the objects stay"
    );

    // The API still holds the pod, so it runs again, and it is another one.
    node.server.restart();
    node.ready("p");
    assert_ne!(node.process("p"), process);
    assert_eq!(node.sh("p", "cat /c/a"), "1");
    node.ready("asked");
    assert_eq!(node.sh("asked", "cat /e/asked"), "asked");
    has(&address, &["10."]);
}

#[test]
fn instances_side_by_side_never_meet() {
    let Some(mut one) = Node::start() else { return };
    let Some(two) = Node::start() else { return };
    for node in [&one, &two] {
        node.create([config_map("c", json!({"a": node.id()}))]);
        node.create([reader("p")]);
    }
    one.ready("p");
    two.ready("p");
    let process = two.process("p");
    let seen = |node: &Node| node.sh("p", "cat /c/a");
    assert_eq!((seen(&one), seen(&two)), (one.id(), two.id()));
    let network = |node: &Node| {
        let address = node.field("pod/p", ".status.podIP");
        address.split('.').take(2).collect::<Vec<_>>().join(".")
    };
    assert_ne!(network(&one), network(&two));

    one.server.stop();
    one.down(&["--purge"]).ok();
    assert!(!one.server.data_dir().exists());
    assert_eq!(two.process("p"), process);
    two.call(&["patch", "configmap", "c", "-p", r#"{"data": {"a": "new"}}"#])
        .ok();
    two.until_file("p", "/c/a", "new");
}
