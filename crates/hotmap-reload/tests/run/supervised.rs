//! A `hotmap-reload run` that a test talks to.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// How long a test waits for what must come; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where `run` runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// As any process, under the test.
    Here,
    /// As process 1 of a pid namespace of its own.
    Init,
}

/// Both places, or one of them where namespaces cannot be made.
pub(crate) fn places() -> Vec<Place> {
    if rustix::process::geteuid().is_root() {
        return vec![Place::Here, Place::Init];
    }
    eprintln!("not as process 1: a pid namespace needs root");
    vec![Place::Here]
}

/// The binary's words: what comes before the flags of `run`.
pub(crate) fn words(place: Place) -> Vec<&'static str> {
    let binary = env!("CARGO_BIN_EXE_hotmap-reload");
    let mut words = match place {
        Place::Here => vec![],
        Place::Init => vec!["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"],
    };
    words.extend([binary, "--log", "warn", "run"]);
    words
}

/// A running `run`, and the lines that its program writes.
pub(crate) struct Supervised {
    place: Place,
    started: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Supervised {
    /// Starts `run FLAGS… -- sh -c SCRIPT`.
    #[track_caller]
    pub(crate) fn sh(place: Place, flags: &[&str], script: &str) -> Self {
        Self::start(place, flags, &["sh", "-c", script])
    }

    /// Starts `run FLAGS… -- COMMAND`.
    #[track_caller]
    pub(crate) fn start(place: Place, flags: &[&str], command: &[&str]) -> Self {
        let words = words(place);
        let mut call = Command::new(words[0]);
        call.args(&words[1..]).args(flags).arg("--").args(command);
        Self::call(place, call)
    }

    /// Starts what is to become `run`.
    #[track_caller]
    pub(crate) fn call(place: Place, mut call: Command) -> Self {
        call.stdin(Stdio::piped()).stdout(Stdio::piped());
        // The environment of whoever runs the tests has no part in them.
        call.env_remove("NOTIFY_SOCKET").env_remove("LISTEN_FDS");
        let mut started = call.spawn().expect("the binary runs");
        let output = BufReader::new(started.stdout.take().expect("it is piped"));
        let (tells, lines) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { break };
                if tells.send(line).is_err() {
                    break;
                }
            }
        });
        let input = started.stdin.take();
        Self {
            place,
            started,
            input,
            lines,
        }
    }

    /// The next line.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line comes")
    }

    /// Lines until one holds this.
    #[track_caller]
    pub(crate) fn until(&self, text: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Writes to its standard input.
    pub(crate) fn write(&mut self, text: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(text.as_bytes()).expect("it reads");
    }

    /// Ends its standard input.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Sends `run` a signal by number.
    #[track_caller]
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: no number below 65 is one that the C library keeps for itself but 32 and 33, which nobody sends.
        let signal = unsafe { Signal::from_raw_unchecked(signal) };
        kill_process(self.pid(), signal).expect("run is there");
    }

    /// The process of `run`, as the test sees it.
    #[track_caller]
    pub(crate) fn pid(&self) -> Pid {
        let started = self.started.id();
        let pid = match self.place {
            Place::Here => started.to_string(),
            // Its program has written a line, so `unshare` has forked.
            Place::Init => {
                fs::read_to_string(format!("/proc/{started}/task/{started}/children")).expect("it runs")
            }
        };
        Pid::from_raw(pid.trim().parse().expect("one child")).expect("above zero")
    }

    /// Waits for its end; the rest of the lines, and the exit code.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Vec<String>, ExitStatus) {
        let lines = self.lines.iter().collect();
        (lines, self.started.wait().expect("it is our child"))
    }

    /// Waits for its end; the exit code.
    #[track_caller]
    pub(crate) fn code(self) -> i32 {
        self.end().1.code().expect("it is not killed")
    }
}

impl Drop for Supervised {
    /// A test that has failed, or has seen enough, leaves nothing behind: `run` ends its program.
    fn drop(&mut self) {
        if !matches!(self.started.try_wait(), Ok(None)) {
            return;
        }
        if self.place == Place::Here {
            self.signal(15);
            while self.lines.recv_timeout(PATIENCE).is_ok() {}
        }
        // With `unshare` goes process 1, and all that it has.
        let _ = self.started.kill();
        let _ = self.started.wait();
    }
}
