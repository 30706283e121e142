//! Pods that do their worst, all at once: the node goes on, and a pod beside them gets its configuration.

use std::path::Path;

use serde_json::json;

use crate::{
    harness::Release,
    host::{Node, config_map, idle, pod, shell},
    limits::{cgroup, says},
};

/// A tree that is deep, wide, and full of what is no file.
const GAMES: &str = r#"
chdir "/work" or die; mkdir "deep"; chdir "deep";
for (1..1500) { mkdir("d") && chdir("d") or die $! }
chdir "/work"; symlink "/", "out"; symlink "../../../../..", "up"; symlink "loop", "loop";
system("mkfifo", "pipe") == 0 or die; mkdir "many"; link "/work/pipe", "/work/pipe2";
for (1..3000) { open my $f, ">", "many/$_" or die $! }
mkdir "closed"; chmod 0, "closed";
"#;

#[test]
fn a_node_and_its_pods_outlive_the_worst_of_pods() {
    let Some(node) = Node::start_with(Release::Newest, &["--pod-max-pids", "64"]) else {
        return;
    };
    if node.metric("hotmap_limits_not_enforced{controller=\"pids\"}") > 0.0 {
        return eprintln!("skipped: this machine cannot limit processes");
    }
    node.create([
        config_map("settings", json!({"level": "1"})),
        pod(
            "calm",
            json!({"containers": [idle(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}))],
                "volumes": [{"name": "v", "configMap": {"name": "settings"}}]}),
        ),
    ]);
    let wait = "until [ -e /run/go ]; do inotifywait -qq -t 1 -e create /run || :; done;";
    let container = |name: &str, script: &str, more: serde_json::Value| {
        let mut made = shell(script, more);
        made["name"] = name.into();
        made
    };
    let work = |at: &str, sub_path: &str| json!([{"name": "work", "mountPath": at, "subPath": sub_path}]);
    let asleep = "sleep infinity & wait";
    node.create([
        pod(
            "bomb",
            json!({"containers": [
                container("main", &format!("{wait} bomb() {{ bomb | bomb & }}; bomb; {asleep}"), json!({})),
            ]}),
        ),
        pod(
            "flood",
            json!({"containers": [container("main", &format!("{wait} exec yes all work and no play"), json!({}))]}),
        ),
        pod(
            "games",
            json!({
                "initContainers": [
                    {"name": "plant", "image": "busybox", "command": ["perl", "-e", GAMES],
                        "volumeMounts": [{"name": "work", "mountPath": "/work"}]},
                ],
                "containers": [
                    container("pipe", asleep, json!({"volumeMounts": work("/mnt/pipe", "pipe")})),
                    container("out", asleep, json!({"volumeMounts": work("/mnt/out", "out")})),
                    container("up", asleep, json!({"volumeMounts": work("/mnt/up", "up/etc")})),
                ],
                "volumes": [{"name": "work", "emptyDir": {}}],
            }),
        ),
    ]);
    node.ready("calm bomb flood");

    // Nothing is set off whose limit is not in force.
    let pids = cgroup(&node, "bomb", "pids");
    let of_pod = pids.parent().expect("the pod's").to_owned();
    assert_eq!(says(&of_pod, &["pids.max"]), "64");
    drop(node.exec("flood", "touch /run/go"));
    drop(node.exec("bomb", "touch /run/go"));
    let is_refused = || {
        let of = |directory: &Path| says(directory, &["pids.events"]);
        [&of_pod, &pids].into_iter().any(|one| {
            of(one)
                .lines()
                .any(|line| line.starts_with("max ") && line != "max 0")
        })
    };
    while !is_refused() {
        assert_eq!(node.sh("calm", "echo here"), "here");
    }

    // While all that goes on, configuration arrives, logs are read, and links lead nowhere.
    for level in ["2", "3", "4"] {
        let patch = format!(r#"{{"data": {{"level": "{level}"}}}}"#);
        node.call(&["patch", "configmap", "settings", "-p", &patch]).ok();
        node.until_file("calm", "/v/level", level);
    }
    let mut follower = node.start("logs flood --follow --tail=1");
    follower.line_with("all work and no play");
    drop(follower);
    for container in ["out", "up"] {
        let shown = format!("{{.status.containerStatuses[?(@.name==\"{container}\")].state.waiting.reason}}");
        node.wait("games", &format!("jsonpath={shown}=CreateContainerConfigError"));
        let message = format!(".status.containerStatuses[?(@.name==\"{container}\")].state.waiting.message");
        crate::has(
            &node.field("pod/games", &message),
            &[
                "failed to prepare subPath",
                container,
                "Invalid cross-device link",
            ],
        );
    }
    let kind = node.call(&[
        "exec",
        "games",
        "-c",
        "pipe",
        "--",
        "stat",
        "-c",
        "%F",
        "/mnt/pipe",
    ]);
    assert_eq!(kind.ok(), "fifo\n");

    // They go as others do, and take everything with them.
    let uid = node.field("pod/games", ".metadata.uid");
    let left = ["empty-dirs", "pods", "volumes"].map(|name| node.server.data_dir().join(name).join(&uid));
    assert!(left[0].join("work/deep").exists());
    node.ok("delete pod bomb flood games");
    assert!(!of_pod.exists());
    for path in left {
        assert!(!path.exists(), "{}", path.display());
    }
    assert_eq!(node.sh("calm", "cat /v/level"), "4");
    assert_eq!(
        node.field("pod/calm", ".status.containerStatuses[0].restartCount"),
        "0"
    );
}
