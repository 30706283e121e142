//! `kubectl debug`: containers that are put beside others to look at them.

use serde_json::{Value, json};

use crate::{
    harness::{Release, Running},
    has,
    host::{Node, config_map, pod, shell},
    streams::on_a_terminal,
};

const PATH: &str = "/api/v1/namespaces/default/pods/p/ephemeralcontainers";
/// What a container does until it is asked to stop.
const STAY: &str = "trap exit TERM; echo here; sleep 1000 & wait";

/// Waits until the state of an ephemeral container begins like this; returns it whole.
#[track_caller]
fn until(node: &Node, container: &str, state: &str) -> String {
    // With `range` kubectl ends after one event; a change between its look at an object named to it and its watch it swallows.
    let path = format!(r#".status.ephemeralContainerStatuses[?(@.name=="{container}")].state"#);
    let shape = format!(r#"jsonpath={{{path}}}{{"\n"}}"#);
    let watch = [
        "get",
        "pods",
        "--field-selector=metadata.name=p",
        "--watch",
        "-o",
        &shape,
    ];
    Running::start(&mut node.command(&watch)).line_with(&format!("{{{state}"))
}

/// One field of the status of an ephemeral container.
#[track_caller]
fn status(node: &Node, container: &str, field: &str) -> String {
    let path = format!(r#".status.ephemeralContainerStatuses[?(@.name=="{container}")].{field}"#);
    node.field("pod/p", &path)
}

/// What a script prints in a container of the pod.
#[track_caller]
fn run(node: &Node, container: &str, script: &str) -> String {
    let call = node.call(&["exec", "p", "-c", container, "--", "sh", "-c", script]);
    call.ok().trim_end().to_owned()
}

/// `kubectl debug` with an ephemeral container that runs a script.
#[track_caller]
fn debug(node: &Node, container: &str, script: &str, flags: &[&str]) {
    let call = ["debug", "p", "--image=busybox", "-c", container];
    let script = ["--", "sh", "-c", script];
    node.call(&[&call, flags, &script].concat()).ok();
}

fn check(release: Release) {
    let Some(mut node) = Node::start_with(release, &[]) else {
        return;
    };
    let app = "trap 'echo reloaded' HUP; trap exit TERM; echo mine > /tmp/mine; echo up; \
               while :; do sleep 1000 & wait $!; done";
    node.create([pod("p", json!({"containers": [shell(app, json!({}))]}))]);
    node.ready("p");
    let mut log = node.start("logs -f p");
    log.line_with("up");

    // It sees the processes of its target and reaches them, on a terminal.
    let typed = "cat /proc/1/root/tmp/mine; kill -HUP 1; echo answer $((6*7)); exit 5\n";
    let call = "debug -it p --image=busybox --target=main -c look -- sh";
    let shown = on_a_terminal(&node, "stty rows 33 cols 101", call, typed).stdout;
    has(&shown, &["mine", "answer 42"]);
    log.line_with("reloaded");
    until(&node, "look", r#""terminated""#);
    assert_eq!(status(&node, "look", "state.terminated.exitCode"), "5");
    has(&node.ok("logs p -c look"), &["answer 42"]);

    // Others, for whoever comes later: one alone with its processes, one that is talked to.
    debug(&node, "stay", &format!("touch /tmp/stay; {STAY}"), &[]);
    debug(
        &node,
        "answers",
        "read line; echo got $line",
        &["-i", "--attach=false"],
    );
    for one in ["stay", "answers"] {
        until(&node, one, r#""running""#);
    }
    assert_eq!(
        run(&node, "stay", "[ -e /proc/1/root/tmp/mine ] || cat /proc/1/comm"),
        "sh"
    );
    has(
        &node.feed("attach -i p -c answers", "hello\n").ok(),
        &["got hello"],
    );
    has(&node.ok("logs p -c stay"), &["here"]);
    has(
        &node.ok("describe pod p"),
        &["Ephemeral Containers:", "stay:", "Exit Code:    5"],
    );
    // None of them counts for the pod, each is one change of it.
    has(&node.ok("get pod p"), &["1/1", "Running"]);
    let generations =
        "{.metadata.generation} {.status.observedGeneration} {.status.containerStatuses[*].restartCount}";
    node.wait("p", "jsonpath={.status.observedGeneration}=4");
    assert_eq!(
        node.ok(&format!(
            "get pod p -o jsonpath={}",
            generations.replace(' ', ",")
        )),
        "4,4,0"
    );

    // What is there stays, and nothing else of the pod goes this way.
    let held: Value = serde_json::from_str(&node.ok(&format!("get --raw {PATH}"))).expect("JSON");
    let put = |change: &dyn Fn(&mut Value)| {
        let mut changed = held.clone();
        changed["metadata"]["resourceVersion"].take();
        change(&mut changed);
        let file = node.file("changed.json", changed.to_string());
        node.run(&format!("replace --raw {PATH} -f {}", file.display()))
    };
    let refused = put(&|pod| pod["spec"]["ephemeralContainers"][0]["image"] = "other".into());
    has(&refused.refused(), &["may not be changed"]);
    let refused = put(&|pod| drop(pod["spec"]["ephemeralContainers"].take()));
    has(
        &refused.refused(),
        &["existing ephemeral containers \"look\" may not be removed"],
    );
    put(&|pod| pod["metadata"]["labels"] = json!({"a": "b"})).ok();
    assert_eq!(node.field("pod/p", ".metadata.labels"), "");
    node.ok("create rolebinding ed --clusterrole=edit --user=ed");
    let may = "auth can-i patch pods --subresource=ephemeralcontainers --as=ed";
    assert_eq!(node.run(may).stdout, "no\n", "as with upstream's roles");

    // Nothing starts again with the agent.
    let before = ["look", "stay"].map(|one| status(&node, one, "state"));
    node.server.crash_and_restart();
    node.ready("p");
    debug(&node, "last", "true", &[]);
    until(&node, "last", r#""terminated""#);
    assert_eq!(["look", "stay"].map(|one| status(&node, one, "state")), before);
    assert_eq!(run(&node, "stay", "ls /tmp/stay"), "/tmp/stay");

    // A copy is a pod as any other.
    node.ok("debug p --image=busybox --copy-to=copy --share-processes -c look -- sleep 1000");
    node.ready("copy");
    let seen = node.ok("exec copy -c look -- cat /proc/1/comm");
    assert_eq!(seen, "pause\n");

    // They go with their pod.
    node.ok("delete pod p copy");
}

#[test]
fn the_newest_kubectl_looks_into_a_pod_that_runs() {
    check(Release::Newest);
}

#[test]
fn kubectl_1_32_looks_into_a_pod_that_runs() {
    check(Release::V1_32);
}

#[test]
fn an_ephemeral_container_has_what_others_have_and_fails_alone() {
    let Some(node) = Node::start() else { return };
    // A volume that nobody mounts yet, and a container that comes back by itself.
    node.create([
        config_map("c", json!({"key": "value"})),
        pod(
            "p",
            json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}],
                "containers": [shell("trap 'exit 0' TERM; sleep 1000 & wait", json!({}))]}),
        ),
    ]);
    node.ready("p");
    let custom = json!({"env": [{"name": "OWN", "value": "own"}, {"name": "BOTH", "value": "$(OWN) $(key)"}],
        "envFrom": [{"configMapRef": {"name": "c"}}], "workingDir": "/tmp/made", "stdin": false,
        "volumeMounts": [{"name": "v", "mountPath": "/v"}], "terminationMessagePath": "/tmp/last",
        "securityContext": {"runAsUser": 7, "capabilities": {"drop": ["ALL"]}}});
    let file = node.file("custom.json", custom.to_string());
    let flag = format!("--custom={}", file.display());
    let script =
        "echo $BOTH; pwd; cat /v/key; echo; id -u; grep CapEff /proc/self/status; echo bye > /tmp/last";
    debug(&node, "all", script, &["--profile=general", &flag]);
    has(
        &until(&node, "all", r#""terminated""#),
        &[r#""reason":"Completed""#, r#""message":"bye\n""#],
    );
    has(
        &node.ok("logs p -c all"),
        &["own value\n/tmp/made\nvalue\n7\n", "0000000000000000\n"],
    );

    // What this node does not have, one by one. The pod is none the worse.
    node.ok("debug p --image=registry.example/none:1 -c image --profile=general");
    debug(&node, "admin", "true", &["--profile=sysadmin"]);
    debug(&node, "restricted", "true", &["--profile=restricted"]);
    let said = until(&node, "image", r#""waiting":{"message""#);
    has(&said, &["registry.example/none:1"]);
    let said = until(&node, "admin", r#""waiting":{"message""#);
    has(
        &said,
        &[
            "container admin is privileged: this node was started without --allow-privileged",
            "CreateContainerConfigError",
        ],
    );
    let said = until(&node, "restricted", r#""waiting":{"message""#);
    has(&said, &["runAsNonRoot", "CreateContainerConfigError"]);
    node.event("p", "Failed: Error: container admin is privileged");
    has(&node.ok("get pod p"), &["1/1", "Running"]);
    debug(
        &node,
        "netadmin",
        "ip link set lo mtu 1000 && echo made",
        &["--profile=netadmin", "--arguments-only"],
    );
    until(&node, "netadmin", r#""terminated""#);
    has(&node.ok("logs p -c netadmin"), &["made"]);
}
