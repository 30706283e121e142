//! What the shims of the release before say and understand, as files: pods outlive an upgrade, and their shims do not change.
//!
//! The fixtures are never edited. A release that adds to the protocol adds a folder with what its own shims say.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::attach::{AttachConfig, AttachSession};
use crate::protocol::{self, Call, FrameBuffer, Refusal, Reply, Request, SOCKET_FILE, SwapCall};
use crate::runtime::Connection;
use crate::runtime::attach::pod_socket;
use crate::spec::{ContainerConfig, SandboxConfig};
use crate::status::{ContainerState, PodState, SandboxRecord};

const STATE: &str = include_str!("../fixtures/first-release/state.json");
const SANDBOX: &str = include_str!("../fixtures/first-release/sandbox.json");
const START: &str = include_str!("../fixtures/first-release/start.json");
const REQUESTS: &str = include_str!("../fixtures/first-release/requests.jsonl");
const REPLIES: &str = include_str!("../fixtures/first-release/replies.jsonl");

/// What a shim of the first release takes for a call; anything else it refuses as `unsupported`.
const CALLS_OF_FIRST_RELEASE: [&str; 7] = [
    "start",
    "stop",
    "remove",
    "exec",
    "watch",
    "stop_sandbox",
    "shutdown",
];

/// As the first release declares it: what is missing makes its shim refuse the start.
#[derive(Deserialize)]
#[expect(dead_code, reason = "that they can be read is what is asked")]
struct ContainerOfFirstRelease {
    name: String,
    attempt: u32,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    cwd: String,
    user: UserOfFirstRelease,
    capabilities: u64,
    no_new_privileges: bool,
    privileged: bool,
    read_only_root: bool,
    mounts: Vec<MountOfFirstRelease>,
    writable: Vec<String>,
    links: Vec<(String, String)>,
    log_path: String,
    log_limits: LimitsOfFirstRelease,
    tty: bool,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "that they can be read is what is asked")]
struct UserOfFirstRelease {
    uid: u32,
    gid: u32,
    supplementary_groups: Vec<u32>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "that they can be read is what is asked")]
struct MountOfFirstRelease {
    source: String,
    target: String,
    read_only: bool,
    id_mapped: bool,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "that they can be read is what is asked")]
struct LimitsOfFirstRelease {
    max_bytes: u64,
    max_files: u32,
}

fn lines(text: &str) -> impl Iterator<Item = (&str, Value)> {
    text.lines()
        .map(|line| (line, serde_json::from_str(line).expect("a fixture is JSON")))
}

/// What was read says the same when it is written again; more is allowed, for fields were added since.
#[track_caller]
fn still_says(written: &Value, read: &Value, what: &str) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written {
                let now = read.get(key).unwrap_or_else(|| panic!("{what}: {key} is lost"));
                still_says(value, now, what);
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            assert_eq!(written.len(), read.len(), "{what}");
            written
                .iter()
                .zip(read)
                .for_each(|(written, read)| still_says(written, read, what));
        }
        _ => assert_eq!(written, read, "{what}"),
    }
}

#[test]
fn the_files_of_a_pod_are_understood() {
    let state: PodState = serde_json::from_str(STATE).expect("the state of a pod");
    assert!(matches!(
        state.containers[0].state,
        ContainerState::Running { pid: 4720, .. }
    ));
    still_says(
        &serde_json::from_str(STATE).expect("JSON"),
        &serde_json::to_value(&state).expect("JSON"),
        "state.json",
    );
    let record: SandboxRecord = serde_json::from_str(SANDBOX).expect("the record of a sandbox");
    let SandboxConfig { name, hostname, .. } = &record.config;
    assert_eq!((name.as_str(), hostname.as_str()), ("web", "web"));
    still_says(
        &serde_json::from_str(SANDBOX).expect("JSON"),
        &serde_json::to_value(&record).expect("JSON"),
        "sandbox.json",
    );
}

#[test]
fn requests_and_replies_are_understood() {
    let start: Value = serde_json::from_str(START).expect("JSON");
    let text = start.to_string();
    for (line, written) in lines(REQUESTS).chain([(text.as_str(), start.clone())]) {
        let request: Request =
            protocol::decode(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
        still_says(&written, &serde_json::to_value(&request).expect("JSON"), line);
    }
    for (line, written) in lines(REPLIES) {
        let reply: Reply =
            protocol::decode(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
        still_says(&written, &serde_json::to_value(&reply).expect("JSON"), line);
    }
}

#[test]
fn an_older_shim_understands_the_start_of_a_container() {
    let request: Request = protocol::decode(START.as_bytes()).expect("a start");
    let sent = serde_json::to_value(&request).expect("JSON");
    serde_json::from_value::<ContainerOfFirstRelease>(sent["container"].clone())
        .map_err(|error| panic!("{error}: {sent}"))
        .ok();
}

/// A shim that answers as one of the first release.
async fn answer(listener: UnixListener) {
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let (mut inbox, mut bytes) = (FrameBuffer::default(), [0; 4_096]);
    loop {
        while let Some(frame) = inbox.next_frame().expect("a frame") {
            let request: Value = serde_json::from_slice(&frame).expect("JSON");
            let call = request["call"].as_str().expect("a call");
            let reply = match CALLS_OF_FIRST_RELEASE.contains(&call) {
                true => json!({"reply": "done"}),
                false => json!({"reply": "refused", "refusal": {"reason": "unsupported"}}),
            };
            let frame = protocol::encode(&reply).expect("short");
            stream.write_all(&frame).await.expect("somebody listens");
        }
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(length) => inbox.extend(&bytes[..length]),
        }
    }
}

#[tokio::test]
async fn an_older_shim_refuses_what_it_does_not_know_and_goes_on() {
    let directory = std::env::temp_dir().join(format!("hotmap-old-shim-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let listener = UnixListener::bind(directory.join(SOCKET_FILE)).expect("a socket");
    let shim = tokio::spawn(answer(listener));
    let mut connection = Connection::open(&directory).await.expect("connected");
    let container: ContainerConfig =
        serde_json::from_value(serde_json::from_str::<Value>(START).expect("JSON")["container"].clone())
            .expect("a container");
    let beside = ContainerConfig {
        target: Some("web".to_owned()),
        ..container.clone()
    };
    let name = || "web".to_owned();
    for (call, is_known) in [
        (
            Call::Start {
                container: Box::new(container),
            },
            true,
        ),
        (
            Call::StartBeside {
                container: Box::new(beside),
            },
            false,
        ),
        (
            Call::CompareEnv {
                name: name(),
                attempt: 0,
                env: Vec::new(),
            },
            false,
        ),
        (
            Call::SwapMount(SwapCall {
                name: name(),
                attempt: 0,
                target: "/a".into(),
                read_only: true,
                verify: false,
            }),
            false,
        ),
        (
            Call::Remove {
                name: name(),
                attempt: 0,
            },
            true,
        ),
    ] {
        let what = format!("{call:?}");
        let reply = connection.call(call, &[]).await.expect("an answer");
        let is_refused = matches!(
            reply,
            Reply::Refused {
                refusal: Refusal::Unsupported
            }
        );
        assert_eq!(is_refused, !is_known, "{what}: {reply:?}");
    }
    drop(connection);
    shim.await.expect("it answered");
    std::fs::remove_dir_all(&directory).expect("ours");
    for (error, sentence) in [
        (crate::CompareError::OldShim.to_string(), "earlier release"),
        (crate::SwapError::OldShim.to_string(), "earlier release"),
        (crate::StartError::NoTargets.to_string(), "earlier release"),
    ] {
        assert!(error.contains(sentence), "{error}");
    }
}

/// A shim of the first release that listens in a directory of its own, for one connection.
fn old_shim() -> (tempfile::TempDir, JoinHandle<()>) {
    let directory = tempfile::tempdir().expect("a directory");
    let listener = UnixListener::bind(directory.path().join(SOCKET_FILE)).expect("a socket");
    (directory, tokio::spawn(answer(listener)))
}

#[tokio::test]
async fn whoever_asks_an_older_shim_for_what_it_cannot_do_is_told_what_to_do() {
    let (directory, shim) = old_shim();
    let connection = Connection::open(directory.path()).await.expect("connected");
    let streams = AttachConfig {
        stdin: true,
        stdout: true,
        stderr: true,
    };
    let attached = AttachSession::start(connection, "uid", "web", streams).await;
    assert_eq!(
        attached.expect_err("it cannot attach").to_string(),
        "the pod was started by an earlier release, which nobody can attach to: delete it and create it anew"
    );
    shim.await.expect("it answered");

    let (directory, shim) = old_shim();
    let socket = pod_socket(directory.path(), "uid", false).await;
    assert_eq!(
        socket.expect_err("it cannot forward ports").to_string(),
        "the pod was started by an earlier release, which cannot forward ports: delete it and create it anew"
    );
    shim.await.expect("it answered");
}
