//! Probes: who is asked, and what follows.

use serde_json::{Value, json};

use crate::{
    has,
    host::{Node, idle, pod, shell},
};

#[test]
fn readiness_follows_each_kind_of_probe() {
    let Some(node) = Node::start() else { return };
    let probe = |check: Value| {
        let mut probe = json!({"periodSeconds": 1, "failureThreshold": 1});
        probe
            .as_object_mut()
            .expect("an object")
            .extend(check.as_object().expect("an object").clone());
        json!({"readinessProbe": probe})
    };
    let serve = |more: Value| {
        shell(
            "mkdir -p /tmp/www; echo yes > /tmp/www/ok; exec busybox httpd -f -p 8080 -h /tmp/www",
            more,
        )
    };
    let mut named_port = probe(json!({"tcpSocket": {"port": "web"}}));
    named_port["ports"] = json!([{"name": "web", "containerPort": 8080}]);
    node.create([
        pod(
            "exec",
            json!({"containers": [idle(probe(json!({"exec": {"command": ["test", "-e", "/tmp/ok"]}})))]}),
        ),
        pod(
            "http",
            json!({"containers": [serve(probe(json!({"httpGet": {"path": "/ok", "port": 8080}})))]}),
        ),
        pod("tcp", json!({"containers": [serve(named_port)]})),
    ]);
    node.ready("http tcp");
    node.event("exec", "Unhealthy: Readiness probe failed: ");
    node.wait("exec", "condition=Ready=false");
    node.sh("exec", "touch /tmp/ok");
    node.ready("exec");
    node.sh("http", "rm /tmp/www/ok");
    node.wait("http", "condition=Ready=false");
    node.event(
        "http",
        "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 404",
    );
    has(&node.ok("get pod http"), &["0/1", "Running"]);
}

#[test]
fn nothing_else_is_asked_before_a_container_has_started_up() {
    let Some(node) = Node::start() else { return };
    let exec = |script: &str| json!({"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1, "failureThreshold": 1});
    let mut patient = exec("test -e /tmp/up");
    patient["failureThreshold"] = 1_000.into();
    let slow = json!({"startupProbe": patient, "readinessProbe": exec("touch /tmp/asked; test -e /tmp/ok"),
        "livenessProbe": exec("test -e /tmp/up")});
    let never = json!({"startupProbe": exec("false"), "livenessProbe": exec("true")});
    node.create([
        pod("slow", json!({"containers": [idle(slow)]})),
        pod("never", json!({"containers": [idle(never)]})),
    ]);
    node.event("slow", "Unhealthy: Startup probe failed: ");
    let status = |field: &str| node.field("pod/slow", &format!(".status.containerStatuses[0].{field}"));
    assert_eq!(
        (status("started").as_str(), status("restartCount").as_str()),
        ("false", "0")
    );
    assert_eq!(node.exec("slow", "test -e /tmp/asked").code, 1);
    node.event(
        "never",
        "Killing: Container main failed startup probe, will be restarted",
    );
    node.wait("never", "jsonpath={.status.containerStatuses[0].restartCount}=1");

    node.sh("slow", "touch /tmp/up");
    node.wait("slow", "jsonpath={.status.containerStatuses[0].started}=true");
    node.event("slow", "Unhealthy: Readiness probe failed: ");
    assert_eq!(status("ready"), "false");
    node.sh("slow", "touch /tmp/ok");
    node.ready("slow");
    assert_eq!(status("restartCount"), "0");
}

#[test]
fn a_container_that_does_not_live_is_restarted() {
    let Some(node) = Node::start() else { return };
    let probe = json!({"livenessProbe": {"exec": {"command": ["test", "-e", "/w/alive"]}, "periodSeconds": 1, "failureThreshold": 1},
        "volumeMounts": [{"name": "w", "mountPath": "/w"}]});
    node.create([pod(
        "p",
        json!({"containers": [shell("touch /w/alive; echo up; trap exit TERM; sleep infinity & wait", probe)],
        "volumes": [{"name": "w", "emptyDir": {}}]}),
    )]);
    node.ready("p");
    let before = node.process("p");
    node.sh("p", "rm /w/alive");
    node.event("p", "Unhealthy: Liveness probe failed: ");
    node.event(
        "p",
        "Killing: Container main failed liveness probe, will be restarted",
    );
    node.wait("p", "jsonpath={.status.containerStatuses[0].restartCount}=1");
    node.ready("p");
    assert_ne!(node.process("p"), before);
    assert_eq!(node.ok("logs p --previous"), "up\n");
}
