//! Containers that are restarted in place because their environment has changed, where the pod asks for it.

use serde_json::{Value, json};

use crate::host::{Node, config_map, idle, pod, secret, shell};

fn restarts(node: &Node, container: u32) -> String {
    node.field(
        "pod/p",
        &format!(".status.containerStatuses[{container}].restartCount"),
    )
}

fn until_restarts(node: &Node, count: u32) {
    let path = ".status.containerStatuses[0].restartCount";
    node.wait("p", &format!("jsonpath={{{path}}}={count}"));
}

fn edit(node: &Node, object: &str, patch: Value) {
    node.call(&["patch", object, "-p", &patch.to_string()]).ok();
}

#[test]
fn a_container_is_restarted_when_what_its_environment_reads_has_changed() {
    let Some(mut node) = Node::start() else { return };
    let script = "trap 'echo asked; exit 0' TERM; echo up $LEVEL $PASSWORD; sleep infinity & wait";
    let env = json!({"env": [
        {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "level"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]});
    let mut other = idle(json!({}));
    other["name"] = "other".into();
    let annotations = json!({"hotmap.dev/restart-containers": "env"});
    let mut p = pod("p", json!({"containers": [shell(script, env), other]}));
    p["metadata"]["annotations"] = annotations.clone();
    let mut once = pod(
        "once",
        json!({"restartPolicy": "Never", "containers": [idle(json!({}))]}),
    );
    once["metadata"]["annotations"] = annotations;
    node.create([
        config_map("c", json!({"level": "1", "unrelated": "x"})),
        secret("s", json!({"password": "one"})),
        p,
        once,
    ]);
    node.ready("p once");
    node.event(
        "once",
        "InvalidAnnotation: annotation hotmap.dev/restart-containers has no effect",
    );
    node.start("logs -f p -c main").line_with("up 1 one");

    // A key that the container does not read restarts nobody: the one restart is for the other.
    edit(&node, "configmap/c", json!({"data": {"unrelated": "y"}}));
    edit(&node, "configmap/c", json!({"data": {"level": "2"}}));
    until_restarts(&node, 1);
    node.start("logs -f p -c main").line_with("up 2 one");
    crate::has(&node.ok("logs p -c main --previous"), &["up 1 one", "asked"]);
    node.event(
        "p",
        "Killing: Container main environment changed, will be restarted",
    );

    // Without the key it goes on with what it has.
    edit(&node, "configmap/c", json!({"data": {"level": null}}));
    node.event("p", "EnvironmentBehind");
    assert_eq!(
        (restarts(&node, 0), restarts(&node, 1)),
        ("1".to_owned(), "0".to_owned())
    );

    // Who remembers what a container was started with is its shim.
    node.server.crash();
    node.server.restart();
    edit(&node, "configmap/c", json!({"data": {"level": "2"}}));
    edit(&node, "secret/s", json!({"stringData": {"password": "two"}}));
    until_restarts(&node, 2);
    node.start("logs -f p -c main").line_with("up 2 two");
    assert_eq!(restarts(&node, 1), "0", "the other container was left alone");
}
