use std::path::PathBuf;

use hotmap_projection::Revision;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;
use crate::endpoint::{EndpointMetrics, Secrecy, Standing};
use crate::metric_names::MetricNames;
use crate::metrics::Metrics;
use crate::progress::{Phase, Progress, VolumeProgress};

const ONE: &str = "..2026_01_31_09_05_07.1";
const TWO: &str = "..2026_01_31_09_06_00.2";

fn progress(seen: &str, loaded: Option<&str>, phase: Phase) -> Progress {
    let volume = VolumeProgress {
        path: PathBuf::from("/etc/app"),
        seen: Some(Revision::new(seen)),
        told: None,
        loaded: loaded.map(Revision::new),
    };
    Progress {
        volumes: vec![volume],
        phase,
        deaf: None,
    }
}

/// Somebody who reports to the agent in `directory`, and what makes him speak.
fn reporting(directory: &Path, first: Progress) -> (watch::Sender<Progress>, JoinHandle<()>) {
    let (sender, receiver) = watch::channel(first);
    let secrecy = Secrecy {
        public: vec![PathBuf::from("/etc/app")],
        ..Secrecy::default()
    };
    let statements = Statements::new(Standing::new(receiver, true), secrecy.into());
    let socket = directory.join("agent.sock");
    let metrics = EndpointMetrics::new(Metrics::new(MetricNames::Hotmap));
    (
        sender,
        tokio::spawn(async move { report(&socket, statements, &metrics).await }),
    )
}

/// The agent's side of a connection.
struct Agent(BufReader<UnixStream>);

impl Agent {
    async fn accept(listener: &UnixListener) -> Self {
        Self(BufReader::new(listener.accept().await.unwrap().0))
    }

    async fn hears(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn says(&mut self, answer: &str) {
        self.0
            .get_mut()
            .write_all(format!("{answer}\n").as_bytes())
            .await
            .unwrap();
    }
}

fn loaded(revision: &str) -> serde_json::Value {
    json!({"loaded": {"revision": revision}, "ok": true})
}

#[tokio::test(start_paused = true)]
async fn what_is_loaded_is_said_and_said_again_to_a_new_agent() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let (sender, reporter) = reporting(directory.path(), progress(ONE, Some(ONE), Phase::Loaded));
    let mut agent = Agent::accept(&listener).await;
    assert_eq!(agent.hears().await, loaded(ONE));
    agent.says("{\"ok\":true}").await;

    sender.send_replace(progress(
        TWO,
        Some(ONE),
        Phase::HeldBack("check: exit code 1".to_owned()),
    ));
    let refused = json!({"loaded": {"revision": TWO}, "ok": false, "message": "check: exit code 1"});
    assert_eq!(agent.hears().await, refused);
    agent.says("{\"ok\":true}").await;

    // The agent goes, and nobody listens for a while.
    drop((agent, listener));
    std::fs::remove_file(&socket).unwrap();
    sender.send_replace(progress(TWO, Some(TWO), Phase::Loaded));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let listener = UnixListener::bind(&socket).unwrap();
    let mut agent = Agent::accept(&listener).await;
    assert_eq!(agent.hears().await, loaded(TWO), "the latest, and once");
    agent.says("{\"ok\":true}").await;

    // A new agent with nothing new to say to it.
    drop(agent);
    let mut agent = Agent::accept(&listener).await;
    assert_eq!(agent.hears().await, loaded(TWO));
    reporter.abort();
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_not_noted_a_projection_yet_is_asked_again_a_few_times() {
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join("agent.sock")).unwrap();
    let (sender, reporter) = reporting(directory.path(), progress(ONE, Some(ONE), Phase::Loaded));
    let mut agent = Agent::accept(&listener).await;
    for _ in 0..=AGAIN.len() {
        assert_eq!(agent.hears().await, loaded(ONE));
        agent
            .says("{\"error\":\"no volume of the pod has shown this revision; name the volume\"}")
            .await;
    }
    // It has given up on this one, and not on the next.
    sender.send_replace(progress(TWO, Some(TWO), Phase::Loaded));
    assert_eq!(agent.hears().await, loaded(TWO));
    agent.says("{\"error\":\"no\"}").await;
    assert_eq!(agent.hears().await, loaded(TWO));
    agent.says("{\"ok\":true}").await;
    reporter.abort();
}

#[tokio::test(start_paused = true)]
async fn plain_files_have_no_revision_that_an_agent_knows() {
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join("agent.sock")).unwrap();
    let plain = progress("0123456789abcdef", Some("0123456789abcdef"), Phase::Loaded);
    let (sender, reporter) = reporting(directory.path(), plain);
    let mut agent = Agent::accept(&listener).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    sender.send_replace(progress(ONE, Some(ONE), Phase::Loaded));
    assert_eq!(agent.hears().await, loaded(ONE), "and nothing before it");
    reporter.abort();
}
