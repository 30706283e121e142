//! Pods from their first init container to their last exit code.

use serde_json::{Value, json};

use crate::{
    has,
    host::{Node, idle, pod, shell},
};

const STATUS: &str = ".status.containerStatuses[0]";

#[test]
fn init_containers_run_one_after_the_other_before_the_rest() {
    let Some(node) = Node::start() else { return };
    let shared = json!({"volumeMounts": [{"name": "w", "mountPath": "/w"}]});
    let named = |name: &str, script: &str| {
        let mut container = shell(script, shared.clone());
        container["name"] = name.into();
        container
    };
    node.create([pod(
        "p",
        json!({
            "restartPolicy": "OnFailure",
            "initContainers": [
                named("first", "echo first >> /w/log"),
                named("second", "echo second >> /w/log; test $(grep -c second /w/log) = 2"),
            ],
            "containers": [named("main", "cat /w/log"), named("other", "true")],
            "volumes": [{"name": "w", "emptyDir": {}}],
        }),
    )]);
    node.phase("p", "Succeeded");
    assert_eq!(node.ok("logs p -c main"), "first\nsecond\nsecond\n");
    let restarts = |index: usize| {
        node.field(
            "pod/p",
            &format!(".status.initContainerStatuses[{index}].restartCount"),
        )
    };
    assert_eq!((restarts(0), restarts(1)), ("0".into(), "1".into()));
}

#[test]
fn each_restart_policy_is_kept() {
    let Some(node) = Node::start() else { return };
    let with = |policy: &str, script: &str| json!({"restartPolicy": policy, "containers": [shell(script, json!({}))]});
    node.create([
        pod("never-fails", with("Never", "exit 3")),
        pod("never-ends", with("Never", "exit 0")),
        pod("never-killed", with("Never", "sleep 60 & kill -9 $!; wait $!")),
        pod("never-there", json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "x", "command": ["/not/there"]}]})),
        pod("on-failure", with("OnFailure", "test -e /var/tmp/mark && exit 0; exit 1")),
        pod("always", with("Always", "exit 0")),
    ]);
    for (pod, phase, code, reason) in [
        ("never-fails", "Failed", "3", "Error"),
        ("never-ends", "Succeeded", "0", "Completed"),
        ("never-killed", "Failed", "137", "Error"),
        ("never-there", "Failed", "128", "StartError"),
    ] {
        node.phase(pod, phase);
        let ended = |field: &str| {
            node.field(
                &format!("pod/{pod}"),
                &format!("{STATUS}.state.terminated.{field}"),
            )
        };
        assert_eq!(
            (ended("exitCode").as_str(), ended("reason").as_str()),
            (code, reason),
            "{pod}"
        );
    }
    has(
        &node.field("pod/never-there", &format!("{STATUS}.state.terminated.message")),
        &["/not/there"],
    );
    for (pod, code) in [("on-failure", "1"), ("always", "0")] {
        node.waiting(pod, "CrashLoopBackOff");
        let last = node.field(
            &format!("pod/{pod}"),
            &format!("{STATUS}.lastState.terminated.exitCode"),
        );
        assert_eq!(last, code, "{pod}");
    }
    has(
        &node.field("pod/always", &format!("{STATUS}.state.waiting.message")),
        &["back-off 10s restarting failed container=main pod=always_default("],
    );
    node.event(
        "always",
        "BackOff: Back-off restarting failed container main in pod always_default(",
    );
    has(&node.ok("get pods"), &["CrashLoopBackOff", "Completed", "Error"]);
}

#[test]
fn a_pod_is_asked_to_stop_and_then_stopped() {
    let Some(node) = Node::start() else { return };
    node.create([
        pod("polite", json!({"terminationGracePeriodSeconds": 60,
            "containers": [shell("trap 'echo bye; exit 4' TERM; echo up; sleep infinity & wait", json!({}))]})),
        pod("deaf", json!({"terminationGracePeriodSeconds": 1,
            "containers": [shell("trap 'echo no' TERM; echo up; while :; do sleep 1; done", json!({}))]})),
    ]);
    node.ready("polite deaf");
    for (pod, word, event) in [
        ("polite", "bye", "\"exitCode\":4"),
        ("deaf", "no", "\"exitCode\":137"),
    ] {
        let mut log = node.start(&format!("logs -f {pod}"));
        log.line_with("up");
        // Of an object that is named kubectl swallows what happens between its look and its watch.
        let watch =
            format!("get pods --field-selector=metadata.name={pod} --watch -o jsonpath={STATUS_LINE}");
        let mut watch = node.start(&watch);
        watch.line_with("running");
        node.ok(&format!("delete pod {pod}"));
        log.line_with(word);
        assert_eq!(log.rest().1, 0, "a log ends with its container");
        watch.line_with(event);
    }
}

/// One line per change of a pod.
const STATUS_LINE: &str = "{.status.containerStatuses}{\"\\n\"}";

#[test]
fn a_pod_that_is_deleted_at_once_leaves_at_once() {
    let Some(node) = Node::start() else { return };
    node.create([pod(
        "deaf",
        json!({"containers": [shell("trap '' TERM; sleep infinity & wait", json!({}))]}),
    )]);
    node.ready("deaf");
    node.ok("delete pod deaf --force --grace-period=0");
    assert_eq!(node.ok("get pods -o name"), "");
    // Its place is free for another one of its name.
    node.create([pod("deaf", json!({"containers": [idle(json!({}))]}))]);
    node.ready("deaf");
}

#[test]
fn variables_come_from_everywhere_and_expand() {
    let Some(node) = Node::start() else { return };
    let from = |source: Value| json!({"valueFrom": source});
    let mut env = vec![
        json!({"name": "PLAIN", "value": "p"}),
        json!({"name": "EXPANDED", "value": "$(PLAIN)-$(MISSING)-$$(PLAIN)"}),
    ];
    for (name, source) in [
        ("KEY", json!({"configMapKeyRef": {"name": "c", "key": "key"}})),
        (
            "PASSWORD",
            json!({"secretKeyRef": {"name": "s", "key": "password"}}),
        ),
        ("NAME", json!({"fieldRef": {"fieldPath": "metadata.name"}})),
        ("IP", json!({"fieldRef": {"fieldPath": "status.podIP"}})),
        ("NODE", json!({"fieldRef": {"fieldPath": "spec.nodeName"}})),
        ("CPU", json!({"resourceFieldRef": {"resource": "limits.cpu"}})),
    ] {
        let mut variable = from(source);
        variable["name"] = name.into();
        env.push(variable);
    }
    node.create([
        crate::host::config_map("c", json!({"key": "k"})),
        crate::host::secret("s", json!({"password": "w"})),
        pod("p", json!({"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "busybox", "env": env, "resources": {"limits": {"cpu": "3"}},
            "envFrom": [{"prefix": "C_", "configMapRef": {"name": "c"}}],
            "command": ["sh", "-c", "echo $EXPANDED $KEY $PASSWORD $NAME $NODE $CPU $C_key $0 $(PLAIN); ip -4 addr | grep -q \" $IP/\"", "$(PLAIN)"],
        }]})),
    ]);
    node.phase("p", "Succeeded");
    assert_eq!(node.ok("logs p"), "p-$(MISSING)-$(PLAIN) k w p node-a 3 k p p\n");
}
