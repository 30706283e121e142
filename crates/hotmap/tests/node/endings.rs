//! How pods end, and what they say about it.

use serde_json::{Value, json};

use crate::{
    has,
    host::{Node, idle, pod, shell},
};

#[test]
fn a_pod_that_is_active_for_too_long_is_ended_for_good() {
    let Some(mut node) = Node::start() else { return };
    let polite = "trap 'echo bye > /dev/termination-log; exit 7' TERM; touch /tmp/up; sleep infinity & wait";
    let probe = json!({"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1});
    let mut timed = pod("timed", json!({"containers": [idle(json!({}))]}));
    timed["spec"]["activeDeadlineSeconds"] = 5.into();
    node.create([
        pod(
            "edited",
            json!({"terminationGracePeriodSeconds": 60, "containers": [shell(polite, json!({"readinessProbe": probe}))]}),
        ),
        timed,
    ]);
    node.ready("edited");
    node.ok("patch pod edited -p {\"spec\":{\"activeDeadlineSeconds\":1}}");
    let message = "Pod was active on the node longer than the specified deadline";
    let ended = |node: &Node, pod: &str| {
        node.phase(pod, "Failed");
        let field = |path: &str| node.field(&format!("pod/{pod}"), path);
        assert_eq!(
            (field(".status.reason"), field(".status.message")),
            ("DeadlineExceeded".into(), message.into())
        );
    };
    ended(&node, "edited");
    node.event("edited", &format!("DeadlineExceeded: {message}"));
    let said = ".status.containerStatuses[0].state.terminated['exitCode','message']";
    assert_eq!(
        node.field("pod/edited", said).trim_end(),
        "7 bye",
        "it was asked first"
    );
    // Nobody is there when the other one's time is up; and what has failed stays so.
    node.server.crash();
    node.server.restart();
    ended(&node, "timed");
    ended(&node, "edited");
    let restarts = ".status.containerStatuses[0].restartCount";
    assert_eq!(node.field("pod/edited", restarts), "0");
    has(&node.ok("get pods"), &["edited", "Error", "timed"]);
}

#[test]
fn what_containers_say_about_their_end_is_in_the_status() {
    let Some(node) = Node::start() else { return };
    let container = |name: &str, script: &str, more: Value| {
        let mut container = shell(script, more);
        container["name"] = name.into();
        container
    };
    let logs = || json!({"terminationMessagePolicy": "FallbackToLogsOnError"});
    node.create([pod(
        "p",
        json!({"restartPolicy": "Never", "containers": [
            container("file", "echo done > /dev/termination-log", json!({})),
            container(
                "own",
                "echo why > /made/here/why; exit 3",
                json!({"terminationMessagePath": "/made/here/why", "securityContext": {"runAsUser": 1000}}),
            ),
            container("logs", "echo first; echo last words >&2; exit 4", logs()),
            container("told", "echo printed; printf written > /dev/termination-log; exit 5", logs()),
            container("quiet", "echo all is well", logs()),
            container("long", "head -c 9000 /dev/zero | tr '\\0' x > /dev/termination-log", json!({})),
            container(
                "hostile",
                "cd /dev; rm -f termination-log; mv termination-log x; ln -sf /etc/passwd termination-log; exit 6",
                json!({}),
            ),
        ]}),
    )]);
    node.phase("p", "Failed");
    let said = |name: &str, field: &str| {
        let path = format!(".status.containerStatuses[?(@.name==\"{name}\")].state.terminated.{field}");
        node.field("pod/p", &path)
    };
    for (name, code, reason, message) in [
        ("file", "0", "Completed", "done\n"),
        ("own", "3", "Error", "why\n"),
        ("logs", "4", "Error", "first\nlast words\n"),
        ("told", "5", "Error", "written"),
        ("quiet", "0", "Completed", ""),
        // A seventh of what the messages of a pod may take.
        ("long", "0", "Completed", &"x".repeat(1755)),
        ("hostile", "6", "Error", ""),
    ] {
        let found = [
            said(name, "exitCode"),
            said(name, "reason"),
            said(name, "message"),
        ];
        assert_eq!(found, [code, reason, message], "{name}");
    }
}

#[test]
fn a_sub_path_is_made_of_variables_and_stays_inside() {
    let Some(node) = Node::start() else { return };
    let with = |expression: &str| {
        let env = json!([{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "UP", "value": "../.."}]);
        let mounts = json!([{"name": "v", "mountPath": "/all"},
            {"name": "v", "mountPath": "/mine", "subPathExpr": expression}]);
        json!({"containers": [idle(json!({"env": env, "volumeMounts": mounts}))], "volumes": [{"name": "v", "emptyDir": {}}]})
    };
    node.create([
        pod("p", with("logs/$(POD)")),
        pod("missing", with("$(NOPE)")),
        pod("out", with("x/$(UP)")),
    ]);
    node.ready("p");
    assert_eq!(node.sh("p", "touch /mine/f; ls /all/logs/p"), "f");
    for (name, message) in [
        ("missing", "missing value for NOPE"),
        (
            "out",
            "unable to provision SubPath `x/../..`: must not contain '..'",
        ),
    ] {
        node.waiting(name, "CreateContainerConfigError");
        let shown = ".status.containerStatuses[0].state.waiting.message";
        assert_eq!(node.field(&format!("pod/{name}"), shown), message);
        node.event(name, &format!("Failed: Error: {message}"));
    }
}
