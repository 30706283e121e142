//! Sidecars: init containers that stay, from their place in the order of starts to their place in the order of ends.

use serde_json::{Value, json};

use crate::{
    has,
    host::{Node, pod, shell},
};

/// A container of this name that runs a script until it is asked to stop.
fn container(name: &str, script: &str, more: Value) -> Value {
    let mut container = shell(script, more);
    container["name"] = name.into();
    container["volumeMounts"] = json!([{"name": "w", "mountPath": "/w"}]);
    container
}

/// One that says on its end who went before it.
fn in_turn(name: &str, more: Value) -> Value {
    let bye = format!("echo end: $(cat /w/ended 2>/dev/null); echo {name} >> /w/ended; exit 0");
    container(
        name,
        &format!("trap '{bye}' TERM; echo {name} is up; touch /w/{name}.up; sleep infinity & wait"),
        more,
    )
}

/// A sidecar that counts as started once it hears the signal that ends it.
fn sidecar(name: &str, more: Value) -> Value {
    let mut sidecar = in_turn(name, json!({"startupProbe": probe(&format!("/w/{name}.up"))}));
    for (field, value) in more.as_object().into_iter().flatten() {
        sidecar[field] = value.clone();
    }
    sidecar["restartPolicy"] = "Always".into();
    sidecar
}

fn spec(policy: &str, init: impl Into<Vec<Value>>, main: impl Into<Vec<Value>>) -> Value {
    json!({"restartPolicy": policy, "terminationGracePeriodSeconds": 60, "volumes": [{"name": "w", "emptyDir": {}}],
        "initContainers": init.into(), "containers": main.into()})
}

fn probe(file: &str) -> Value {
    json!({"exec": {"command": ["test", "-e", file]}, "periodSeconds": 1, "failureThreshold": 1_000})
}

#[test]
fn a_sidecar_holds_up_whoever_comes_after_it_until_it_has_started_up() {
    let Some(mut node) = Node::start() else { return };
    let hook = json!({"postStart": {"exec": {"command": ["sh", "-c", "touch /w/hook"]}}});
    let first = sidecar(
        "first",
        json!({"startupProbe": probe("/w/up"), "readinessProbe": probe("/w/ready"), "lifecycle": hook}),
    );
    let init = container(
        "init",
        "test -e /w/up && test -e /w/hook && echo after it",
        json!({}),
    );
    node.create([pod(
        "p",
        spec("Always", [first, init], [in_turn("main", json!({}))]),
    )]);
    node.event("p", "Unhealthy: Startup probe failed: ");
    let status = |field: &str| node.field("pod/p", &format!(".status.initContainerStatuses[0].{field}"));
    assert_eq!(
        (status("started").as_str(), status("ready").as_str()),
        ("false", "false")
    );
    has(&node.ok("get pod p"), &["0/2", "Init:0/2"]);
    let run = |script: &str| {
        let command = ["exec", "p", "-c", "first", "--", "sh", "-c", script];
        node.call(&command)
    };
    run("touch /w/up").ok();
    node.wait("p", "condition=Initialized");
    node.wait("p", "jsonpath={.status.containerStatuses[0].ready}=true");
    assert_eq!(node.ok("logs p -c init"), "after it\n");
    assert_eq!(node.ok("logs p -c first"), "first is up\n");
    // Its readiness is part of the pod's.
    node.wait("p", "condition=ContainersReady=false");
    let unready = ".status.conditions[?(@.type=='Ready')].message";
    assert_eq!(
        node.field("pod/p", unready),
        "containers with unready status: [first]"
    );
    has(&node.ok("get pod p"), &["1/2", "Running"]);
    run("touch /w/ready").ok();
    node.ready("p");
    has(&node.ok("get pod p"), &["2/2", "Running"]);

    // It ends by itself and comes back; nobody else hears of it.
    let main = node.field("pod/p", ".status.containerStatuses[0].containerID");
    drop(run("kill -TERM 1"));
    node.wait("p", "jsonpath={.status.initContainerStatuses[0].restartCount}=1");
    node.ready("p");
    assert_eq!(
        node.field("pod/p", ".status.containerStatuses[0].containerID"),
        main
    );
    assert_eq!(
        node.field(
            "pod/p",
            ".status.initContainerStatuses[0].lastState.terminated.exitCode"
        ),
        "0"
    );

    // Whoever comes after a crash finds it as it was.
    let before = node.field(
        "pod/p",
        ".status.initContainerStatuses[0].state.running.startedAt",
    );
    node.server.crash_and_restart();
    node.ready("p");
    let after = node.field(
        "pod/p",
        ".status.initContainerStatuses[0].state.running.startedAt",
    );
    assert_eq!(before, after);
    assert_eq!(
        node.field("pod/p", ".status.initContainerStatuses[0].restartCount"),
        "1"
    );
}

#[test]
fn sidecars_go_after_the_main_containers_the_last_one_first() {
    let Some(node) = Node::start() else { return };
    let hook = json!({"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "echo hook of first >> /w/ended"]}}}});
    // Its hook does not wait for its turn.
    let slow = "trap 'until grep -q hook /w/ended; do sleep 0.1; done; echo main >> /w/ended; exit 0' TERM; echo main is up; sleep infinity & wait";
    node.create([pod(
        "p",
        spec(
            "Always",
            [sidecar("first", hook), sidecar("second", json!({}))],
            [container("main", slow, json!({}))],
        ),
    )]);
    node.ready("p");
    let mut logs: Vec<_> = ["first", "second"]
        .into_iter()
        .map(|name| {
            let mut log = node.start(&format!("logs -f p -c {name}"));
            log.line_with(&format!("{name} is up"));
            log
        })
        .collect();
    node.ok("delete pod p --wait=false");
    assert_eq!(logs[1].line_with("end:"), "end: hook of first main");
    assert_eq!(logs[0].line_with("end:"), "end: hook of first main second");
    node.ok("wait --for=delete pod/p --timeout=120s");
}

#[test]
fn a_job_is_done_when_its_main_containers_are() {
    let Some(node) = Node::start() else { return };
    let job = |name: &str, policy: &str, limit: u32, script: &str| {
        let template = spec(
            policy,
            [sidecar("first", json!({})), sidecar("second", json!({}))],
            [container("main", script, json!({}))],
        );
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": limit, "template": {"spec": template}}})
    };
    node.create([
        job("good", "Never", 0, "echo main >> /w/ended"),
        job("bad", "Never", 0, "echo main >> /w/ended; exit 3"),
        // A main container that is started again does not end them.
        job(
            "again",
            "OnFailure",
            3,
            "echo main >> /w/ended; test $(grep -c main /w/ended) = 2",
        ),
    ]);
    for (name, condition, phase, order) in [
        ("good", "complete", "Succeeded", "main"),
        ("bad", "failed", "Failed", "main"),
        ("again", "complete", "Succeeded", "main main"),
    ] {
        node.ok(&format!(
            "wait --for=condition={condition} job/{name} --timeout=120s"
        ));
        let pod = node.ok(&format!(
            "get pods -l job-name={name} -o jsonpath={{.items[*].metadata.name}}"
        ));
        node.phase(&pod, phase);
        let logs = |container: &str| node.ok(&format!("logs {pod} -c {container}"));
        assert_eq!(logs("second"), format!("second is up\nend: {order}\n"), "{name}");
        assert_eq!(
            logs("first"),
            format!("first is up\nend: {order} second\n"),
            "{name}"
        );
        let ends = ".status.initContainerStatuses[*].state.terminated.exitCode";
        assert_eq!(node.field(&format!("pod/{pod}"), ends), "0 0");
    }
    has(&node.ok("get pods -l job-name=good"), &["0/3", "Completed"]);
}

#[test]
fn a_sidecar_is_restarted_whatever_its_pod_says_and_a_failed_init_container_ends_it() {
    let Some(node) = Node::start() else { return };
    let once = "test -e /w/again && exec sleep infinity; touch /w/again; exit 4";
    let mut restarted = container("s", once, json!({}));
    restarted["restartPolicy"] = "Always".into();
    let wait = "until test -e /w/go; do sleep 0.1; done";
    node.create([
        pod(
            "never",
            spec("Never", [restarted], [container("main", wait, json!({}))]),
        ),
        pod(
            "broken",
            spec(
                "Never",
                [sidecar("s", json!({})), container("init", "exit 1", json!({}))],
                [container("main", "true", json!({}))],
            ),
        ),
    ]);
    node.wait(
        "never",
        "jsonpath={.status.initContainerStatuses[0].restartCount}=1",
    );
    node.wait("never", "condition=Ready");
    let last = ".status.initContainerStatuses[0].lastState.terminated.exitCode";
    assert_eq!(node.field("pod/never", last), "4");
    node.phase("broken", "Failed");
    assert_eq!(node.ok("logs broken -c s"), "s is up\nend:\n");
    assert_eq!(
        node.field("pod/broken", ".status.containerStatuses[0].state.waiting.reason"),
        "PodInitializing"
    );
    has(&node.ok("get pod broken"), &["0/2", "Init:Error"]);
}

#[test]
fn what_is_no_sidecar_is_refused_by_name() {
    let Some(node) = Node::start() else { return };
    let mut rules = container("i", "true", json!({}));
    rules["restartPolicy"] = "Never".into();
    node.create([pod("p", spec("Always", [rules], [in_turn("main", json!({}))]))]);
    node.phase("p", "Failed");
    has(
        &node.field("pod/p", ".status.message"),
        &["spec.initContainers[0].restartPolicy: only Always is supported"],
    );
}
