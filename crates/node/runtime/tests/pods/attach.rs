//! Clients of a container's own streams, and of a pod's ports.

use std::time::Duration;

use hotmap_runtime::{AttachConfig, AttachError, AttachSession, ConnectError, Runtime, Stdin, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Fixture, POD, exit_of, host_pid};

const EVERYTHING: AttachConfig = AttachConfig {
    stdin: true,
    stdout: true,
    stderr: true,
};

async fn attach(runtime: &Runtime) -> AttachSession {
    runtime
        .attach_container(POD, "web", EVERYTHING)
        .await
        .expect("attached")
}

async fn say(session: &mut AttachSession, words: &str) {
    let stdin = session.stdin.as_mut().expect("an input");
    stdin.write_all(words.as_bytes()).await.expect("written");
}

/// Reads until this has come.
async fn hear(session: &mut AttachSession, words: &str) {
    let stdout = session.stdout.as_mut().expect("asked for");
    let (mut heard, mut piece) = (String::new(), [0; 4_096]);
    while !heard.contains(words) {
        let read = tokio::time::timeout(Duration::from_secs(30), stdout.read(&mut piece)).await;
        let read = read.expect("in time").expect("read");
        assert!(read > 0, "the end, after {heard:?}");
        heard += &String::from_utf8_lossy(&piece[..read]);
    }
}

/// Waits until the shim of a container has no more than so many descriptors: a few are there for a moment only.
async fn descriptors(pid: i32, most: Option<usize>) -> usize {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let after = stat.rsplit_once(')').expect("a name").1;
    let shim = after.split_whitespace().nth(1).expect("a parent").to_owned();
    let count = || {
        std::fs::read_dir(format!("/proc/{shim}/fd"))
            .expect("a shim")
            .count()
    };
    let wait = async {
        while most.is_some_and(|most| count() > most) {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), wait).await;
    assert!(waited.is_ok(), "{} descriptors, more than {most:?}", count());
    count()
}

#[tokio::test]
async fn all_who_attach_see_the_output_and_an_open_stdin_outlives_them() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut events = runtime.events();
    let mut config = fixture.script(
        "web",
        "while read -r line; do echo got $line; echo not $line >&2; done; echo over",
    );
    config.stdin = Stdin::Open;
    let status = runtime.start_container(POD, config).await.expect("started");
    let before = descriptors(host_pid(&status), None).await;

    let (mut first, mut second) = (attach(&runtime).await, attach(&runtime).await);
    say(&mut first, "one\n").await;
    hear(&mut first, "got one\n").await;
    hear(&mut second, "got one\n").await;
    drop(first);
    say(&mut second, "two\n").await;
    hear(&mut second, "got two\n").await;
    // The end of a client's input is not that of the container's.
    second
        .stdin
        .take()
        .expect("an input")
        .shutdown()
        .await
        .expect("shut");
    drop(second);
    descriptors(host_pid(&status), Some(before)).await;

    let mut third = attach(&runtime).await;
    say(&mut third, "three\n").await;
    hear(&mut third, "got three\n").await;
    runtime
        .stop_container(POD, "web", Some(0), None, Duration::ZERO)
        .await
        .expect("stopped");
    exit_of(&mut events, "web", 0).await;
    third.wait().await.expect("it ended with its container");
    let mut rest = String::new();
    let stderr = third.stderr.as_mut().expect("asked for");
    stderr.read_to_string(&mut rest).await.expect("read");
    assert_eq!(rest, "not three\n");
    assert!(matches!(
        runtime.attach_container(POD, "web", EVERYTHING).await,
        Err(AttachError::NotRunning(_))
    ));
    assert!(fixture.log("web").contains(&"got two".to_owned()));
}

#[tokio::test]
async fn an_input_for_one_ends_with_its_client() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut events = runtime.events();
    let mut config = fixture.script("web", "wc -c");
    config.stdin = Stdin::Once;
    runtime.start_container(POD, config).await.expect("started");
    // Who wants no input takes none away.
    let watching = AttachConfig {
        stdin: false,
        ..EVERYTHING
    };
    let mut watcher = runtime
        .attach_container(POD, "web", watching)
        .await
        .expect("attached");
    let mut client = attach(&runtime).await;
    let late = attach(&runtime).await;
    assert!(watcher.stdin.is_none() && late.stdin.is_none());
    say(&mut client, &"x".repeat(100_000)).await;
    client.stdin = None;
    hear(&mut watcher, "100000\n").await;
    hear(&mut client, "100000\n").await;
    assert_eq!(exit_of(&mut events, "web", 0).await.exit_code, 0);
    client.wait().await.expect("it ended with its container");
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_and_the_log_has_everything() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut events = runtime.events();
    let mut config = fixture.script(
        "web",
        "read -r go; i=0; while [ $i -lt 48 ]; do head -c 65535 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done; echo finished",
    );
    config.stdin = Stdin::Open;
    runtime.start_container(POD, config).await.expect("started");
    let mut asleep = attach(&runtime).await;
    say(&mut asleep, "go\n").await;
    let cut_off = asleep.wait().await.expect_err("it read nothing");
    assert!(matches!(cut_off, AttachError::TooSlow), "{cut_off:?}");
    let mut kept = Vec::new();
    let stdout = asleep.stdout.as_mut().expect("asked for");
    stdout.read_to_end(&mut kept).await.expect("read");
    assert!((65_536..3 << 20).contains(&kept.len()), "{} bytes", kept.len());
    exit_of(&mut events, "web", 0).await;
    let log = fixture.log("web");
    assert_eq!(log.last().map(String::as_str), Some("finished"));
    assert_eq!(log.iter().map(String::len).sum::<usize>(), 48 * 65_535 + 8);
}

#[tokio::test]
async fn a_terminal_is_typed_on_and_has_a_size() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut config = fixture.container("web", &["/bin/busybox", "sh"]);
    config.tty = true;
    config.stdin = Stdin::Once;
    runtime.start_container(POD, config).await.expect("started");
    let mut client = attach(&runtime).await;
    assert!(client.has_terminal());
    let size = TerminalSize {
        columns: 101,
        rows: 33,
    };
    client.resize(size).expect("resized");
    say(&mut client, "stty size\n").await;
    hear(&mut client, "33 101").await;
    drop(client);
    // A terminal has no end of input.
    let mut again = attach(&runtime).await;
    say(&mut again, "echo o''k; exit 3\n").await;
    hear(&mut again, "ok").await;
    again.wait().await.expect("it ended with its container");
}

#[tokio::test]
async fn ports_are_those_of_the_pod_alone() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let script = "echo served > /tmp/index.html; exec busybox httpd -f -p 127.0.0.1:8080 -h /tmp";
    let status = runtime
        .start_container(POD, fixture.script("web", script))
        .await
        .expect("started");
    let before = descriptors(host_pid(&status), None).await;
    let connect = async {
        loop {
            // Until it listens.
            if let Ok(stream) = runtime.connect(POD, 8_080).await {
                return stream;
            }
        }
    };
    let connected = tokio::time::timeout(Duration::from_secs(30), connect).await;
    let mut stream = connected.expect("somebody listens");
    stream
        .write_all(b"GET /index.html HTTP/1.0\r\n\r\n")
        .await
        .expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("received");
    assert!(text.ends_with("served\n"), "{text}");
    let refused = runtime.connect(POD, 81).await.expect_err("nobody listens");
    assert_eq!(
        refused.to_string(),
        "failed to connect to localhost:81 inside the pod's network: connection refused"
    );
    descriptors(host_pid(&status), Some(before)).await;
    runtime.stop_sandbox(POD).await.expect("stopped");
    let gone = runtime.connect(POD, 8_080).await.expect_err("it is stopped");
    assert!(matches!(gone, ConnectError::NoSandbox(_)), "{gone:?}");
}
