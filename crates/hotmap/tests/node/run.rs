//! examples/run-env and examples/run-nginx: `run` as process 1 of a container.

use std::path::Path;

use serde_json::{Value, json};

use crate::{article_001::example, has, host::Node};

/// The manifest with the program of this build: its directory is mounted, for it is installed nowhere.
fn manifest(file: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_hotmap"));
    let directory = program.parent().expect("a directory").display().to_string();
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&example(file)).expect("a manifest of ours");
    let spec = &mut objects[1]["spec"];
    let container = &mut spec["containers"][0];
    container["command"][0] = "/opt/hotmap/hotmap".into();
    if let Some(probe) = container.pointer_mut("/readinessProbe/exec/command/0") {
        *probe = "/opt/hotmap/hotmap".into();
    }
    let list = |value: &mut Value, item: Value| value.as_array_mut().expect("a list").push(item);
    let mount = json!({"name": "program", "mountPath": "/opt/hotmap", "readOnly": true});
    list(&mut container["volumeMounts"], mount);
    list(
        &mut spec["volumes"],
        json!({"name": "program", "hostPath": {"path": directory}}),
    );
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// Waits until the pod's log has a line that holds this.
fn until_logged(node: &Node, pod: &str, text: &str) {
    while !node.ok(&format!("logs {pod}")).contains(text) {}
}

#[test]
fn the_environment_follows_its_config_map_in_the_same_container() {
    let Some(node) = Node::start() else { return };
    node.apply(&manifest("run-env/manifest.yaml"));
    node.ready("greeter");
    until_logged(&node, "greeter", "GREETING is hello");
    let process = node.process("greeter");
    node.edit(
        "configmap greeter",
        r#"sed -i 's/GREETING: .*/GREETING: good morning/' "$1""#,
    )
    .ok();
    until_logged(&node, "greeter", "GREETING is good morning");
    assert_eq!(node.process("greeter"), process, "the container is the same");
    node.ready("greeter");
    node.ok("delete pod greeter --timeout=120s");
}

#[test]
fn nginx_under_run_follows_its_config_map_and_a_broken_one_is_held_back() {
    let Some(node) = Node::start() else { return };
    node.apply(&manifest("run-nginx/manifest.yaml"));
    node.ready("web");
    let process = node.process("web");
    let served = "busybox wget -qO- http://localhost:8080/";
    has(&node.sh("web", served), &["Hello from a ConfigMap"]);
    let until = |text: &str| {
        let script = format!(r#"until [ "$({served})" = "{text}" ]; do sleep 0.1; done"#);
        node.exec("web", &script).ok();
    };
    node.edit(
        "configmap web-conf",
        r#"sed -i 's/Hello from a ConfigMap/Hello again/' "$1""#,
    )
    .ok();
    until("Hello again");
    node.edit(
        "configmap web-conf",
        r#"sed -i 's/listen 8080/lissten 8080/' "$1""#,
    )
    .ok();
    until_logged(&node, "web", "change held back");
    until("Hello again");
    let mend = r#"sed -i 's/lissten 8080/listen 8080/; s/Hello again/Hello at last/' "$1""#;
    node.edit("configmap web-conf", mend).ok();
    until("Hello at last");
    assert_eq!(node.process("web"), process, "the container is the same");
    node.ok("delete pod web --timeout=120s");
}
