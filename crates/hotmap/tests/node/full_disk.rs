//! The disk of the data directory is full, and then it is not.

use std::{fs, io::Write, thread, time::Instant};

use serde_json::json;

use crate::{
    harness::{Http, PATIENCE, Release, Running, ServerOptions},
    host::{Node, config_map, pod, shell},
};

#[test]
fn a_full_disk_refuses_writes_stops_no_pod_and_heals_by_itself() {
    let options = ServerOptions {
        disk_mib: Some(64),
        ..ServerOptions::default()
    };
    let Some(mut node) = Node::start_like(Release::Newest, &[], options) else {
        return;
    };
    node.create([config_map("c", json!({"n": "0"}))]);
    let count = "trap exit TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";
    let mount = json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]});
    node.create([pod(
        "p",
        json!({"containers": [shell(count, mount)], "volumes": [{"name": "c", "configMap": {"name": "c"}}]}),
    )]);
    node.ready("p");
    let process = node.process("p");

    // Until nothing fits any more, into the file of the store either.
    let filling = node.server.home().join("filling");
    let mut file = fs::File::create(&filling).expect("room");
    while file.write_all(&[b'x'; 64 << 10]).is_ok() {}
    let http = Http::admin(&node.server);
    let post = |number: usize| {
        let name = format!("large-{number}");
        let object = config_map(&name, json!({"large": "x".repeat(700 << 10)}));
        http.post("/api/v1/namespaces/default/configmaps", object.to_string())
    };
    let refused = (0..100)
        .map(post)
        .find(|answer| answer.code != 201)
        .expect("no disk is that large");
    let sentence = "503 ServiceUnavailable: the store's disk is full: nothing was written; reads go on, and writes succeed again";
    assert!(refused.status().starts_with(sentence), "{}", refused.status());

    // Reads, commands and the pod go on.
    assert_eq!(node.field("configmap/c", ".data.n"), "0");
    assert_eq!(node.process("p"), process);
    assert_eq!(node.sh("p", "cat /c/n"), "0");

    // A restart finds no room either. What is there is served; the node waits for its Lease, and comes with the space.
    let mut reading = node.command(&["get", "configmap", "c", "--output", "jsonpath={.data.n}"]);
    node.server.crash();
    thread::scope(|scope| {
        scope.spawn(|| {
            let deadline = Instant::now() + PATIENCE;
            while reading.output().expect("kubectl runs").stdout != b"0" {
                assert!(Instant::now() < deadline, "nothing can be read");
            }
            drop(file);
            fs::remove_file(&filling).expect("ours");
        });
        node.server.restart();
    });
    let deadline = Instant::now() + PATIENCE;
    while post(1_000).code != 201 {
        assert!(Instant::now() < deadline, "{}", node.server.log());
    }
    node.create([config_map("c", json!({"n": "1"}))]);
    node.until_file("p", "/c/n", "1");
    assert_eq!(node.process("p"), process);
    // Its log has lost lines and has new ones.
    let last = node.ok("logs p --tail 1");
    let last: u64 = last.trim().parse().expect("a whole line");
    let mut following = Running::start(&mut node.command(&["logs", "--follow", "--tail", "1", "p"]));
    following.line_with(&(last + 50).to_string());
}
