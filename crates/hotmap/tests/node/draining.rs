//! How a pod becomes ready and how it goes: gates, the last status, and what others see meanwhile.

use serde_json::json;

use crate::{
    has,
    host::{Node, idle, pod, shell},
};

#[test]
fn a_readiness_gate_is_opened_by_somebody_else() {
    let Some(node) = Node::start() else { return };
    let mut gated = json!({"containers": [idle(json!({}))]});
    gated["readinessGates"] = json!([{"conditionType": "example.com/lb"}]);
    node.create([pod("p", gated)]);
    node.wait("p", "condition=ContainersReady");
    let ready = |field: &str| {
        node.field(
            "pod/p",
            &format!(r#".status.conditions[?(@.type=="Ready")].{field}"#),
        )
    };
    assert_eq!(
        ["status", "reason", "message"].map(ready),
        [
            "False",
            "ReadinessGatesNotReady",
            r#"corresponding condition of pod readiness gate "example.com/lb" does not exist."#
        ]
    );
    has(&node.ok("get pod p -o wide"), &["READINESS GATES", "0/1", "1/1"]);
    let say = |status: &str| {
        let condition = json!({"type": "example.com/lb", "status": status});
        let patch = json!({"status": {"conditions": [condition]}}).to_string();
        node.call(&["patch", "pod", "p", "--subresource=status", "-p", &patch])
            .ok();
    };
    say("True");
    node.ready("p");
    say("False");
    node.wait("p", "condition=Ready=false");
    assert_eq!(
        ready("message"),
        r#"the status of pod readiness gate "example.com/lb" is not "True", but False"#
    );
    // What the node says does not take away what others say.
    let gate = node.field(
        "pod/p",
        r#".status.conditions[?(@.type=="example.com/lb")].status"#,
    );
    assert_eq!(gate, "False");
}

#[test]
fn a_pod_on_its_way_out_says_how_it_ended() {
    let Some(node) = Node::start() else { return };
    let finalizers = |mut pod: serde_json::Value| {
        pod["metadata"]["finalizers"] = json!(["example.com/look"]);
        pod
    };
    let ends = |code: u8| {
        let script = format!("trap 'exit {code}' TERM; echo up; sleep infinity & wait");
        json!({"containers": [shell(&script, json!({}))]})
    };
    node.create([finalizers(pod("good", ends(0))), finalizers(pod("bad", ends(9)))]);
    node.ready("good bad");
    node.ok("delete pod good bad --wait=false");
    for (name, phase, code, reason) in [
        ("good", "Succeeded", "0", "PodCompleted"),
        ("bad", "Failed", "9", "PodFailed"),
    ] {
        node.phase(name, phase);
        let object = format!("pod/{name}");
        let ended = ".status.containerStatuses[0].state.terminated.exitCode";
        assert_eq!(node.field(&object, ended), code);
        let ready = r#".status.conditions[?(@.type=="Ready")].reason"#;
        assert_eq!(node.field(&object, ready), reason);
    }
    node.call(&[
        "patch",
        "pod",
        "good",
        "bad",
        "-p",
        r#"{"metadata": {"finalizers": null}}"#,
    ])
    .ok();
    node.ok("wait --for=delete pod/good pod/bad --timeout=120s");
}

/// An object of apps/v1 around pods that keep something in an emptyDir.
fn workload(kind: &str, name: &str) -> serde_json::Value {
    let mount = json!({"volumeMounts": [{"name": "w", "mountPath": "/w"}]});
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [idle(mount)],
        "volumes": [{"name": "w", "emptyDir": {}}]}});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template}})
}

#[test]
fn a_node_is_cordoned_drained_and_taken_into_service_again() {
    let Some(node) = Node::start() else { return };
    node.create([
        workload("Deployment", "web"),
        pod("alone", json!({"containers": [idle(json!({}))]})),
    ]);
    node.ok("rollout status deployment/web --timeout=120s");
    node.ready("alone");
    has(&node.ok("cordon node-a"), &["node/node-a cordoned"]);
    has(&node.ok("get node node-a"), &["Ready,SchedulingDisabled"]);
    let tainted = r#"--for=jsonpath={.spec.taints[0].key}=node.kubernetes.io/unschedulable"#;
    node.call(&["wait", "node/node-a", tainted, "--timeout=60s"]).ok();
    has(
        &node.ok("describe node node-a"),
        &[
            "Unschedulable:      true",
            "Container Runtime Version:  hotmap://",
            "default                     alone",
        ],
    );
    node.create([pod("late", json!({"containers": [idle(json!({}))]}))]);
    node.wait("late", "condition=PodScheduled=false");

    let why = node.run("drain node-a --timeout=120s").refused();
    has(
        &why,
        &[
            "cannot delete Pods with local storage (use --delete-emptydir-data to override): default/web-",
            "cannot delete Pods that declare no controller (use --force to override): default/alone",
        ],
    );
    let drained = node.ok("drain node-a --ignore-daemonsets --delete-emptydir-data --force --timeout=120s");
    has(&drained, &["pod/alone evicted", "evicted", "node/node-a drained"]);
    let pods = |selector: &str| {
        let shape = r#"jsonpath={range .items[*]}{.status.phase}{"\n"}{end}"#;
        node.call(&["get", "pods", "-l", selector, "-o", shape]).ok()
    };
    node.ok("wait pod -l app=web --for=condition=PodScheduled=false --timeout=120s");
    assert_eq!(pods("app=web"), "Pending\n");

    node.ok("uncordon node-a");
    node.ready("late");
    node.ok("rollout status deployment/web --timeout=120s");
}

#[test]
fn a_budget_lets_one_pod_go_and_holds_up_the_drain_until_it_is_relaxed() {
    let Some(node) = Node::start() else { return };
    let mut web = workload("Deployment", "web");
    web["spec"]["replicas"] = json!(2);
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    node.create([web, budget]);
    node.ok("rollout status deployment/web --timeout=60s");
    node.ok("wait pdb/web --for=jsonpath={.status.disruptionsAllowed}=1 --timeout=60s");
    node.ok("wait pdb/web --for=condition=DisruptionAllowed --timeout=60s");
    // What replaces a pod finds no place, so that the budget stays exhausted.
    node.ok("cordon node-a");
    let pods = node.ok("get pods -l app=web -o name");
    let pods: Vec<&str> = pods.lines().collect();
    let [first, second] = pods[..] else {
        panic!("two pods run: {pods:?}");
    };
    let evict = |pod: &str| {
        let name = pod.trim_start_matches("pod/");
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
        node.feed(&format!("create --raw {path} -f -"), eviction.to_string())
    };
    has(&evict(first).ok(), &[r#""status":"Success""#]);
    has(
        &evict(second).refused(),
        &["(TooManyRequests): Cannot evict pod as it would violate the pod's disruption budget."],
    );
    node.ok(&format!("wait {first} --for=delete --timeout=60s"));
    node.ok("wait pdb/web --for=condition=DisruptionAllowed=false --timeout=60s");

    // It is refused again and again, however often kubectl asks in its time.
    let drain = "drain node-a --delete-emptydir-data";
    has(
        &node.run(&format!("{drain} --timeout=2s")).refused(),
        &["global timeout reached: 2s"],
    );
    assert_eq!(node.field(second, ".metadata.deletionTimestamp"), "");
    let relaxed = r#"{"spec": {"minAvailable": 0}}"#;
    node.call(&["patch", "pdb", "web", "--type=merge", "-p", relaxed])
        .ok();
    has(
        &node.ok(&format!("{drain} --timeout=60s")),
        &[&format!("{second} evicted"), "node/node-a drained"],
    );
}
