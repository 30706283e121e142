//! A `hotmap-reload reload --serve`, and somebody who asks it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// No test waits longer for what must come, on however busy a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what raises no event for a test.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A directory that is swapped by one rename of `..data`.
pub(crate) struct Volume {
    pub(crate) path: PathBuf,
    swaps: u32,
}

impl Volume {
    pub(crate) fn new(path: PathBuf, files: &[(&str, &str)]) -> Self {
        fs::create_dir_all(&path).expect("it can be made");
        let mut volume = Self { path, swaps: 0 };
        volume.swap(files);
        volume
    }

    pub(crate) fn swap(&mut self, files: &[(&str, &str)]) {
        let before = fs::read_link(self.path.join("..data")).ok();
        self.swaps += 1;
        let name = self.revision();
        fs::create_dir(self.path.join(&name)).expect("the name is new");
        for (key, content) in files {
            fs::write(self.path.join(&name).join(key), content).expect("it can be written");
        }
        let staged = self.path.join("..data_tmp");
        symlink(&name, &staged).expect("nobody else makes it");
        fs::rename(staged, self.path.join("..data")).expect("it is a link");
        for (key, _) in files {
            let _ = symlink(Path::new("..data").join(key), self.path.join(key));
        }
        if let Some(before) = before {
            fs::remove_dir_all(self.path.join(before)).expect("it is there");
        }
    }

    pub(crate) fn revision(&self) -> String {
        format!("..2026_01_02_03_04_05.{}", self.swaps)
    }
}

/// A running `reload` with a Unix socket.
pub(crate) struct Served {
    child: Child,
    socket: PathBuf,
    /// The port of 127.0.0.1 that is served on too.
    pub(crate) port: u16,
    lines: Receiver<String>,
}

impl Served {
    #[track_caller]
    pub(crate) fn start(socket: &Path, flags: &[&str]) -> Self {
        let mut child = command(socket, flags)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stderr = child.stderr.take().expect("it is piped");
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stderr)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| tell.send(line))
        });
        let mut served = Self {
            child,
            socket: socket.to_owned(),
            port: 0,
            lines,
        };
        let line = served.says("the local endpoint listens address=127.0.0.1:");
        let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok());
        served.port = port.expect("a port ends the line");
        served
    }

    /// Waits for a line with these words.
    #[track_caller]
    fn says(&mut self, words: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut said = String::new();
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if line.contains(words) {
                return line;
            }
            said.push_str(&line);
            said.push('\n');
        }
        panic!("no line with {words:?} came; it said:\n{said}");
    }

    /// What another one says that is to serve at the same socket; it has to fail.
    #[track_caller]
    pub(crate) fn second(&self, flags: &[&str]) -> String {
        let output = command(&self.socket, flags).output().expect("it starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.ask("POST", path, body)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
            .expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text comes back");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head comes first");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status line comes first"), body.to_owned())
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
        stream
    }

    #[track_caller]
    pub(crate) fn acknowledge(&self, revision: &str) {
        let (status, said) = self.post(
            "/v1/ack",
            &format!("{{\"revision\": \"{revision}\", \"ok\": true}}"),
        );
        assert_eq!(status, 200, "{said}");
    }

    /// Asks until the answer has all of these words.
    #[track_caller]
    pub(crate) fn wait_for(&self, path: &str, words: &[&str]) -> String {
        self.until(path, |_, body| words.iter().all(|word| body.contains(word)))
            .1
    }

    /// Asks until the answer has this status.
    #[track_caller]
    pub(crate) fn wait_for_status(&self, path: &str, expected: u16) -> (u16, String) {
        self.until(path, |status, _| status == expected)
    }

    #[track_caller]
    fn until(&self, path: &str, is_it: impl Fn(u16, &str) -> bool) -> (u16, String) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (status, body) = self.get(path);
            if is_it(status, &body) {
                return (status, body);
            }
            assert!(Instant::now() < deadline, "{path} says {status} {body}");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// A stream of events.
    pub(crate) fn stream(&self, path: &str) -> Events {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it listens");
        Events(BufReader::new(stream))
    }

    #[track_caller]
    pub(crate) fn terminate(mut self) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .expect("kill is there")
                .success()
        );
        assert!(self.child.wait().expect("it is our child").success());
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Events as they come.
pub(crate) struct Events(BufReader<UnixStream>);

impl Events {
    /// The next line that starts so.
    #[track_caller]
    pub(crate) fn says(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(
                self.0.read_line(&mut line).expect("a line comes") > 0,
                "the stream has ended"
            );
            if line.starts_with(start) {
                return line;
            }
        }
    }
}

fn command(socket: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotmap-reload"));
    let socket = format!("unix:{}", socket.display());
    command.args([
        "reload",
        "--serve",
        &socket,
        "--serve",
        "127.0.0.1:0",
        "--agent-socket",
        "/nonexistent",
    ]);
    command.args(flags).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}
