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
    node.create([pod("not-root", with(json!({"runAsNonRoot": true}), json!({})))]);
    node.waiting("not-root", "CreateContainerConfigError");
    node.event(
        "not-root",
        "container has runAsNonRoot and image will run as root",
    );
}
