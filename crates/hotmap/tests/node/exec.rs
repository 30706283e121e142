//! `kubectl exec` and `kubectl cp`, in the releases that people have.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::{
    harness::{Release, finish},
    has,
    host::{Node, idle, pod, shell},
};

const STREAM_BYTES: usize = 5 * 1024 * 1024;

fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    Vec::from_iter((0..length).map(|_| next()))
}

fn check(release: Release) {
    let Some(node) = Node::start_with(release, &[]) else {
        return;
    };
    node.create([
        pod("p", json!({"containers": [idle(json!({}))]})),
        pod(
            "ended",
            json!({"restartPolicy": "Never", "containers": [shell("exit 0", json!({}))]}),
        ),
        pod("crashed", json!({"containers": [shell("exit 1", json!({}))]})),
    ]);
    node.ready("p");
    for code in [0, 1, 7, 255] {
        assert_eq!(node.exec("p", &format!("exit {code}")).code, code);
    }
    assert_eq!(node.exec("p", "kill -9 $$").code, 137);
    let both = node.exec("p", "echo out; echo err >&2");
    assert_eq!((both.stdout.as_str(), both.stderr.as_str()), ("out\n", "err\n"));
    has(
        &node.call(&["exec", "p", "--", "/not/there"]).refused(),
        &["/not/there"],
    );

    // Binary input and output at once, through a file so that nothing decodes it.
    let bytes = noise(STREAM_BYTES);
    let sent = node.file("sent", &bytes);
    let echoed = node
        .command(&["exec", "-i", "p", "--", "cat"])
        .stdin(std::fs::File::open(sent).expect("a file of ours"))
        .stderr(Stdio::inherit())
        .output()
        .expect("kubectl runs");
    assert!(
        echoed.status.success() && echoed.stdout == bytes,
        "{} bytes came back",
        echoed.stdout.len()
    );
    assert_eq!(
        node.feed("exec -i p -- wc -c", &bytes[..1000]).ok().trim(),
        "1000"
    );

    node.ok("cp sent p:/tmp/there");
    node.ok("cp p:/tmp/there back");
    let back = std::fs::read(node.server.home().join("back")).expect("it was copied");
    assert!(back == bytes, "{} bytes came back", back.len());

    node.phase("ended", "Succeeded");
    has(
        &node.call(&["exec", "ended", "--", "true"]).refused(),
        &["cannot exec into a container in a completed pod; current phase is Succeeded"],
    );
    node.waiting("crashed", "CrashLoopBackOff");
    let refused = node.call(&["exec", "crashed", "--", "true"]).refused();
    has(&refused, &["container", "main", "not running"]);
    assert!(!refused.contains("SPDY"), "{refused}");

    // A terminal of a size, as a person has one.
    let typed = format!(
        "stty rows 33 cols 101; {} exec -it p -- sh -c 'until [ \"$(stty size)\" = \"33 101\" ]; do :; done; test -t 0 && echo sized; exit 5'; echo code $?",
        node.command(&[]).get_program().display()
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &typed, "/dev/null"]);
    for (name, value) in node.command(&[]).get_envs() {
        terminal.env(name, value.unwrap_or_default());
    }
    let shown = finish(&mut terminal, None).stdout;
    has(&shown, &["sized", "code 5"]);
}

#[test]
fn the_newest_kubectl_runs_commands_and_copies_files() {
    check(Release::Newest);
}

#[test]
fn kubectl_1_32_runs_commands_and_copies_files() {
    check(Release::V1_32);
}

#[test]
fn what_is_not_served_yet_says_so() {
    let Some(node) = Node::start() else { return };
    node.create([pod("p", json!({"containers": [idle(json!({}))]}))]);
    node.ready("p");
    has(
        &node
            .run("get --raw /api/v1/namespaces/default/pods/p/resize")
            .refused(),
        &["pods/resize is not served"],
    );
    has(&node.run("top pod").refused(), &["Metrics API not available"]);
}
