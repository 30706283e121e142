//! SubPath mounts that follow their volume while the container runs, where the pod asks for it.

use serde_json::{Value, json};

use crate::{
    harness::Running,
    host::{Node, can_swap_mounts, config_map, idle, pod, secret},
};

/// A pod whose container mounts single files and a directory, with this value of the annotation.
fn with_sub_paths(name: &str, annotation: &str) -> Value {
    let mut pod = pod(
        name,
        json!({
            "containers": [idle(json!({"volumeMounts": [
                {"name": "config", "mountPath": "/etc/app/app.conf", "subPath": "app.conf"},
                {"name": "secret", "mountPath": "/etc/app/password", "subPath": "password"},
                {"name": "items", "mountPath": "/etc/items", "subPath": "deep"},
                {"name": "labels", "mountPath": "/etc/labels", "subPath": "labels"},
                {"name": "config", "mountPath": "/whole"}]}))],
            "volumes": [
                {"name": "config", "configMap": {"name": "c"}},
                {"name": "secret", "secret": {"secretName": "s"}},
                {"name": "items", "projected": {"sources": [
                    {"configMap": {"name": "c", "items": [{"key": "app.conf", "path": "deep/key"}]}}]}},
                {"name": "labels", "downwardAPI": {"items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            ],
        }),
    );
    pod["metadata"]["annotations"] = json!({"hotmap.dev/live-subpath": annotation});
    pod["metadata"]["labels"] = json!({"tier": "front"});
    pod
}

fn until(node: &Node, pod: &str, file: &str, says: &str) {
    // The limit of one second is for a change between the look and the watch.
    let directory = file.rsplit_once('/').expect("an absolute path").0;
    let script = format!(
        r#"until grep -qx '{says}' {file}; do inotifywait -qq -t 1 -e close_write -e attrib {directory} || :; done"#
    );
    node.exec(pod, &script).ok();
}

fn edit(node: &Node, object: &str, patch: Value) {
    node.call(&["patch", object, "-p", &patch.to_string()]).ok();
}

#[test]
fn sub_paths_follow_their_volume_where_the_pod_asks_for_it() {
    if !can_swap_mounts() {
        return;
    }
    let Some(mut node) = Node::start() else { return };
    node.create([
        config_map("c", json!({"app.conf": "1"})),
        secret("s", json!({"password": "one"})),
        with_sub_paths("live", "true"),
        with_sub_paths("plain", "false"),
        with_sub_paths("odd", "yes"),
    ]);
    node.ready("live plain odd");
    crate::has(
        &node.event("odd", "InvalidAnnotation"),
        &["hotmap.dev/live-subpath", "\"yes\""],
    );
    let process = node.process("live");
    let mounts = node.sh("live", "wc -l </proc/1/mountinfo");
    let watch = "inotifywait -m -e close_write --format '%f %e' /etc/app 2>&1";
    let mut watcher = Running::start(&mut node.command(&["exec", "live", "--", "sh", "-c", watch]));
    watcher.line_with("Watches established");

    edit(&node, "configmap/c", json!({"data": {"app.conf": "2"}}));
    edit(&node, "secret/s", json!({"stringData": {"password": "two"}}));
    node.ok("label pod live tier=back --overwrite");
    for (file, says) in [
        ("/etc/app/app.conf", "2"),
        ("/etc/app/password", "two"),
        ("/etc/items/key", "2"),
        ("/etc/labels", "tier=\"back\""),
    ] {
        until(&node, "live", file, says);
    }
    watcher.line_with("app.conf CLOSE_WRITE");
    for pod in ["plain", "odd"] {
        node.until_file(pod, "/whole/app.conf", "2");
        let seen = node.sh(pod, "cat /etc/app/app.conf");
        assert_eq!(seen, "1", "Kubernetes' semantics, unless somebody asks for more");
    }

    // A key that goes leaves what it said.
    edit(
        &node,
        "configmap/c",
        json!({"data": {"app.conf": null, "other": "x"}}),
    );
    crate::has(
        &node.event("live", "LiveSubPathBehind: /etc/app/app.conf"),
        &["\"config\"", "\"app.conf\" any more"],
    );
    node.wait("live", "condition=hotmap.dev/LiveSubPath=False");
    assert_eq!(node.sh("live", "cat /etc/app/app.conf /etc/items/key"), "22");

    // What changes while nobody is here is made up for, and the shims of before are still spoken to.
    node.server.crash();
    node.server.restart();
    edit(&node, "configmap/c", json!({"data": {"app.conf": "3"}}));
    until(&node, "live", "/etc/app/app.conf", "3");
    until(&node, "live", "/etc/items/key", "3");
    node.wait("live", "condition=hotmap.dev/LiveSubPath=True");
    assert_eq!(node.process("live"), process, "nobody was restarted");
    assert_eq!(node.sh("live", "wc -l </proc/1/mountinfo"), mounts);
    assert!(node.metric("hotmap_live_subpath_swaps_total{outcome=\"swapped\"}") >= 1.0);

    // The annotation is heard at any time.
    node.ok("annotate pod live hotmap.dev/live-subpath=false --overwrite");
    node.ok("annotate pod plain hotmap.dev/live-subpath=true --overwrite");
    until(&node, "plain", "/etc/app/app.conf", "3");
    node.wait("live", "condition=hotmap.dev/LiveSubPath=False");
    edit(&node, "configmap/c", json!({"data": {"app.conf": "4"}}));
    until(&node, "plain", "/etc/app/app.conf", "4");
    node.until_file("live", "/whole/app.conf", "4");
    assert_eq!(node.sh("live", "cat /etc/app/app.conf"), "3");
}

#[test]
fn what_cannot_follow_is_said_by_name() {
    if !can_swap_mounts() {
        return;
    }
    let Some(node) = Node::start() else { return };
    node.create([config_map("c", json!({"app.conf": "1"}))]);
    let mut early = pod(
        "early",
        json!({
            "containers": [idle(json!({"volumeMounts": [
                {"name": "config", "mountPath": "/etc/app.conf", "subPath": "app.conf"},
                {"name": "config", "mountPath": "/etc/later", "subPath": "later"}]}))],
            "volumes": [{"name": "config", "configMap": {"name": "c"}}],
        }),
    );
    early["metadata"]["annotations"] = json!({"hotmap.dev/live-subpath": "true"});
    node.create([early]);
    node.ready("early");
    crate::has(
        &node.event("early", "LiveSubPathBehind: /etc/later"),
        &["a directory stands there"],
    );
    edit(
        &node,
        "configmap/c",
        json!({"data": {"later": "x", "app.conf": "2"}}),
    );
    until(&node, "early", "/etc/app.conf", "2");
    assert_eq!(
        node.sh("early", "stat -c %F /etc/later"),
        "directory",
        "as in Kubernetes"
    );
    node.wait("early", "condition=hotmap.dev/LiveSubPath=False");

    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/live-subpath");
    node.ok(&format!("apply -f {example}"));
    node.ready("app");
    let mut log = node.start("logs -f app");
    log.line_with("level = info");
    edit(
        &node,
        "configmap/app",
        json!({"data": {"app.conf": "level = debug\n"}}),
    );
    log.line_with("level = debug");
}
