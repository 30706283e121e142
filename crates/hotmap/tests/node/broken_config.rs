//! What a pod waits for when its configuration is not there, and what it is told.

use serde_json::{Value, json};

use crate::host::{Node, config_map, idle, pod};

fn with_volume(name: &str, source: Value) -> Value {
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let mut volume = source;
    volume["name"] = "v".into();
    pod(name, json!({"containers": [idle(mount)], "volumes": [volume]}))
}

fn with_env(name: &str, more: Value) -> Value {
    pod(name, json!({"containers": [idle(more)]}))
}

#[test]
fn what_is_missing_is_named_and_a_pod_starts_once_it_is_there() {
    let Some(node) = Node::start() else { return };
    node.create([config_map("has-a", json!({"a": "1"}))]);
    node.create([
        with_volume("no-object", json!({"configMap": {"name": "x"}})),
        with_volume("no-secret", json!({"secret": {"secretName": "y"}})),
        with_volume(
            "no-key",
            json!({"configMap": {"name": "has-a", "items": [{"key": "k", "path": "k"}]}}),
        ),
        with_volume("optional", json!({"configMap": {"name": "z", "optional": true}})),
        with_env("no-env", json!({"envFrom": [{"configMapRef": {"name": "x"}}]})),
        with_env(
            "no-env-key",
            json!({"env": [{"name": "K", "valueFrom":
            {"configMapKeyRef": {"name": "has-a", "key": "k"}}}]}),
        ),
        with_env(
            "optional-env",
            json!({"envFrom": [{"secretRef": {"name": "z", "optional": true}}]}),
        ),
    ]);
    for (pod, reason, event) in [
        (
            "no-object",
            "ContainerCreating",
            r#"FailedMount: MountVolume.SetUp failed for volume "v" : configmap "x" not found"#,
        ),
        (
            "no-secret",
            "ContainerCreating",
            r#"FailedMount: MountVolume.SetUp failed for volume "v" : secret "y" not found"#,
        ),
        (
            "no-key",
            "ContainerCreating",
            r#"FailedMount: MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: k"#,
        ),
        (
            "no-env",
            "CreateContainerConfigError",
            r#"Failed: Error: configmap "x" not found"#,
        ),
        (
            "no-env-key",
            "CreateContainerConfigError",
            "Failed: Error: couldn't find key k in ConfigMap default/has-a",
        ),
    ] {
        node.waiting(pod, reason);
        node.event(pod, event);
    }
    node.ready("optional optional-env");
    assert_eq!(node.sh("optional", "ls /v"), "");

    node.ok("create configmap x --from-literal=a=1");
    node.ok("create secret generic y --from-literal=a=1");
    node.call(&["patch", "configmap", "has-a", "-p", r#"{"data": {"k": "2"}}"#])
        .ok();
    node.ok("create configmap z --from-literal=late=1");
    node.ready("no-object no-secret no-key no-env no-env-key");
    assert_eq!(node.sh("no-env-key", "echo $K; echo $a"), "2");
    node.until_file("optional", "/v/late", "1");
}

#[test]
fn the_last_good_content_stays() {
    let Some(node) = Node::start() else { return };
    node.create([config_map("c", json!({"a": "1", "b": "2"}))]);
    node.create([
        with_volume("whole", json!({"configMap": {"name": "c"}})),
        with_volume(
            "items",
            json!({"configMap": {"name": "c", "items": [{"key": "a", "path": "deep/a"}]}}),
        ),
    ]);
    node.ready("whole items");
    node.call(&["patch", "configmap", "c", "-p", r#"{"data": {"a": null}}"#])
        .ok();
    node.event("items", "configmap references non-existent config key: a");
    node.exec(
        "whole",
        "while test -e /v/a; do inotifywait -qq -t 1 -e delete /v || :; done",
    )
    .ok();
    assert_eq!(node.sh("items", "cat /v/deep/a"), "1");

    node.ok("delete configmap c");
    node.event("whole", r#"configmap "c" not found"#);
    assert_eq!(node.sh("whole", "cat /v/b"), "2");
    assert_eq!(node.field("pod/whole", ".status.phase"), "Running");
    node.ok("create configmap c --from-literal=b=3");
    node.until_file("whole", "/v/b", "3");
    for metric in [
        "hotmap_volume_failures_total{reason=\"missing\"}",
        "hotmap_volume_writes_total{outcome=\"swapped\"}",
        "hotmap_propagation_seconds_count",
        "hotmap_projection_seconds_count",
    ] {
        assert!(node.metric(metric) > 0.0, "{metric}");
    }
    assert!(node.metric("hotmap_propagation_seconds_sum") > 0.0);
    assert_eq!(node.metric("hotmap_resync_repairs_total"), 0.0);
    assert_eq!(
        (node.metric("hotmap_volumes"), node.metric("hotmap_pods")),
        (4.0, 2.0)
    );
}

#[test]
fn what_this_node_cannot_give_is_refused_by_name() {
    let Some(node) = Node::start() else { return };
    let container = |more: Value| json!({"containers": [idle(more)]});
    let spec = |field: &str, value: Value| {
        let mut spec = container(json!({}));
        spec[field] = value;
        spec
    };
    for (name, spec, message) in [
        (
            "hook",
            container(json!({"lifecycle": {"preStop": {"tcpSocket": {"port": 1}}}})),
            "spec.containers[0].lifecycle.preStop.tcpSocket: it never did anything, and upstream's hook fails too",
        ),
        (
            "nfs",
            spec(
                "volumes",
                json!([{"name": "v", "nfs": {"server": "s", "path": "/"}}]),
            ),
            "spec.volumes[0].nfs: no network file system is mounted: mount it on the host and name it by a hostPath",
        ),
        (
            "privileged",
            container(json!({"securityContext": {"privileged": true}})),
            "container main is privileged: this node was started without --allow-privileged",
        ),
    ] {
        node.create([pod(name, spec)]);
        node.phase(name, "Failed");
        let told = node.field(&format!("pod/{name}"), ".status.reason")
            + ": "
            + &node.field(&format!("pod/{name}"), ".status.message");
        assert_eq!(told, format!("Unsupported: {message}"));
        node.event(name, message);
    }
    node.create([pod(
        "limits",
        container(json!({"resources": {"limits": {"example.com/door": 1}}})),
    )]);
    node.event(
        "limits",
        "Ignored: spec.containers[0].resources.limits.example.com/door: the node has nothing of this name to give",
    );
    node.ready("limits");
}

#[test]
fn an_image_that_stands_for_nothing_says_what_to_do() {
    let Some(node) = Node::start() else { return };
    node.create([pod(
        "memcached",
        json!({"containers": [{"name": "main", "image": "memcached:1"}]}),
    )]);
    node.waiting("memcached", "ErrImageNeverPull");
    let message = node.field(
        "pod/memcached",
        ".status.containerStatuses[0].state.waiting.message",
    );
    crate::has(
        &message,
        &["memcached:1", "give the container a command", "host-images.yaml"],
    );
}
