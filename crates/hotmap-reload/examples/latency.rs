//! Measures how long a swap of a projected volume takes to become a signal, a request, or an answer of the local endpoint, and
//! how long `probe` takes, beside what the bare system calls cost on the same machine.
//!
//! ```text
//! cargo build --release -p hotmap-reload-cli --bins --examples
//! target/release/examples/latency target/release/hotmap-reload [SWAPS]
//! ```
//!
//! Each way is measured from just before the `rename` of `..data` until this process has the signal, or has accepted the
//! connection and read the request. The floor is a thread that waits in `inotify` and sends the signal itself.

#[path = "latency/endpoint.rs"]
mod endpoint;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::inotify;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// What is told is told by then, or the measurement is broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two swaps: no swap meets the one before it, and the watcher is asleep.
const PAUSE: Duration = Duration::from_millis(10);
/// Swaps that warm caches up and are not counted.
const WARM_UP: usize = 20;
/// Each probe is a process.
const PROBES_MAX: usize = 200;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next() else {
        eprintln!("usage: latency PATH-OF-hotmap-reload [SWAPS]");
        std::process::exit(2);
    };
    let swaps = arguments
        .next()
        .map_or(500, |number| number.parse().expect("SWAPS is a number"));
    let signals = signals();
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>9}   µs, {swaps} swaps",
        "way", "p50", "p90", "p99", "max"
    );
    floor(&signals, swaps);
    let pid = std::process::id().to_string();
    reload_signal(
        &binary,
        "swap → signal (--pid)",
        &["--pid", &pid],
        &signals,
        swaps,
    );
    let name = fs::read_to_string("/proc/self/comm").expect("it has a name");
    reload_signal(
        &binary,
        "swap → signal (--process)",
        &["--process", name.trim()],
        &signals,
        swaps,
    );
    webhook(&binary, swaps);
    endpoint::events(&binary, swaps);
    endpoint::long_poll(&binary, swaps);
    endpoint::probes(&binary, swaps.min(PROBES_MAX));
}

/// When signals arrive.
fn signals() -> Receiver<Instant> {
    let (tell, heard) = channel();
    let (is_ready, ready) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async move {
            let mut signals = signal(SignalKind::user_defined1()).expect("a handler");
            is_ready.send(()).expect("it is waited for");
            while signals.recv().await.is_some() && tell.send(Instant::now()).is_ok() {}
        });
    });
    ready.recv().expect("it gets ready");
    heard
}

/// inotify, and a signal to ourselves: nobody can be faster.
fn floor(signals: &Receiver<Instant>, swaps: usize) {
    let mut volume = Volume::new();
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).expect("an inotify instance");
    inotify::add_watch(&watch, &volume.path, inotify::WatchFlags::MOVED_TO).expect("a watch");
    std::thread::spawn(move || {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4_096];
        let mut events = inotify::Reader::new(&watch, &mut buffer);
        let own = Pid::from_raw(std::process::id().try_into().expect("a pid")).expect("it is not 0");
        while let Ok(event) = events.next() {
            if event.events().contains(inotify::ReadFlags::IGNORED) {
                return; // the directory is gone
            }
            kill_process(own, Signal::USR1).expect("it is ourselves");
        }
    });
    report(
        "floor: inotify → kill",
        measure(&mut volume, swaps, |_| {
            signals.recv_timeout(PATIENCE).expect("a signal")
        }),
    );
}

fn reload_signal(binary: &str, way: &str, whom: &[&str], signals: &Receiver<Instant>, swaps: usize) {
    // What came late for the measurement before.
    while signals.recv_timeout(PAUSE * 10).is_ok() {}
    let mut volume = Volume::new();
    let mut running = Reload::start(binary, &volume, &[&["--signal", "USR1"], whom].concat());
    let times = measure(&mut volume, swaps, |_| {
        signals.recv_timeout(PATIENCE).expect("a signal")
    });
    report(way, times);
    running.memory();
}

fn webhook(binary: &str, swaps: usize) {
    let mut volume = Volume::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback address");
    let url = format!("http://{}/-/reload", listener.local_addr().expect("it is bound"));
    let mut running = Reload::start(binary, &volume, &["--webhook-url", &url]);
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = [0; 4_096];
            let length = stream.read(&mut request).expect("a request");
            let now = Instant::now();
            assert!(request[..length].starts_with(b"POST "), "a request in one piece");
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .expect("an answer");
            if tell.send(now).is_err() {
                return;
            }
        }
    });
    let times = measure(&mut volume, swaps, |_| {
        heard.recv_timeout(PATIENCE).expect("a request")
    });
    report("swap → webhook", times);
    running.memory();
}

fn measure(volume: &mut Volume, swaps: usize, arrived: impl Fn(usize) -> Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    for swap in 0..swaps + WARM_UP {
        let swapped = volume.swap();
        let time = arrived(swap) - swapped;
        if swap >= WARM_UP {
            times.push(time);
        }
        std::thread::sleep(PAUSE);
    }
    times
}

fn report(way: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| {
        let index = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1;
        times[index].as_secs_f64() * 1e6
    };
    println!(
        "{way:<34} {:>9.0} {:>9.0} {:>9.0} {:>9.0}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}

/// `hotmap-reload` over a volume, ended when dropped.
struct Reload(Child);

impl Reload {
    fn start(binary: &str, volume: &Volume, more: &[&str]) -> Self {
        let mut command = Command::new(binary);
        command
            .arg("reload")
            .arg("--volume-dir")
            .arg(&volume.path)
            .args(more);
        let mut child = command
            .env("NO_COLOR", "1")
            .stderr(Stdio::piped())
            .spawn()
            .expect("hotmap-reload starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let is_found = |line: std::io::Result<String>| line.is_ok_and(|line| line.contains("content found"));
        assert!(lines.by_ref().any(is_found), "it begins to follow");
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }

    /// What it takes after all swaps.
    fn memory(&mut self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let of = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
                .unwrap_or_default()
                .to_owned()
        };
        println!(
            "{:<34} resident {}, of it anonymous {}",
            "",
            of("VmRSS:"),
            of("RssAnon:")
        );
    }
}

impl Drop for Reload {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A projected volume with one file of 1 KiB.
struct Volume {
    _directory: tempfile::TempDir,
    path: PathBuf,
    swaps: u32,
}

impl Volume {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut volume = Self {
            path: directory.path().to_owned(),
            _directory: directory,
            swaps: 0,
        };
        volume.swap();
        symlink(Path::new("..data").join("app.yaml"), volume.path.join("app.yaml")).expect("a new link");
        volume
    }

    /// As a kubelet does it. Returns when the one rename began.
    fn swap(&mut self) -> Instant {
        self.swaps += 1;
        let before = fs::read_link(self.path.join("..data")).ok();
        let name = format!("..2026_01_02_03_04_05.{:010}", self.swaps);
        fs::create_dir(self.path.join(&name)).expect("a new name");
        fs::write(
            self.path.join(&name).join("app.yaml"),
            format!("{:0>1024}", self.swaps),
        )
        .expect("a file");
        let staged = self.path.join("..data_tmp");
        symlink(&name, &staged).expect("a new link");
        let begun = Instant::now();
        fs::rename(staged, self.path.join("..data")).expect("a rename");
        if let Some(before) = before {
            fs::remove_dir_all(self.path.join(before)).expect("it is there");
        }
        begun
    }
}
