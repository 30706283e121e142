//! Lifecycle hooks: what runs right after a container's start and right before its end, and what follows from it.

use serde_json::{Value, json};

use crate::{
    has,
    host::{Node, idle, pod, shell},
};

const STATUS: &str = ".status.containerStatuses[0]";

fn exec(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}})
}

fn with_hooks(script: &str, hooks: Value) -> Value {
    shell(script, json!({"lifecycle": hooks}))
}

#[test]
fn a_container_is_there_once_its_hook_has_ended_and_the_next_one_starts_then() {
    let Some(node) = Node::start() else { return };
    let hook = exec("until test -p /gate; do :; done; cat /gate");
    let mut first = with_hooks("mkfifo /gate; sleep infinity", json!({"postStart": hook}));
    first["name"] = "first".into();
    node.create([pod("p", json!({"containers": [first, idle(json!({}))]}))]);
    node.event("p", "Started: Container started");
    node.waiting("p", "ContainerCreating");
    assert_eq!(node.field("pod/p", ".status.phase"), "Pending");
    for (index, field) in [(0, "started"), (0, "ready"), (1, "started")] {
        let path = format!(".status.containerStatuses[{index}].{field}");
        assert_eq!(node.field("pod/p", &path), "false", "{index} {field}");
    }
    node.call(&["exec", "p", "-c", "first", "--", "sh", "-c", "echo go > /gate"])
        .ok();
    node.ready("p");
    let started = |index: usize| {
        let path = format!(".status.containerStatuses[{index}].state.running.startedAt");
        node.field("pod/p", &path)
    };
    assert!(started(0) <= started(1));
}

#[test]
fn a_container_whose_hook_fails_is_stopped_and_backs_off() {
    let Some(node) = Node::start() else { return };
    let hooks = json!({"postStart": exec("echo hook says no; exit 7")});
    node.create([pod(
        "p",
        json!({"containers": [with_hooks("trap 'exit 5' TERM; sleep infinity & wait", hooks)]}),
    )]);
    node.event("p", "FailedPostStartHook: PostStartHook failed");
    node.event("p", "Killing: FailedPostStartHook");
    node.waiting("p", "CrashLoopBackOff");
    let last = node.field("pod/p", &format!("{STATUS}.lastState.terminated.exitCode"));
    assert!(["5", "143"].contains(&last.as_str()), "{last}");
    // What a hook printed may be secret.
    assert!(!node.ok("get events").contains("hook says no"));
}

#[test]
fn the_last_hook_runs_before_the_signal_and_within_the_grace_period() {
    let Some(node) = Node::start() else { return };
    let script = "trap 'echo asked; exit 0' TERM; echo up; sleep infinity & wait";
    let serve = "mkdir /tmp/www; echo up; exec busybox httpd -f -v -p 8080 -h /tmp/www";
    let ready = json!({"readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}});
    let mut http = shell(serve, ready);
    http["lifecycle"] = json!({"preStop": {"httpGet": {"path": "/bye", "port": 8080}}});
    node.create([
        pod("polite", json!({"containers": [with_hooks(script, json!({"preStop": exec("echo hook > /proc/1/fd/1")}))]})),
        pod("slow", json!({"terminationGracePeriodSeconds": 1,
            "containers": [with_hooks(script, json!({"preStop": exec("echo hook > /proc/1/fd/1; sleep infinity")}))]})),
        pod("failing", json!({"containers": [with_hooks(script, json!({"preStop": exec("echo hook > /proc/1/fd/1; exit 1")}))]})),
        pod("sleeping", json!({"containers": [with_hooks(script, json!({"preStop": {"sleep": {"seconds": 1}}}))]})),
        pod("http", json!({"terminationGracePeriodSeconds": 1, "containers": [http]})),
    ]);
    node.ready("polite slow failing sleeping http");
    for name in ["polite", "slow", "failing"] {
        let mut log = node.start(&format!("logs -f {name}"));
        log.line_with("up");
        node.ok(&format!("delete pod {name} --wait=false"));
        assert_eq!(log.rest().0, ["hook", "asked"], "{name}");
    }
    node.event("failing", "FailedPreStopHook: PreStopHook failed");
    let mut log = node.start("logs -f sleeping");
    log.line_with("up");
    // Of an object that is named kubectl swallows what happens between its look and its watch.
    let mut watch = node.start("get pods --field-selector=metadata.name=sleeping --watch");
    watch.line_with("1/1");
    node.ok("delete pod sleeping --wait=false");
    // It serves until its hook has ended: it is ready, and on its way out.
    has(&watch.line_with("Terminating"), &["1/1"]);
    log.line_with("asked");
    let mut log = node.start("logs -f http");
    log.line_with("up");
    node.ok("delete pod http --wait=false");
    // An answer is an answer, also this one.
    log.line_with("response:404");
    node.ok("wait --for=delete pod/http pod/sleeping --timeout=120s");
    let events = node.ok("get events");
    assert_eq!(events.matches("FailedPreStopHook").count(), 1, "{events}");
}

#[test]
fn a_shorter_grace_period_cuts_a_hook_short() {
    let Some(node) = Node::start() else { return };
    let hooks = json!({"preStop": exec("echo hook > /proc/1/fd/1; sleep infinity")});
    let container = with_hooks(
        "trap 'echo asked; exit 0' TERM; echo up; sleep infinity & wait",
        hooks,
    );
    node.create([pod(
        "p",
        json!({"terminationGracePeriodSeconds": 3600, "containers": [container]}),
    )]);
    node.ready("p");
    let mut log = node.start("logs -f p");
    node.ok("delete pod p --wait=false");
    log.line_with("hook");
    node.ok("delete pod p --wait=false --grace-period=1");
    log.line_with("asked");
    node.ok("wait --for=delete pod/p --timeout=120s");
}

#[test]
fn a_dead_container_has_its_hook_and_the_grace_period_of_its_probe() {
    let Some(node) = Node::start() else { return };
    let probe = json!({"exec": {"command": ["test", "-e", "/tmp/alive"]}, "periodSeconds": 1, "failureThreshold": 1,
        "terminationGracePeriodSeconds": 1});
    let script = "touch /tmp/alive; trap 'echo asked' TERM; echo up; while :; do sleep 1; done";
    let mut container = with_hooks(script, json!({"preStop": exec("echo hook > /proc/1/fd/1")}));
    container["livenessProbe"] = probe;
    node.create([pod(
        "p",
        json!({"terminationGracePeriodSeconds": 3600, "containers": [container]}),
    )]);
    node.start("logs -f p").line_with("up");
    node.sh("p", "rm /tmp/alive");
    node.wait("p", "jsonpath={.status.containerStatuses[0].restartCount}=1");
    node.ready("p");
    assert_eq!(node.ok("logs p --previous"), "up\nhook\nasked\n");
    let code = node.field("pod/p", &format!("{STATUS}.lastState.terminated.exitCode"));
    assert_eq!(code, "137");
}

#[test]
fn a_container_names_its_own_signal() {
    let Some(node) = Node::start() else { return };
    let script = "trap 'echo quit; exit 0' QUIT; trap '' TERM; echo up; sleep infinity & wait";
    node.create([pod(
        "p",
        json!({"os": {"name": "linux"}, "terminationGracePeriodSeconds": 3600,
            "containers": [with_hooks(script, json!({"stopSignal": "SIGQUIT"}))]}),
    )]);
    node.ready("p");
    let mut log = node.start("logs -f p");
    log.line_with("up");
    node.ok("delete pod p --wait=false");
    log.line_with("quit");
    node.ok("wait --for=delete pod/p --timeout=120s");
}
