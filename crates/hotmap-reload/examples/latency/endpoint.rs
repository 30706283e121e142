//! How long a swap takes to reach programs that ask the local endpoint, and how long `probe` takes to say that it has.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use super::{PATIENCE, PAUSE, Reload, Volume, measure, report};

/// A swap becomes a server-sent event, read by a client that waits for it.
pub(super) fn events(binary: &str, swaps: usize) {
    let mut volume = Volume::new();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("s");
    let mut running = serve(binary, &volume, &socket);
    let mut stream = ask(&socket, "GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
            // Lengths of chunks and comments are lines as well.
            if line.starts_with("data:") && tell.send(Instant::now()).is_err() {
                return;
            }
            line.clear();
        }
    });
    measured("swap → server-sent event", &mut volume, swaps, &heard);
    running.memory();
}

/// A swap ends a request that waits for it; its answer has the content.
pub(super) fn long_poll(binary: &str, swaps: usize) {
    let mut volume = Volume::new();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("s");
    let _running = serve(binary, &volume, &socket);
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        let get = |wait: &str, etag: &str| {
            format!("GET /v1/config/app.yaml{wait} HTTP/1.1\r\nhost: localhost\r\n{etag}\r\n")
        };
        let mut stream = ask(&socket, &get("", ""));
        while let Some((status, etag)) = answer(&mut stream) {
            // What the wait has ended without is no news.
            if status == 200 && tell.send(Instant::now()).is_err() {
                return;
            }
            let next = get("?wait=30s", &format!("if-none-match: {etag}\r\n"));
            if stream.get_mut().write_all(next.as_bytes()).is_err() {
                return;
            }
        }
    });
    measured("swap → answer to a long poll", &mut volume, swaps, &heard);
}

/// From the start of `probe` until it has said that all is loaded; beside a process that does nothing.
pub(super) fn probes(binary: &str, runs: usize) {
    let volume = Volume::new();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (socket, state) = (directory.path().join("s"), directory.path().join("state"));
    let flags = format!("unix:{}", socket.display());
    let (own, state) = (std::process::id().to_string(), state.display().to_string());
    let told = [
        "--signal",
        "USR1",
        "--pid",
        &own,
        "--serve",
        &flags,
        "--state-file",
        &state,
    ];
    let _running = Reload::start(binary, &volume, &told);
    let volume_dir = volume.path.to_str().expect("plain letters");
    let probe = ["probe", "--volume-dir", volume_dir];
    for (way, program, arguments) in [
        ("floor: start of a process, its end", "true", vec![]),
        (
            "probe --endpoint, all of it",
            binary,
            [&probe[..], &["--endpoint", &flags]].concat(),
        ),
        (
            "probe --state-file, all of it",
            binary,
            [&probe[..], &["--state-file", &state]].concat(),
        ),
    ] {
        let mut times = Vec::new();
        for _ in 0..runs {
            let mut command = Command::new(program);
            command.args(&arguments).stdout(Stdio::null());
            let begun = Instant::now();
            let status = command.status().expect("it starts");
            times.push(begun.elapsed());
            assert!(status.success(), "{program} {arguments:?} says that it is loaded");
        }
        report(way, times);
    }
}

fn serve(binary: &str, volume: &Volume, socket: &Path) -> Reload {
    let address = format!("unix:{}", socket.display());
    Reload::start(binary, volume, &["--serve", &address])
}

fn ask(socket: &Path, request: &str) -> BufReader<UnixStream> {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it is asked");
    BufReader::new(stream)
}

/// Reads one answer to its end: its status and its ETag. `None`: the connection has ended.
fn answer(stream: &mut BufReader<UnixStream>) -> Option<(u16, String)> {
    let (mut status, mut etag, mut length) = (0, String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            None => status = line.split(' ').nth(1)?.parse().ok()?,
            Some((name, value)) if name.eq_ignore_ascii_case("etag") => value.clone_into(&mut etag),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; if status == 304 { 0 } else { length }];
    stream.read_exact(&mut body).ok()?;
    Some((status, etag))
}

fn measured(way: &str, volume: &mut Volume, swaps: usize, heard: &Receiver<Instant>) {
    // What is there at the start is told as well.
    heard.recv_timeout(PATIENCE).expect("the first content");
    while heard.recv_timeout(PAUSE * 10).is_ok() {}
    let times = measure(volume, swaps, |_| heard.recv_timeout(PATIENCE).expect("news"));
    report(way, times);
}
