//! Drives the real binary and real clients: starts `hotmap up`, runs kubectl and Python against it, speaks plain HTTP.
//!
//! Every test has its own server, data directory and home directory, so tests run in parallel. Nothing here waits for time to
//! pass: a test waits for a line, an answer or an exit, and fails when that takes longer than [`PATIENCE`].

#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary uses the part of the harness that it needs"
)]

mod http;
mod kubectl;
mod python;
mod server;
mod tools;

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

pub(crate) use http::{Http, client_config, is_private};
pub(crate) use kubectl::{Kubectl, Release};
pub(crate) use python::Python;
pub(crate) use server::{Server, ServerOptions, hotmap};
pub(crate) use tools::{find as tool, skipped};

/// What must happen happens within this time, also on a busy machine; a test that hits it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// What a program printed and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Exit code; a signal is 128 plus its number, as in a shell.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    what: String,
}

impl Finished {
    /// Standard output of a program that succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}{}", self.what, self.stdout, self.stderr);
        self.stdout
    }

    /// Standard error of a program that failed with code 1.
    #[track_caller]
    pub(crate) fn refused(self) -> String {
        self.ended(1)
    }

    /// Standard error of a program that ended with this code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}\n{}{}", self.what, self.stdout, self.stderr);
        self.stderr
    }
}

/// Runs a program to its end, with `stdin` if it reads any.
#[track_caller]
pub(crate) fn finish(command: &mut Command, stdin: Option<&[u8]>) -> Finished {
    let what = format!("{command:?}");
    let mut child = command
        .stdin(if stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let writer = child
        .stdin
        .take()
        .zip(stdin.map(<[u8]>::to_vec))
        .map(|(mut pipe, bytes)| {
            // A program that does not read to the end closes its pipe: its exit code says what became of it.
            thread::spawn(move || drop(pipe.write_all(&bytes)))
        });
    let stdout = read_all(child.stdout.take().expect("piped"));
    let stderr = read_all(child.stderr.take().expect("piped"));
    let status = wait(&mut child, &what);
    drop(writer.map(thread::JoinHandle::join));
    let text = |reader: thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().expect("the reader does not panic")).into_owned()
    };
    Finished {
        code: exit_code(status),
        stdout: text(stdout),
        stderr: text(stderr),
        what,
    }
}

/// Waits for a child, and ends it when it takes too long.
#[track_caller]
pub(crate) fn wait(child: &mut Child, what: &str) -> ExitStatus {
    // The standard library has no wait with a deadline; the kernel has one for a process file descriptor.
    let pid = rustix::process::Pid::from_child(child);
    if let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        let mut ready = [rustix::event::PollFd::new(&process, rustix::event::PollFlags::IN)];
        let deadline = rustix::event::Timespec {
            tv_sec: PATIENCE.as_secs().cast_signed(),
            tv_nsec: 0,
        };
        if rustix::event::poll(&mut ready, Some(&deadline)) == Ok(0) {
            drop(child.kill());
            panic!("{what}: still running after {PATIENCE:?}");
        }
    }
    child.wait().expect("a child of ours")
}

fn read_all(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        bytes
    })
}

/// The code a shell would show.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// A program that goes on, read line by line; ends with this value.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    what: String,
}

impl Running {
    /// Starts it. Standard error goes where the command says.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let what = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let pipe = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in pipe.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            lines,
            seen: Vec::new(),
            what,
        }
    }

    /// The next line that contains `text`.
    #[track_caller]
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        self.try_line_with(text)
            .unwrap_or_else(|| panic!("{}: no line with {text:?} in {:#?}", self.what, self.seen))
    }

    /// As [`Running::line_with`]; `None` when the program ended before it.
    #[track_caller]
    pub(crate) fn try_line_with(&mut self, text: &str) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return Some(line);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    panic!(
                        "{}: no line with {text:?} after {PATIENCE:?}: {:#?}",
                        self.what, self.seen
                    )
                }
            }
        }
    }

    /// All lines until its end, and the exit code.
    #[track_caller]
    pub(crate) fn rest(mut self) -> (Vec<String>, i32) {
        let lines = self.lines.iter().collect();
        let status = wait(&mut self.child, &self.what);
        (lines, exit_code(status))
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop as a service manager does.
    pub(crate) fn terminate(&self) {
        signal(&self.child, rustix::process::Signal::TERM);
    }

    /// Ends it without a chance to do anything.
    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> i32 {
        exit_code(wait(&mut self.child, &self.what))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    // Not waited for yet, so that the id is still its own.
    let process = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process(process, signal);
}
