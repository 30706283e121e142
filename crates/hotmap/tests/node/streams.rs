//! `kubectl attach`, `kubectl run -i` and `-it`, `kubectl port-forward`.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    process::{Command, Stdio},
    thread,
};

use serde_json::json;

use crate::{
    harness::{Finished, Release, Running, finish},
    has,
    host::{Node, pod, shell},
};

/// A call of kubectl on a terminal, as a person has one, who types this.
pub(crate) fn on_a_terminal(node: &Node, setup: &str, call: &str, typed: &str) -> Finished {
    let kubectl = node.command(&[]).get_program().display().to_string();
    let line = format!("{setup}; {kubectl} {call}; echo code $?");
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]);
    for (name, value) in node.command(&[]).get_envs() {
        terminal.env(name, value.unwrap_or_default());
    }
    finish(&mut terminal, Some(typed.as_bytes()))
}

fn check_run(release: Release) {
    let Some(node) = Node::start_with(release, &[]) else {
        return;
    };
    let run = "run --rm --restart=Never --image=busybox";
    let counted = node.feed(&format!("{run} -i counted -- wc -c"), vec![b'x'; 300_000]);
    assert!(counted.stdout.contains("300000"), "{counted:?}");
    assert_eq!(counted.code, 0, "{counted:?}");
    // Its code comes back, once it has read what it was sent.
    let file = node.file("script", "read -r line; echo got $line; exit 7\n");
    let script = std::fs::read_to_string(file).expect("a file of ours");
    let arguments = [
        "run",
        "--rm",
        "-i",
        "--restart=Never",
        "--image=busybox",
        "failing",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut failing = node.command(&arguments);
    let failed = finish(&mut failing, Some(b"input\n"));
    assert_eq!(failed.code, 7, "{failed:?}");
    has(&failed.stdout, &["got input"]);

    let typed = "until [ \"$(stty size)\" = '33 101' ]; do :; done; echo answer $((6*7)); exit 5\n";
    let call = format!("{run} -it typed -- sh");
    let shown = on_a_terminal(&node, "stty rows 33 cols 101", &call, typed).stdout;
    has(&shown, &["answer 42", "code 5"]);
    assert_eq!(node.ok("get pods -o name"), "", "they are deleted");

    // Two clients of one container; what one sends, both see the answer to.
    let answering = "(while :; do echo tick; sleep 0.2; done) & while read -r line; do echo got $line; [ $line = end ] && exit 0; done";
    node.create([pod(
        "answering",
        json!({"restartPolicy": "Never", "containers": [shell(answering, json!({"stdin": true}))]}),
    )]);
    node.ready("answering");
    let mut watching = node.start("attach answering");
    watching.line_with("tick");
    let sent = node.feed("attach -i answering", "hello\nend\n");
    has(&sent.ok(), &["got hello", "got end"]);
    assert_eq!(watching.line_with("got"), "got hello");
    assert_eq!(watching.rest().1, 0);
    has(
        &node.run("attach answering").refused(),
        &["cannot attach a container in a completed pod; current phase is Succeeded"],
    );
    has(&node.ok("logs answering"), &["got hello\n"]);
}

#[test]
fn the_newest_kubectl_runs_programs_one_talks_to() {
    check_run(Release::Newest);
}

#[test]
fn kubectl_1_32_runs_programs_one_talks_to() {
    check_run(Release::V1_32);
}

/// Where a forwarded port listens on this machine.
fn forwarded(client: &mut Running) -> u16 {
    let line = client.line_with("Forwarding from 127.0.0.1:");
    let address = line.split_whitespace().nth(2).expect("an address");
    let port = address.rsplit_once(':').expect("a port").1;
    port.parse().expect("a number")
}

/// Everything that comes back for this, whose sending ends first.
fn exchange(port: u16, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("kubectl listens");
    stream.write_all(sent).expect("sent");
    stream.shutdown(Shutdown::Write).expect("shut");
    let mut received = Vec::new();
    stream.read_to_end(&mut received).expect("received");
    received
}

#[test]
fn ports_of_a_pod_are_reached_from_here() {
    let Some(node) = Node::start() else { return };
    // A file that no pipe on the way holds, and a program that answers when the sender has ended.
    let script = "mkdir /tmp/www; head -c 3000000 /dev/zero | tr '\\0' x > /tmp/www/index.html; \
        busybox httpd -p 127.0.0.1:8080 -h /tmp/www; exec busybox nc -ll -p 9000 -e wc -c";
    let listens =
        json!({"exec": {"command": ["busybox", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/"]}});
    node.create([pod(
        "web",
        json!({"containers": [shell(script, json!({"readinessProbe": listens}))]}),
    )]);
    node.ready("web");
    let mut client = node.start("port-forward pod/web :8080");
    let port = forwarded(&mut client);
    let fetches: Vec<_> = (0..6)
        .map(|_| {
            thread::spawn(move || {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("kubectl listens");
                stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).expect("received");
                answer
            })
        })
        .collect();
    for fetch in fetches {
        let answer = fetch.join().expect("no panic");
        let length = answer.len();
        assert!(
            answer.starts_with(b"HTTP/1.") && answer.ends_with(b"xxx") && length > 3_000_000,
            "{length} bytes"
        );
    }
    let mut counting = node.start("port-forward pod/web :9000");
    let counted = exchange(forwarded(&mut counting), &[b'x'; 100_000]);
    assert_eq!(String::from_utf8_lossy(&counted).trim(), "100000");

    let mut closed = node
        .command(&["port-forward", "pod/web", ":81"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl runs");
    let mut said = std::io::BufReader::new(closed.stdout.take().expect("piped"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
    let port = line
        .split_whitespace()
        .nth(2)
        .and_then(|address| address.rsplit(':').next());
    let port = port.and_then(|port| port.parse().ok()).expect("a port");
    assert_eq!(exchange(port, b""), b"");
    let mut stderr = String::new();
    let mut errors = closed.stderr.take().expect("piped");
    errors.read_to_string(&mut stderr).expect("its words");
    closed.wait().expect("it gives up");
    has(
        &stderr,
        &["error forwarding port 81 to pod web", "connection refused"],
    );
}
