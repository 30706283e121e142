//! Faults of the node's own tmpfs, and what is foreign in a volume: the last good content stays, and the pod is told.

use std::{fs, os::unix::fs::symlink, process::Command};

use rustix::mount::{MountFlags, mount_remount};
use serde_json::{Value, json};

use crate::{
    harness::finish,
    host::{Node, config_map, idle, pod},
};

fn of_config_map(name: &str) -> Value {
    json!({"name": "v", "configMap": {"name": name}})
}

#[test]
fn a_full_node_keeps_the_last_good_content_and_heals_by_itself() {
    let Some(node) = Node::start() else { return };
    node.create([config_map("c", json!({"a": "1"}))]);
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/sub/a", "subPath": "a"},
        {"name": "v", "mountPath": "/sub/none", "subPath": "none"}]});
    // A volume that nobody mounts is nobody's concern.
    let unused = json!({"name": "unused", "configMap": {"name": "nowhere"}});
    node.create([pod(
        "p",
        json!({"containers": [idle(mount)], "volumes": [of_config_map("c"), unused]}),
    )]);
    node.ready("p");
    let refused = node.sh("p", "(echo x > /v/own) 2>&1 || test -d /sub/none");
    crate::has(&refused, &["Read-only file system"]);

    // No room for another revision: nothing changes but an event, until there is room again.
    let volumes = node.server.data_dir().join("volumes");
    let resize = |size: &str| {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(&volumes, flags, format!("mode=0711,size={size}")).expect("resized");
    };
    resize("64k");
    let big = node.file("big", "x".repeat(200 << 10));
    let created = format!(
        "create configmap big --from-file=big={} --from-literal=a=2 -o json --dry-run=client",
        big.display()
    );
    let mut full: Value = serde_json::from_str(&node.ok(&created)).expect("JSON");
    full["metadata"]["name"] = "c".into();
    node.apply(&full.to_string());
    node.event(
        "p",
        r#"FailedMount: MountVolume.SetUp failed for volume "v" : cannot stage "big": No space left on device (os error 28)"#,
    );
    assert_eq!(node.sh("p", "cat /v/a; ls /v"), "1a\nnone");
    assert_eq!(node.field("pod/p", ".status.phase"), "Running");
    resize("1g");
    node.until_file("p", "/v/a", "2");
    assert_eq!(node.sh("p", "wc -c < /v/big"), (200 << 10).to_string());

    // Somebody on the host puts a file where a key comes later.
    let uid = node.field("pod/p", ".metadata.uid");
    let foreign = volumes.join(uid).join("v").join("late");
    fs::write(&foreign, "foreign").expect("written");
    node.create([config_map("c", json!({"late": "3", "end": "4"}))]);
    node.event(
        "p",
        r#"ShadowedKey: volume "v": a foreign "late" hides what ..data/late has"#,
    );
    node.until_file("p", "/v/end", "4");
    assert_eq!(
        node.sh("p", "cat /v/late /v/..data/late; ls /v"),
        "foreign3end\nlate\nnone"
    );

    // A key that a subPath names is gone by now; its container keeps what it had.
    assert_eq!(node.sh("p", "cat /sub/a"), "1");

    // Paths that exclude each other are said before anything is written.
    let source = |path: &str| json!({"configMap": {"name": "c", "items": [{"key": "end", "path": path}]}});
    let volume = json!({"name": "v", "projected": {"sources": [source("foo"), source("foo/bar")]}});
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    node.create([pod(
        "q",
        json!({"containers": [idle(mount)], "volumes": [volume]}),
    )]);
    node.event(
        "q",
        r#"FailedMount: MountVolume.SetUp failed for volume "v" : "foo" cannot be a file and the directory of "foo/bar""#,
    );

    // Somebody on the host made a link of a volume's directory: nothing is written through it.
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let volume = of_config_map("later");
    node.create([pod(
        "r",
        json!({"containers": [idle(mount)], "volumes": [volume]}),
    )]);
    node.event("r", r#"configmap "later" not found"#);
    let outside = node.server.home().join("outside");
    let directory = volumes.join(node.field("pod/r", ".metadata.uid"));
    fs::create_dir_all(&outside).expect("a directory of ours");
    fs::create_dir_all(&directory).expect("a directory of the pod");
    symlink(&outside, directory.join("v")).expect("planted");
    node.ok("create configmap later --from-literal=a=1");
    node.event(
        "r",
        "cannot open the directory of the volume: Too many levels of symbolic links (os error 40)",
    );
    assert_eq!(fs::read_dir(&outside).expect("still there").count(), 0);
    fs::remove_file(directory.join("v")).expect("weeded");
    node.ready("r");
    assert_eq!(node.sh("r", "cat /v/a"), "1");

    // Or removed it: what comes next is written into a new one.
    fs::remove_dir_all(directory.join("v")).expect("removed");
    node.call(&["patch", "configmap", "later", "-p", r#"{"data": {"a": "2"}}"#])
        .ok();
    let script =
        r#"until [ "$(cat "$0/v/a" 2> /dev/null)" = 2 ]; do inotifywait -qq -t 1 -e create "$0" || :; done"#;
    finish(Command::new("sh").args(["-c", script]).arg(&directory), None).ok();
}
