//! `kubectl logs`.

use std::{io::Read, process::Stdio};

use serde_json::json;

use crate::host::{Node, pod, shell};

/// A log is rotated at 10 MiB, behind a line of that length: who follows it sees all of it, and who comes later too.
const LONG_LINE_BYTES: usize = 10 * 1024 * 1024;

#[test]
fn a_log_is_read_in_every_way() {
    let Some(node) = Node::start() else { return };
    node.create([
        pod("count", json!({"restartPolicy": "Never", "containers": [shell("for i in 1 2 3 4 5; do echo line $i; done; echo error >&2", json!({}))]})),
        pod("twice", json!({"restartPolicy": "OnFailure", "containers": [shell(
            "if test -e /w/f; then echo second; else touch /w/f; echo first; exit 1; fi", json!({"volumeMounts": [{"name": "w", "mountPath": "/w"}]}))],
            "volumes": [{"name": "w", "emptyDir": {}}]})),
    ]);
    node.phase("count", "Succeeded");
    assert_eq!(
        node.ok("logs count"),
        "line 1\nline 2\nline 3\nline 4\nline 5\nerror\n"
    );
    assert_eq!(node.ok("logs count --tail=2"), "line 5\nerror\n");
    assert_eq!(node.ok("logs count --limit-bytes=4"), "line");
    assert_eq!(node.ok("logs count --since-time=2099-01-01T00:00:00Z"), "");
    assert_eq!(node.ok("logs count --since=1h --tail=1"), "error\n");
    let stamped = node.ok("logs count --timestamps --tail=1");
    let (time, rest) = stamped.split_once(' ').expect("a time before the line");
    assert!(
        time.parse::<jiff::Timestamp>().is_ok() && rest == "error\n",
        "{stamped}"
    );
    assert_eq!(
        node.ok("logs -f count --tail=1"),
        "error\n",
        "it ends with its container"
    );

    node.phase("twice", "Succeeded");
    assert_eq!(node.ok("logs twice"), "second\n");
    assert_eq!(node.ok("logs twice --previous"), "first\n");
    crate::has(
        &node.run("logs count --previous").refused(),
        &["previous terminated container"],
    );
}

#[test]
fn long_lines_and_bytes_that_are_no_text_come_out_as_they_went_in() {
    let Some(node) = Node::start() else { return };
    let print = |bytes: usize| {
        format!("head -c {bytes} /dev/zero | tr '\\0' x; echo; printf '\\377\\0\\r\\n'; printf end")
    };
    let printed = |bytes: usize| [vec![b'x'; bytes], b"\n\xff\0\r\nend".to_vec()].concat();
    node.create([
        pod("kept", json!({"restartPolicy": "Never", "containers": [shell(&print(LONG_LINE_BYTES), json!({}))]})),
        pod("followed", json!({"restartPolicy": "Never",
            "containers": [shell(&format!("mkfifo /tmp/f; echo up; read -r go < /tmp/f; {}", print(LONG_LINE_BYTES)), json!({}))]})),
    ]);
    node.ready("followed");
    // It follows for sure once the first line has come.
    let mut follow = node
        .command(&["logs", "-f", "followed"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl runs");
    let mut followed = follow.stdout.take().expect("piped");
    let mut seen = vec![0; 3];
    followed.read_exact(&mut seen).expect("a first line");
    // The container ends soon after, and that may end the writer too.
    drop(node.exec("followed", "echo go > /tmp/f"));
    seen.clear();
    followed.read_to_end(&mut seen).expect("a log to its end");
    drop(follow.wait());
    let check = |seen: &[u8], expected: &[u8]| {
        let end = String::from_utf8_lossy(&seen[seen.len().saturating_sub(20)..]);
        assert!(
            seen == expected,
            "{} bytes of {}: {end:?}",
            seen.len(),
            expected.len()
        );
    };
    check(&seen, &printed(LONG_LINE_BYTES));
    node.phase("kept", "Succeeded");
    let log = node
        .command(&["logs", "kept"])
        .output()
        .expect("kubectl runs")
        .stdout;
    check(&log, &printed(LONG_LINE_BYTES));
    // Lines of both files, and none from a time when nothing was written.
    let tail = node.ok("logs kept --tail=3 --since=1h");
    assert!(
        tail.starts_with("xxx") && tail.ends_with("end"),
        "{} bytes",
        tail.len()
    );
    assert_eq!(node.ok("logs kept --since-time=2099-01-01T00:00:00Z"), "");
}

#[test]
fn a_follower_sees_each_line_when_it_is_written() {
    let Some(node) = Node::start() else { return };
    // The pod holds the pipe open for writing too: it reads no end of file between two writers.
    node.create([pod("p", json!({"restartPolicy": "Never", "containers": [shell(
        "mkfifo /tmp/f; exec 3<>/tmp/f; echo up; while read -r line <&3; do echo got $line; [ $line = end ] && exit 0; done", json!({}))]}))]);
    node.ready("p");
    let mut log = node.start("logs -f p");
    log.line_with("up");
    for word in ["one", "two", "end"] {
        // The last word ends the container, and that may end the writer too.
        drop(node.exec("p", &format!("echo {word} > /tmp/f")));
        assert_eq!(log.line_with("got"), format!("got {word}"));
    }
    assert_eq!(log.rest(), (Vec::new(), 0));
}
