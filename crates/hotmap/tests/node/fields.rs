//! Small fields of a pod that are seen from inside, all in one pod.

use serde_json::json;

use crate::host::{Node, idle, pod};

#[test]
fn small_fields_are_seen_from_inside() {
    let Some(node) = Node::start() else { return };
    let made = node.server.home().join("made/by/the-pod");
    let terminal = idle(json!({
        "workingDir": "/made/here",
        "tty": true,
        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
    }));
    node.create([
        pod(
            "p",
            json!({
                "hostname": "named",
                "automountServiceAccountToken": false,
                "containers": [terminal],
                "volumes": [{"name": "host", "hostPath": {"path": made, "type": "DirectoryOrCreate"}}],
            }),
        ),
        pod("plain", json!({"containers": [idle(json!({}))]})),
    ]);
    node.ready("p plain");
    let look = "hostname; readlink /proc/1/cwd; test -t 0 < /proc/1/fd/1 && echo terminal || echo none; ls /var/run/secrets/kubernetes.io/serviceaccount 2> /dev/null | head -n 1; if [ -d /host ]; then echo made; fi";
    assert_eq!(node.sh("p", look), "named\n/made/here\nterminal\nmade");
    assert_eq!(node.sh("plain", look), "plain\n/\nnone\nca.crt");
    assert!(made.is_dir());
}
