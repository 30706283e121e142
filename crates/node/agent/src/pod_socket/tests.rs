use std::{collections::BTreeSet, os::unix::fs::FileTypeExt};

use tokio::io::AsyncReadExt;

use super::*;
use crate::{
    references::{ObjectKind, ObjectRef},
    report::{Built, Wants},
};

const REVISION: &str = "..2026_01_31_09_05_07.1234567890";

fn line(revision: &str) -> String {
    format!("{{\"loaded\": {{\"volume\": \"cfg\", \"revision\": \"{revision}\"}}, \"ok\": true}}\n")
}

fn sockets(directory: &Path) -> (PodSockets, Reports) {
    let reports = Reports::open(Path::new("/nonexistent")).expect("no key is no error");
    let reference = ObjectRef {
        kind: ObjectKind::ConfigMap,
        namespace: "n".to_owned(),
        name: "app".to_owned(),
    };
    let wants = Wants::from([("cfg".to_owned(), BTreeSet::from([reference.clone()]))]);
    reports.note(|ledger, now| {
        ledger.pod("p", "web", wants, now);
        ledger.heard(&reference, None, None, now);
        let built = Built::from([(reference, None)]);
        ledger.projected("p", "cfg", built, (REVISION, Vec::new()), now);
    });
    (
        PodSockets::new(directory.to_owned(), reports.clone(), Metrics::default()),
        reports,
    )
}

async fn connect(directory: &Path) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(directory.join("p/.agent/agent.sock")).await;
    BufReader::new(stream.expect("somebody listens"))
}

async fn say(stream: &mut BufReader<UnixStream>, line: &str) -> String {
    stream.get_mut().write_all(line.as_bytes()).await.expect("taken");
    let mut answer = String::new();
    stream.read_line(&mut answer).await.expect("answered");
    answer
}

#[tokio::test]
async fn a_program_reports_for_its_pod_and_hears_of_slips() {
    let directory = tempfile::tempdir().expect("a directory");
    let (sockets, reports) = sockets(directory.path());
    assert_eq!(sockets.mounted("p"), None);
    sockets.open("p").await.expect("bound");
    let mounted = sockets.mounted("p").expect("open");
    let socket = fs::metadata(mounted.join(SOCKET)).expect("there");
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o666);

    let mut stream = connect(directory.path()).await;
    assert_eq!(say(&mut stream, &line(REVISION)).await, "{\"ok\":true}\n");
    let loaded = reports.document()["objects"][0]["loaded"].clone();
    assert_eq!(loaded, serde_json::json!({"reporting": 1, "current": 1}));
    assert!(say(&mut stream, "nonsense\n").await.starts_with("{\"error\":"));
    let other = line(REVISION).replace("cfg", "other");
    assert_eq!(
        say(&mut stream, &other).await,
        "{\"error\":\"the pod has no such volume of ConfigMaps or Secrets\"}\n"
    );
    let bare = line(REVISION).replace("\"volume\": \"cfg\", ", "");
    assert_eq!(say(&mut stream, &bare).await, "{\"ok\":true}\n");

    // A line without end is answered and is the last one.
    let long = "x".repeat(LINE_BYTES_MAX as usize + 1);
    assert_eq!(
        say(&mut stream, &long).await,
        "{\"error\":\"a line has at most 4096 bytes\"}\n"
    );
    let mut rest = String::new();
    // What was not read makes the end a reset.
    let _ = stream.read_to_string(&mut rest).await;
    assert_eq!(rest, "");
}

#[tokio::test]
async fn connections_are_bounded_and_a_new_agent_takes_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, _) = sockets(directory.path());
    first.open("p").await.expect("bound");
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut stream = connect(directory.path()).await;
        assert_eq!(say(&mut stream, &line(REVISION)).await, "{\"ok\":true}\n");
        held.push(stream);
    }
    let mut refused = String::new();
    let mut stream = connect(directory.path()).await;
    stream.read_line(&mut refused).await.expect("closed in order");
    assert_eq!(refused, "");

    let (second, _) = sockets(directory.path());
    second.open("p").await.expect("bound over the first one");
    let mut stream = connect(directory.path()).await;
    assert_eq!(say(&mut stream, &line(REVISION)).await, "{\"ok\":true}\n");
    second.close("p");
    assert_eq!(second.mounted("p"), None);
    let mut rest = String::new();
    stream.read_line(&mut rest).await.expect("closed in order");
    assert_eq!(rest, "");
}
