//! A program under test, what it says, and a volume as a kubelet writes it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// No test waits longer for what must come, on however busy a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running program, whose lines can be waited for. It is ended when dropped.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Program {
    /// `hotmap-reload` with these arguments, and without what the environment would say.
    pub(crate) fn hotmap_reload(arguments: &[&str]) -> Self {
        Self::start(&mut hotmap_reload(arguments))
    }

    /// Starts a program and listens to both of its streams.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let (tell, lines) = channel();
        let stdout = child.stdout.take().expect("it is piped");
        let stderr = child.stderr.take().expect("it is piped");
        let tell_errors = tell.clone();
        std::thread::spawn(move || {
            BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| tell.send(line))
        });
        std::thread::spawn(move || {
            BufReader::new(stderr)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| tell_errors.send(line))
        });
        Self {
            child,
            lines,
            said: Vec::new(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line with all of these words, and returns it. Lines before it are passed over.
    #[track_caller]
    pub(crate) fn says(&mut self, words: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Ok(line) = self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            else {
                panic!("no line with {words:?} came; it said:\n{}", self.said.join("\n"));
            };
            self.said.push(line.clone());
            if words.iter().all(|word| line.contains(word)) {
                return line;
            }
        }
    }

    /// Waits for the end, and returns how it ended and all that was said since the last look.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        let mut rest = Vec::new();
        // The streams end with the program.
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            rest.push(line);
        }
        assert!(
            Instant::now() < deadline,
            "it does not end; it said:\n{}",
            rest.join("\n")
        );
        (self.child.wait().expect("it is our child"), rest.join("\n"))
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([format!("-{name}"), self.pid().to_string()])
            .status();
        assert!(status.expect("kill is there").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command for `hotmap-reload` with these arguments.
pub(crate) fn hotmap_reload(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotmap-reload"));
    command.args(arguments).env("NO_COLOR", "1");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HOTMAP_")) {
        command.env_remove(name);
    }
    command
}

/// A directory that is swapped as the kubelet's writer does it.
pub(crate) struct Volume {
    pub(crate) path: PathBuf,
    swaps: u32,
}

impl Volume {
    /// A volume at this path, with its first content.
    pub(crate) fn new(path: PathBuf, files: &[(&str, &str)]) -> Self {
        fs::create_dir_all(&path).expect("it can be made");
        let mut volume = Self { path, swaps: 0 };
        volume.swap(files);
        volume
    }

    /// Replaces the whole content by one rename.
    pub(crate) fn swap(&mut self, files: &[(&str, &str)]) {
        self.swaps += 1;
        let before = fs::read_link(self.path.join("..data")).ok();
        let name = format!("..2026_01_02_03_04_05.{:010}", self.swaps);
        fs::create_dir(self.path.join(&name)).expect("the name is new");
        for (key, content) in files {
            fs::write(self.path.join(&name).join(key), content).expect("it can be written");
        }
        let staged = self.path.join("..data_tmp");
        symlink(&name, &staged).expect("it was renamed away");
        fs::rename(staged, self.path.join("..data")).expect("a rename");
        for (key, _) in files {
            let _ = symlink(Path::new("..data").join(key), self.path.join(key));
        }
        if let Some(before) = before {
            let _ = fs::remove_dir_all(self.path.join(before));
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.to_str().expect("test paths are UTF-8")
    }
}

/// Waits until something is so that no event tells of.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} does not come to be");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Where a program of Debian's is. `None`: it is not here, which is said, and which is an error where all tools are
/// required.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut found = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .filter(|file| file.is_file());
    if let Some(found) = found.next() {
        return Some(found);
    }
    assert!(
        std::env::var_os("HOTMAP_REQUIRE_TOOLS").is_none(),
        "{name} is required and not here"
    );
    eprintln!("skipped: {name} is not here");
    None
}

/// A port of the loopback address that nobody uses now, nor will before the test does: it is below those that the kernel
/// gives to clients, and each test looks in a place of its own.
pub(crate) fn free_port() -> u16 {
    static ASKED: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 1_000).expect("it is below 1000") * 10;
    loop {
        let port = 20_000 + (own + ASKED.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// What a server answers to GET, head and all; empty if it cannot be reached.
pub(crate) fn get(port: u16, path: &str) -> String {
    use std::io::{Read, Write};
    let mut answer = String::new();
    if let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        );
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

/// A file of an example, with its fixed words replaced by what is free and where it lies here.
pub(crate) fn example(file: &str, words: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(file);
    let mut text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for (word, here) in words {
        assert!(text.contains(word), "{file} has no {word}");
        text = text.replace(word, here);
    }
    text
}
