//! `shareProcessNamespace`: the containers of a pod see each other's processes, and each ends by itself.

use serde_json::{Value, json};

use crate::host::{Node, pod, shell};

#[test]
fn a_container_signals_another_one_of_its_pod() {
    let Some(mut node) = Node::start() else { return };
    let named = |name: &str, script: &str, more: Value| {
        let mut container = shell(script, more);
        container["name"] = name.into();
        container
    };
    // A doubled dollar sign is one for the shell.
    let app = "trap 'echo reloaded' HUP; trap 'exit 5' TERM; echo $$$$ > /w/main; sleep infinity & echo $! > /w/child; echo up; \
               while :; do wait; sleep 0.1; done";
    let mount = json!({"volumeMounts": [{"name": "w", "mountPath": "/w"}]});
    let mut side = named("side", "sleep infinity", mount.clone());
    side["restartPolicy"] = "Always".into();
    node.create([pod(
        "p",
        json!({"shareProcessNamespace": true, "initContainers": [side], "containers": [named("main", app, mount)],
            "volumes": [{"name": "w", "emptyDir": {}}]}),
    )]);
    node.ready("p");
    let mut log = node.start("logs -f p -c main");
    log.line_with("up");
    let run = |node: &Node, script: &str| {
        let command = ["exec", "p", "-c", "side", "--", "sh", "-c", script];
        node.call(&command)
    };
    assert_eq!(run(&node, "cat /proc/1/comm").ok(), "pause\n");
    run(&node, "kill -HUP $(cat /w/main)").ok();
    log.line_with("reloaded");

    // It outlives the agent, and the end of one container is that of its processes alone.
    node.server.crash_and_restart();
    node.ready("p");
    let before = node.field("pod/p", ".status.initContainerStatuses[0].containerID");
    let child = run(&node, "cat /w/child").ok();
    let child = child.trim();
    run(
        &node,
        &format!("test -e /proc/{child} && kill -TERM $(cat /w/main)"),
    )
    .ok();
    node.wait("p", "jsonpath={.status.containerStatuses[0].restartCount}=1");
    node.ready("p");
    assert_eq!(
        node.field(
            "pod/p",
            ".status.containerStatuses[0].lastState.terminated.exitCode"
        ),
        "5"
    );
    assert_eq!(
        node.field("pod/p", ".status.initContainerStatuses[0].containerID"),
        before
    );
    // What it has left behind, a child that nobody told to end, is gone.
    run(&node, &format!("! test -e /proc/{child}")).ok();
    node.ok("delete pod p --timeout=120s");
}

#[test]
fn the_hosts_processes_are_not_shared() {
    let Some(node) = Node::start() else { return };
    let refused = node.feed(
        "apply -f -",
        pod(
            "both",
            json!({"hostPID": true, "shareProcessNamespace": true, "containers": [shell("true", json!({}))]}),
        )
        .to_string(),
    );
    let said = refused.refused();
    assert!(
        said.contains("ShareProcessNamespace and HostPID cannot both be enabled"),
        "{said}"
    );
    node.create([pod(
        "host",
        json!({"hostPID": true, "containers": [shell("true", json!({}))]}),
    )]);
    node.phase("host", "Failed");
    let message = node.field("pod/host", ".status.message");
    assert!(
        message.contains("spec.hostPID: pods do not share the host's namespaces"),
        "{message}"
    );
}
