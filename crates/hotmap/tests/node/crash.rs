//! kill -9, a write load, and a machine that starts anew.

use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    harness::Release,
    host::{Node, config_map, idle, pod, processes, shell},
};

/// How often the process is killed: 20 times in a test run, `HOTMAP_TEST_KILLS` times in a soak.
fn kills() -> u32 {
    env::var("HOTMAP_TEST_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20)
}

#[test]
fn killed_under_load_it_takes_up_where_it_was() {
    let Some(mut node) = Node::start() else { return };
    node.create([config_map("c", json!({"n": "0"}))]);
    let volume = json!([{"name": "c", "configMap": {"name": "c"}}]);
    let mount = json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]});
    let count = "trap exit TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done";
    node.create([pod(
        "counter",
        json!({"containers": [shell(count, mount)], "volumes": volume}),
    )]);
    node.ready("counter");
    let process = node.process("counter");
    for round in 1..=kills() {
        let ending = format!("ends-{round}");
        let marker = format!("{ending}-{}", node.id());
        let script = format!(
            "trap 'exit {}' USR1; sleep infinity & : {marker}; wait",
            code_of(round)
        );
        node.create([pod(
            &ending,
            json!({"restartPolicy": "Never", "containers": [shell(&script, json!({}))]}),
        )]);
        node.ready(&ending);

        let answered = write_until_killed(&node, round);
        node.server.crash();
        // The exit happens while nobody listens.
        for pid in running(&marker) {
            kill(pid, Signal::USR1);
        }
        node.server.restart();

        let stored = node.field("configmap/c", ".data.n");
        assert!(
            number_of(&stored, round) >= answered,
            "{stored} after {round}-{answered} was answered"
        );
        node.until_file("counter", "/c/n", &stored);
        assert_eq!(node.process("counter"), process, "round {round}");
        node.phase(&ending, "Failed");
        let code = ".status.containerStatuses[0].state.terminated.exitCode";
        assert_eq!(
            node.field(&format!("pod/{ending}"), code),
            code_of(round).to_string(),
            "round {round}"
        );
        node.ok(&format!("delete pod {ending}"));
        write(&node, &format!("{round}-99999"));
        node.until_file("counter", "/c/n", &format!("{round}-99999"));
    }
    let log = node.ok("logs counter");
    let numbers = Vec::from_iter(log.lines().map(|line| line.parse::<u64>().expect("a number")));
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "the log has a gap"
    );
}

fn code_of(round: u32) -> u32 {
    round % 100 + 1
}

/// The number behind `round-`.
fn number_of(text: &str, round: u32) -> u32 {
    let number = text
        .strip_prefix(&format!("{round}-"))
        .and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{text} is not of round {round}"))
}

fn write(node: &Node, text: &str) -> bool {
    let patch = json!({"data": {"n": text}}).to_string();
    let written = node.command(&["patch", "configmap", "c", "-p", &patch]).output();
    written.expect("kubectl runs").status.success()
}

/// Writes `round-1`, `round-2` … as fast as answers come, while the server is killed; the last one that was answered.
fn write_until_killed(node: &Node, round: u32) -> u32 {
    // In the middle of the load: some changes have arrived in the pod, others are on their way.
    let arrived =
        format!("until grep -q '^{round}-[2-9]' /c/n; do inotifywait -qq -t 1 -e moved_to /c || :; done");
    let mut arrival = node.command(&["exec", "counter", "--", "sh", "-c", &arrived]);
    let server = node.server.pid();
    let killer = thread::spawn(move || {
        let arrived = arrival.status().expect("kubectl runs");
        kill(server, Signal::KILL);
        arrived.success()
    });
    let answered = (1..)
        .take_while(|number| write(node, &format!("{round}-{number}")))
        .last();
    assert!(
        killer.join().expect("the killer does not panic"),
        "nothing arrived in the pod"
    );
    answered.expect("a write was answered")
}

fn kill(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process");
    kill_process(pid, signal).expect("a process of ours");
}

/// Processes of this machine with this text in their command line.
fn running(marker: &str) -> Vec<u32> {
    processes(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(marker)
    })
}

#[test]
fn after_a_reboot_each_pod_runs_anew_and_once() {
    let Some(mut node) = Node::start_with(Release::Newest, &["--fault-boot-id", "first"]) else {
        return;
    };
    node.create([config_map("c", json!({"a": "1"}))]);
    let marker = format!("marker-{}", node.id());
    node.create([
        pod(
            "p",
            json!({"containers": [shell(&format!("trap exit TERM; sleep infinity & : {marker}; wait"),
            json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]}))],
            "volumes": [{"name": "c", "configMap": {"name": "c"}}]}),
        ),
        pod(
            "once",
            json!({"restartPolicy": "Never", "containers": [idle(json!({}))]}),
        ),
    ]);
    node.ready("p once");
    let before = node.process("p");
    let old = running(&marker);
    assert_eq!(old.len(), 1);

    node.server.crash();
    node.server
        .set_flags(&["--node-name", "node-a", "--fault-boot-id", "second"]);
    node.server.restart();
    node.wait("p", "jsonpath={.status.containerStatuses[0].restartCount}=1");
    node.ready("p");
    assert_ne!(node.process("p"), before);
    let new = running(&marker);
    assert!(new.len() == 1 && new != old, "{old:?} then {new:?}");
    assert_eq!(node.sh("p", "cat /c/a"), "1");
    // Whose container may run once only has ended with the machine.
    node.phase("once", "Failed");
}
