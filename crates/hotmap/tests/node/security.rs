//! Who a container is, and what it may do.

use serde_json::{Value, json};

use crate::host::{Node, idle, pod};

#[test]
fn users_groups_and_privileges_are_as_asked() {
    let Some(node) = Node::start() else { return };
    let with = |pod_level: Value, own: Value| json!({"securityContext": pod_level, "containers": [idle(json!({"securityContext": own}))]});
    let status = "id -u; id -g; grep -E 'NoNewPrivs|CapEff' /proc/self/status | cut -f 2";
    for (name, spec, seen) in [
        ("root", with(json!({}), json!({})), "0\n0\n00000000a80425fb\n0"),
        (
            "user",
            with(json!({"runAsUser": 7}), json!({})),
            "7\n0\n0000000000000000\n0",
        ),
        (
            "own",
            with(
                json!({"runAsUser": 7}),
                json!({"runAsUser": 8, "runAsGroup": 9, "runAsNonRoot": true}),
            ),
            "8\n9\n0000000000000000\n0",
        ),
        (
            "no-more",
            with(json!({}), json!({"allowPrivilegeEscalation": false})),
            "0\n0\n00000000a80425fb\n1",
        ),
        (
            "less",
            with(
                json!({}),
                json!({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
            ),
            "0\n0\n0000000000000400\n0",
        ),
    ] {
        node.create([pod(name, spec)]);
        node.ready(name);
        let found = node.sh(name, status);
        let mut lines = Vec::from_iter(found.lines());
        // The kernel lists CapEff before NoNewPrivs.
        assert_eq!(lines.len(), 4, "{found}");
        lines.truncate(4);
        assert_eq!(lines.join("\n"), seen, "{name}");
    }
    node.create([
        pod("not-root", with(json!({"runAsNonRoot": true}), json!({}))),
        pod(
            "breaks",
            with(json!({"runAsNonRoot": true}), json!({"runAsUser": 0})),
        ),
    ]);
    for (name, message) in [
        (
            "not-root",
            "container has runAsNonRoot and image will run as root",
        ),
        (
            "breaks",
            "container's runAsUser breaks non-root policy (pod: \"breaks_default(",
        ),
    ] {
        node.waiting(name, "CreateContainerConfigError");
        node.event(name, message);
    }
}

#[test]
fn a_restricted_pod_has_its_groups_a_read_only_root_and_few_system_calls() {
    let Some(node) = Node::start() else { return };
    let spec = json!({
        "securityContext": {"runAsUser": 1000, "supplementalGroups": [5000, 4000], "supplementalGroupsPolicy": "Strict",
            "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [idle(json!({
            "securityContext": {"runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}]}))],
        "volumes": [{"name": "scratch", "emptyDir": {}}]});
    let applied = node.file("pod.json", pod("p", spec).to_string());
    let applied = node.run(&format!("apply -f {}", applied.display()));
    assert_eq!(
        (applied.code, applied.stderr.as_str()),
        (0, ""),
        "nothing to warn of"
    );
    node.ready("p");
    assert_eq!(node.sh("p", "id -G"), "0 4000 5000");
    assert_eq!(
        node.field("pod/p", ".status.containerStatuses[0].user.linux"),
        r#"{"gid":0,"supplementalGroups":[0,4000,5000],"uid":1000}"#
    );
    assert_eq!(node.sh("p", "grep Seccomp: /proc/self/status | cut -f 2"), "2");
    for (refused, why) in [
        ("echo x > /run/file", "Read-only file system"),
        ("echo x > /etc/file", ""),
        ("unshare -U true", "Operation not permitted"),
        ("mount -t tmpfs none /tmp", ""),
    ] {
        let tried = node.exec("p", refused);
        assert!(
            tried.code != 0 && tried.stderr.contains(why),
            "{refused}: {tried:?}"
        );
    }
    node.sh("p", "echo x > /tmp/file && echo null > /dev/null");
}
