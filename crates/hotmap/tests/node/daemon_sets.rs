//! DaemonSets with real pods: which node has one, and how it is replaced.

use serde_json::{Value, json};

use crate::{
    harness::Running,
    host::{Node, idle},
};

fn set(version: &str, more: Value) -> Value {
    let labels = json!({"app": "log"});
    let mut spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [idle(json!({"env": [{"name": "VERSION", "value": version}]}))]}}});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "log"}, "spec": spec})
}

fn settled(node: &Node) {
    let status = node.run("rollout status daemonset/log --timeout=120s");
    if status.code != 0 {
        panic!(
            "{}\n{}\n{}",
            status.stderr,
            node.ok("get pods,daemonsets"),
            node.ok("get events")
        );
    }
}

/// Waits until a field of the set says this.
fn field(node: &Node, path: &str, value: &str) {
    let condition = format!("--for=jsonpath={{{path}}}={value}");
    node.call(&["wait", "daemonset/log", &condition, "--timeout=120s"])
        .ok();
}

/// The one pod that is not on its way out.
fn pod(node: &Node) -> String {
    let shape = r#"jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp}{"\n"}{end}"#;
    let pods = node.call(&["get", "pods", "-l", "app=log", "-o", shape]).ok();
    let staying: Vec<_> = pods
        .lines()
        .filter(|line| line.ends_with(' '))
        .map(str::trim)
        .collect();
    let [one] = staying[..] else {
        panic!("not one pod: {pods}");
    };
    one.to_owned()
}

#[test]
fn a_daemon_set_rolls_and_rolls_back() {
    let Some(node) = Node::start() else { return };
    node.create([set("1", json!({}))]);
    settled(&node);
    let first = pod(&node);
    node.ready(&first);
    assert_eq!(node.sh(&first, "echo $VERSION"), "1");
    assert_eq!(node.field(&format!("pod/{first}"), ".spec.nodeName"), "node-a");
    let affinity = ".spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    let fields = node.field(
        &format!("pod/{first}"),
        &format!("{affinity}.nodeSelectorTerms[0].matchFields[0].values"),
    );
    assert_eq!(fields, r#"["node-a"]"#);

    let before = node.field("daemonset/log", ".metadata.resourceVersion");
    assert_eq!(
        node.apply(&set("1", json!({})).to_string()),
        "daemonset.apps/log unchanged\n"
    );
    assert_eq!(node.field("daemonset/log", ".metadata.resourceVersion"), before);

    node.ok("set env daemonset/log VERSION=2");
    settled(&node);
    let second = pod(&node);
    assert_ne!(second, first);
    assert_eq!(node.sh(&second, "echo $VERSION"), "2");
    assert_eq!(
        node.field(
            &format!("pod/{second}"),
            ".metadata.labels.pod-template-generation"
        ),
        "2"
    );
    node.event("log", &format!("SuccessfulDelete: Deleted pod: {first}"));
    node.event("log", &format!("SuccessfulCreate: Created pod: {second}"));

    crate::has(
        &node.ok("rollout history daemonset/log --revision=1"),
        &["VERSION:\t1"],
    );
    crate::has(&node.ok("rollout undo daemonset/log"), &["rolled back"]);
    settled(&node);
    assert_eq!(node.sh(&pod(&node), "echo $VERSION"), "1");
    let history = node.ok("rollout history daemonset/log");
    let rows = history.lines().filter_map(|line| line.split_whitespace().next());
    let numbers: Vec<_> = rows.filter(|word| word.parse::<u32>().is_ok()).collect();
    assert_eq!(numbers, ["2", "3"], "{history}");

    node.ok("delete daemonset log --timeout=120s");
    node.ok("wait --for=delete pod -l app=log --timeout=120s");
    assert_eq!(node.ok("get controllerrevisions -o name"), "");
}

#[test]
fn nodes_decide_by_labels_and_taints_who_runs_a_daemon() {
    let Some(node) = Node::start() else { return };
    let selecting = json!({"nodeSelector": {"disk": "ssd"}});
    let mut set = set("1", json!({}));
    set["spec"]["template"]["spec"]["nodeSelector"] = selecting["nodeSelector"].clone();
    node.create([set]);
    field(&node, ".status.observedGeneration", "1");
    assert_eq!(node.field("daemonset/log", ".status.desiredNumberScheduled"), "0");
    node.ok("label node node-a disk=ssd");
    field(&node, ".status.numberReady", "1");
    let first = pod(&node);

    // A cordoned node keeps and gets daemons.
    node.ok("cordon node-a");
    node.ok(&format!("delete pod {first}"));
    field(&node, ".status.numberReady", "1");
    let second = pod(&node);
    assert_ne!(second, first);
    node.ok("uncordon node-a");

    // NoSchedule keeps what runs, NoExecute does not.
    node.ok("taint node node-a k=v:NoSchedule");
    field(&node, ".status.numberMisscheduled", "1");
    assert_eq!(pod(&node), second);
    node.ok("taint node node-a k=v:NoExecute");
    node.ok(&format!("wait --for=delete pod/{second} --timeout=120s"));
    field(&node, ".status.numberMisscheduled", "0");
    node.ok("taint node node-a k-");
    field(&node, ".status.numberReady", "1");
}

#[test]
fn a_surge_starts_the_new_daemon_before_the_old_one_goes() {
    let Some(node) = Node::start() else { return };
    let surge = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}});
    node.create([set("1", surge)]);
    settled(&node);
    let first = pod(&node);
    let shape = r#"jsonpath={.type} {.object.metadata.name} {.object.status.conditions[?(@.type=="Ready")].status} {.object.metadata.deletionTimestamp}{"\n"}"#;
    let arguments = ["get", "pods", "--watch", "--output-watch-events", "-o", shape];
    let mut watch = Running::start(&mut node.command(&arguments));
    watch.line_with(&first);
    node.ok("set env daemonset/log VERSION=2");
    let mut ready = None;
    loop {
        let line = watch.line_with("log-");
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            [_, name, _, deleted] if name == first && !deleted.is_empty() => break,
            [_, name, "True", _] if name != first => ready = Some(name.to_owned()),
            _ => {}
        }
    }
    assert_eq!(ready, Some(pod(&node)), "the old pod went first");
    settled(&node);
}

#[test]
fn a_daemon_that_fails_is_replaced() {
    let Some(node) = Node::start() else { return };
    node.create([set("1", json!({}))]);
    settled(&node);
    let first = pod(&node);
    // Evicted pods end like this.
    let status = json!({"status": {"phase": "Failed", "reason": "Evicted"}}).to_string();
    node.call(&[
        "patch",
        "pod",
        &first,
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ])
    .ok();
    node.event(
        "log",
        &format!(
            "FailedDaemonPod: Found failed daemon pod default/{first} on node node-a, will try to kill it"
        ),
    );
    node.ok(&format!("wait --for=delete pod/{first} --timeout=120s"));
    settled(&node);
    assert_ne!(pod(&node), first);
}
