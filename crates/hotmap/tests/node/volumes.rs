//! What each kind of volume puts into a pod.

use serde_json::{Value, json};

use crate::{
    harness::finish,
    host::{Node, config_map, idle, pod, secret},
};

/// Bytes of values that one object may hold.
const OBJECT_BYTES_MAX: usize = 1_048_576;

fn mounts(names: &[&str]) -> Value {
    let mounts = names
        .iter()
        .map(|name| json!({"name": name, "mountPath": format!("/{name}")}));
    json!({"volumeMounts": Vec::from_iter(mounts)})
}

#[test]
fn every_kind_of_configuration_has_its_content_owner_and_mode() {
    let Some(node) = Node::start() else { return };
    node.create([
        config_map("c", json!({"a": "1", "b": "2"})),
        secret("s", json!({"password": "hush"})),
    ]);
    let mut p = pod(
        "p",
        json!({
            "securityContext": {"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000},
            "containers": [idle(mounts(&["secret", "items", "downward", "all"]))],
            "volumes": [
                {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
                {"name": "items", "configMap": {"name": "c", "items": [{"key": "b", "path": "x/y", "mode": 0o600}]}},
                {"name": "downward", "downwardAPI": {"items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                    {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
                {"name": "all", "projected": {"sources": [
                    {"configMap": {"name": "c", "items": [{"key": "a", "path": "from/config-map"}]}},
                    {"secret": {"name": "s", "items": [{"key": "password", "path": "from/secret"}]}},
                    {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
            ],
        }),
    );
    p["metadata"]["labels"] = json!({"app": "web", "tier": "front"});
    node.create([p]);
    node.ready("p");
    assert_eq!(node.sh("p", "id -u; id -g; id -G"), "1000\n2000\n2000 3000");
    for (file, content, mode) in [
        ("/secret/password", "hush", "440 0:3000"),
        ("/items/x/y", "2", "640 0:3000"),
        ("/downward/labels", "app=\"web\"\ntier=\"front\"", "644 0:3000"),
        ("/all/from/config-map", "1", "644 0:3000"),
        ("/all/from/secret", "hush", "644 0:3000"),
        ("/all/name", "p", "644 0:3000"),
    ] {
        let seen = node.sh("p", &format!("cat {file}; echo; stat -L -c '%a %u:%g' {file}"));
        assert_eq!(seen, format!("{content}\n{mode}"), "{file}");
    }
    node.exec("p", "echo x > /all/name").ended(2);
    node.ok("label pod p tier=back --overwrite");
    node.exec(
        "p",
        "until grep -q back /downward/labels; do inotifywait -qq -t 1 -e moved_to /downward || :; done",
    )
    .ok();
}

#[test]
fn containers_share_an_empty_dir_and_the_hosts_directory() {
    let Some(node) = Node::start() else { return };
    let host = node.server.home().join("shared");
    std::fs::create_dir(&host).expect("a directory of ours");
    std::fs::write(host.join("from-host"), "hello").expect("a file of ours");
    let mut other = idle(mounts(&["disk", "memory", "host"]));
    other["name"] = "other".into();
    node.create([pod(
        "p",
        json!({
            "containers": [idle(mounts(&["disk", "memory", "host"])), other],
            "volumes": [
                {"name": "disk", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "host", "hostPath": {"path": host}},
            ],
        }),
    )]);
    node.ready("p");
    node.sh(
        "p",
        "echo one > /disk/f; echo two > /memory/f; cat /host/from-host",
    );
    let read = [
        "exec",
        "p",
        "-c",
        "other",
        "--",
        "sh",
        "-c",
        "cat /disk/f /memory/f /host/from-host",
    ];
    assert_eq!(node.call(&read).ok(), "one\ntwo\nhello");
    assert_eq!(node.sh("p", "stat -f -c %T /memory"), "tmpfs");
    assert_ne!(node.sh("p", "stat -f -c %T /disk"), "tmpfs");
    let uid = node.field("pod/p", ".metadata.uid");
    node.ok("delete pod p");
    let left = finish(
        std::process::Command::new("find")
            .arg(node.server.data_dir())
            // Logs go right after the object has gone.
            .args(["-name", "logs", "-prune", "-o", "-name", &uid, "-print"]),
        None,
    );
    assert_eq!(left.ok(), "", "nothing of a deleted pod is kept");
    assert!(
        host.join("from-host").exists(),
        "the host's directory is the host's"
    );
}

#[test]
fn the_largest_object_arrives_byte_for_byte_and_one_byte_more_is_refused() {
    let Some(node) = Node::start() else { return };
    // Every byte value, in an order that repeats late.
    let bytes = Vec::from_iter((0..OBJECT_BYTES_MAX).map(|index| (index * 31 + index / 257) as u8));
    let file = node.file("all-bytes", &bytes);
    let create = format!("create configmap big --from-file=all-bytes={}", file.display());
    node.ok(&create);
    let sum = finish(std::process::Command::new("sha256sum").arg(&file), None).ok();
    let sum = sum.split(' ').next().expect("a sum").to_owned();
    node.create([pod("p", json!({"containers": [idle(mounts(&["v"]))], "volumes": [{"name": "v", "configMap": {"name": "big"}}]}))]);
    node.ready("p");
    assert_eq!(node.sh("p", "sha256sum /v/all-bytes | cut -d ' ' -f 1"), sum);
    node.file("all-bytes", [bytes.as_slice(), b"x"].concat());
    let refused = node
        .run(&create.replace("configmap big", "configmap bigger"))
        .refused();
    crate::has(&refused, &["may not be more than 1048576 bytes"]);
}

#[test]
fn a_directory_that_is_replaced_never_shows_a_mixture() {
    let Some(node) = Node::start() else { return };
    node.create([config_map("c", json!({"a": "0", "b": "0"}))]);
    node.create([pod("p", json!({"containers": [crate::host::shell(
        "while :; do cd -P /v/..data 2>/dev/null && a=$(cat a 2>/dev/null) && b=$(cat b 2>/dev/null) && [ \"$a\" != \"$b\" ] && echo torn $a $b; [ \"$a\" = 40 ] && echo done && break; done; sleep infinity",
        mounts(&["v"]))], "volumes": [{"name": "v", "configMap": {"name": "c"}}]}))]);
    node.ready("p");
    let mut log = node.start("logs -f p");
    for count in 1..=40 {
        let patch = json!({"data": {"a": count.to_string(), "b": count.to_string()}}).to_string();
        node.call(&["patch", "configmap", "c", "-p", &patch]).ok();
    }
    assert_eq!(log.line_with(""), "done");
}
