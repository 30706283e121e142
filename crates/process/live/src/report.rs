//! Tells hotmap's agent on the node what was loaded, where there is one (docs/agent-socket.md of hotmap).

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use hotmap_projection::Revision;

use crate::live::lock;

/// Where a pod finds it.
pub(crate) const AGENT_SOCKET: &str = "/run/hotmap/agent.sock";

/// The agent answers in microseconds; one that does not is not waited for.
const WRITE_MAX: Duration = Duration::from_secs(1);

/// Between two attempts to reach an agent that is away: doubled each time, up to the second one. An agent that restarts is
/// there again in less than a second.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Bytes of a message that the agent keeps.
const MESSAGE_BYTES_MAX: usize = 256;

/// A connection to the agent: a thread that sleeps in a read while it is there, and says everything again to a new agent.
pub(crate) struct Reporter {
    socket: PathBuf,
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Default)]
struct State {
    /// What holds now, a line for each volume.
    lines: Vec<String>,
    connection: Option<UnixStream>,
    is_stopped: bool,
}

impl Reporter {
    /// `None` where no agent has ever been: there is no such directory.
    pub(crate) fn start(socket: PathBuf) -> Option<Arc<Self>> {
        if !socket.parent().is_some_and(|directory| directory.is_dir()) {
            return None;
        }
        let reporter = Arc::new(Self {
            socket,
            state: Mutex::new(State::default()),
            stopped: Condvar::new(),
        });
        let of_thread = reporter.clone();
        // Without a thread nothing is reported, and all else goes on.
        let thread = thread::Builder::new()
            .name("hotmap-live-report".to_owned())
            .spawn(move || of_thread.run());
        thread.ok().map(|_| reporter)
    }

    /// Says which revisions were loaded, or why not. Only projected volumes have revisions that an agent knows.
    pub(crate) fn report<'a>(&self, revisions: impl Iterator<Item = &'a Revision>, refused: Option<&str>) {
        let projected = revisions.filter(|revision| revision.as_str().starts_with(".."));
        let lines = projected.map(|revision| line(revision, refused)).collect();
        let mut state = lock(&self.state);
        state.lines = lines;
        state.say();
    }

    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.is_stopped = true;
        if let Some(connection) = &state.connection {
            // It ends the read of the thread.
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.stopped.notify_all();
    }

    fn run(&self) {
        let mut pause = PAUSE_MIN;
        loop {
            if let Some(connection) = self.connect() {
                for answer in BufReader::new(connection).lines() {
                    if answer.is_err() {
                        break;
                    }
                    pause = PAUSE_MIN;
                }
            }
            let mut state = lock(&self.state);
            state.connection = None;
            if !state.is_stopped {
                let waited = self.stopped.wait_timeout(state, pause);
                pause = (pause * 2).min(PAUSE_MAX);
                state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            }
            if state.is_stopped {
                return;
            }
        }
    }

    /// The half to read from, after all was said.
    fn connect(&self) -> Option<UnixStream> {
        let connection = UnixStream::connect(&self.socket).ok()?;
        connection.set_write_timeout(Some(WRITE_MAX)).ok()?;
        let reading = connection.try_clone().ok()?;
        let mut state = lock(&self.state);
        state.connection = Some(connection);
        state.say();
        (!state.is_stopped).then_some(reading)
    }
}

impl State {
    fn say(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.write_all(self.lines.concat().as_bytes()).is_err() {
            // The thread that reads it connects again, and says all of it.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

fn line(revision: &Revision, refused: Option<&str>) -> String {
    let loaded = serde_json::json!({ "revision": revision.as_str() });
    let mut said = serde_json::json!({ "loaded": loaded, "ok": refused.is_none() });
    if let Some(message) = refused {
        let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
        said["message"] = message[..end].into();
    }
    format!("{said}\n")
}
