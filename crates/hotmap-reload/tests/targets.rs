//! Webhooks, units and containers, from the change of a volume to what arrives.

#[allow(dead_code, reason = "other tests need the rest of it")]
#[path = "support/program.rs"]
mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};

use program::{PATIENCE, Program, Volume, hotmap_reload};

/// What comes in over one connection after the other, each answered with the next of these texts.
struct Requests(Receiver<String>);

impl Requests {
    fn over<S: Read + Write>(
        connections: impl Iterator<Item = S> + Send + 'static,
        answers: &[&str],
    ) -> Self {
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        let (tell, requests) = channel();
        std::thread::spawn(move || {
            for (mut stream, answer) in connections.zip(answers) {
                let request = read_request(&mut stream);
                let _ = stream.write_all(answer.as_bytes());
                drop(stream);
                if tell.send(request).is_err() {
                    return;
                }
            }
        });
        Self(requests)
    }

    /// The next one, head and body.
    #[track_caller]
    fn next(&self) -> String {
        self.0.recv_timeout(PATIENCE).expect("a request comes")
    }
}

fn read_request(stream: &mut impl Read) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).is_ok_and(|count| count > 0) {}
    let lower = request.to_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap_or(0))];
    let _ = reader.read_exact(&mut body);
    request + &String::from_utf8_lossy(&body)
}

fn web(answers: &[&str]) -> (u16, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback address is there");
    let port = listener.local_addr().expect("it is bound").port();
    let connections = std::iter::from_fn(move || listener.accept().ok()).map(|(stream, _)| stream);
    (port, Requests::over(connections, answers))
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[test]
fn a_webhook_is_called_until_it_has_taken_the_change() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let bad = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 9\r\n\r\nbad rules";
    let (port, requests) = web(&[bad, "", OK]);
    let url = format!("http://127.0.0.1:{port}/-/reload");
    let body = r#"{"at": "$(revision)", "keys": $(keys)}"#;
    let mut reload = Program::hotmap_reload(
        &[
            &["reload", "--volume-dir", volume.name(), "--webhook-url", &url][..],
            &["--webhook-body", body, "--retry-delay", "10ms"],
        ]
        .concat(),
    );
    reload.says(&["content found"]);
    volume.swap(&[("a", "2"), ("b", "1")]);
    reload.says(&["/-/reload", "500 Internal Server Error: bad rules"]);
    reload.says(&["closed the connection before it answered"]);
    reload.says(&["change loaded"]);
    for _ in 0..3 {
        let request = requests.next();
        assert!(request.starts_with("POST /-/reload HTTP/1.1\r\n"), "{request}");
        let body = r#"{"at": "..2026_01_02_03_04_05.0000000002", "keys": ["a","b"]}"#;
        assert!(request.ends_with(body), "{request}");
    }
}

#[test]
fn a_password_is_sent_and_never_said() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let auth = directory.path().join("auth");
    fs::write(&auth, "user:hunter2\n").unwrap();
    let (port, requests) = web(&["HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", OK]);
    let url = format!("http://127.0.0.1:{port}/?token=hunter2");
    let mut reload = Program::hotmap_reload(
        &[
            &[
                "--log",
                "debug",
                "reload",
                "--volume-dir",
                volume.name(),
                "--webhook-url",
                &url,
            ][..],
            &[
                "--webhook-basic-auth-file",
                auth.to_str().unwrap(),
                "--retry-delay",
                "10ms",
            ],
        ]
        .concat(),
    );
    let mut said = reload.says(&["content found"]);
    volume.swap(&[("a", "hunter2")]);
    said += &reload.says(&["401 Unauthorized"]);
    said += &reload.says(&["change loaded"]);
    assert!(
        requests
            .next()
            .contains("authorization: Basic dXNlcjpodW50ZXIy\r\n")
    );
    reload.signal("TERM");
    let (status, rest) = reload.ends();
    assert!(status.success(), "{rest}");
    for words in [said, rest] {
        assert!(
            !words.contains("hunter2") && !words.contains("dXNlcjpodW50ZXIy"),
            "{words}"
        );
    }
}

#[test]
fn a_container_is_told_once_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let socket = directory.path().join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let connections = std::iter::from_fn(move || listener.accept().ok()).map(|(stream, _)| stream);
    let stopped = "HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n";
    let requests = Requests::over(connections, &[stopped, "HTTP/1.1 204 No Content\r\n\r\n"]);
    let mut reload = Program::hotmap_reload(
        &[
            &[
                "reload",
                "--volume-dir",
                volume.name(),
                "--container",
                "web",
                "--retry-delay",
                "10ms",
            ][..],
            &["--container-socket", socket.to_str().unwrap()],
        ]
        .concat(),
    );
    reload.says(&["content found"]);
    volume.swap(&[("a", "2")]);
    reload.says(&["signal HUP to container web failed: container web does not run"]);
    reload.says(&["change loaded"]);
    for _ in 0..2 {
        let request = requests.next();
        assert!(
            request.starts_with("POST /containers/web/kill?signal=SIGHUP HTTP/1.1\r\n"),
            "{request}"
        );
    }
}

#[test]
fn a_unit_without_a_bus_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let address = format!("unix:path={}/bus", directory.path().display());
    let mut command = hotmap_reload(&["reload", "--volume-dir", volume.name(), "--unit", "app"]);
    let mut reload = Program::start(command.env("DBUS_SYSTEM_BUS_ADDRESS", address));
    reload.says(&["content found"]);
    volume.swap(&[("a", "2")]);
    reload.says(&["reload-or-restart of app.service failed: there is no way to the system bus"]);
}
