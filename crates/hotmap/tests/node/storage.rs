//! How much of the machine's disk and memory the volumes and layers of a pod may take, and what of the host it is shown.

use serde_json::json;

use crate::host::{Node, idle, pod, shell};

#[test]
fn a_pod_that_takes_too_much_is_evicted_and_memory_ends_where_it_should() {
    let Some(node) = Node::start() else { return };
    let fill = "dd if=/dev/zero of=/memory/file bs=64k count=32 2>/dev/null; stat -c 'memory %s' /memory/file; \
        dd if=/dev/zero of=/disk/file bs=64k count=32 2>/dev/null; sleep infinity & wait";
    let write = "dd if=/dev/zero of=/var/file bs=64k count=32 2>/dev/null; sleep infinity & wait";
    let last_words =
        "dd if=/dev/zero of=/dev/termination-log bs=64k count=32 2>/dev/null; sleep infinity & wait";
    let limited = json!({"resources": {"limits": {"ephemeral-storage": "1Mi"}}});
    node.create([
        pod(
            "volume",
            json!({
                "containers": [shell(fill, json!({"volumeMounts": [
                    {"name": "disk", "mountPath": "/disk"}, {"name": "memory", "mountPath": "/memory"}]}))],
                "volumes": [
                    {"name": "disk", "emptyDir": {"sizeLimit": "1Mi"}},
                    {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                ],
            }),
        ),
        pod("layer", json!({"containers": [shell(write, limited.clone())]})),
        pod("words", json!({"containers": [shell(last_words, limited)]})),
        pod(
            "modest",
            json!({"containers": [idle(json!({"volumeMounts": [{"name": "disk", "mountPath": "/disk"}]}))],
                "volumes": [{"name": "disk", "emptyDir": {"sizeLimit": "64Mi"}}]}),
        ),
    ]);
    for (name, message) in [
        (
            "volume",
            r#"Usage of EmptyDir volume "disk" exceeds the limit "1Mi". "#,
        ),
        (
            "layer",
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
        (
            "words",
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
        ),
    ] {
        node.phase(name, "Failed");
        let object = format!("pod/{name}");
        assert_eq!(node.field(&object, ".status.reason"), "Evicted");
        assert_eq!(node.field(&object, ".status.message"), message);
        let state = node.field(&object, ".status.containerStatuses[0].state");
        assert!(state.contains("terminated"), "it is not restarted: {state}");
        node.event(name, &format!("Evicted: {}", message.trim_end()));
    }
    assert_eq!(node.ok("logs volume"), "memory 1048576\n");
    node.ready("modest");
    assert_eq!(
        node.field("pod/modest", ".status.containerStatuses[0].restartCount"),
        "0"
    );
}

#[test]
fn a_host_path_is_of_its_type_and_nothing_of_the_node_itself() {
    let Some(node) = Node::start() else { return };
    let host = node.server.home().join("shared");
    std::fs::create_dir(&host).expect("a directory of ours");
    std::fs::write(host.join("file"), "of the host").expect("a file of ours");
    let _listener = std::os::unix::net::UnixListener::bind(host.join("socket")).expect("a socket of ours");
    let volumes: [(&str, &str, &str); 5] = [
        ("directory", "", "Directory"),
        ("file", "file", "File"),
        ("new", "new/directory", "DirectoryOrCreate"),
        ("empty", "empty-file", "FileOrCreate"),
        ("socket", "socket", "Socket"),
    ];
    let source = |path: &str, kind: &str| json!({"path": host.join(path), "type": kind});
    let mounts = volumes.map(|(name, ..)| json!({"name": name, "mountPath": format!("/{name}")}));
    let sources = volumes.map(|(name, path, kind)| json!({"name": name, "hostPath": source(path, kind)}));
    let data = node.server.data_dir();
    let one = |path: serde_json::Value| {
        json!({"containers": [idle(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}))],
            "volumes": [{"name": "v", "hostPath": path}]})
    };
    node.create([
        pod(
            "all",
            json!({"containers": [idle(json!({"volumeMounts": mounts}))], "volumes": sources}),
        ),
        pod("wrong", one(source("file", "Directory"))),
        pod("own", one(json!({"path": data.join("volumes")}))),
    ]);
    node.ready("all");
    assert_eq!(
        node.sh(
            "all",
            "cat /directory/file /file; test -d /new; test -S /socket && stat -c %s /empty"
        ),
        "of the hostof the host0"
    );
    for (name, part) in [
        (
            "wrong",
            "FailedMount: MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: ",
        ),
        ("own", "of which no pod is shown anything"),
    ] {
        node.event(name, part);
        node.waiting(name, "ContainerCreating");
    }
}
