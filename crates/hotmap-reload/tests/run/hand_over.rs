//! Sockets that outlive the program: nobody is refused while it restarts.

use std::io::Read;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;

use crate::supervised::{Place, Supervised, places};
use crate::volume::Volume;

/// Serves its variable on the first socket that it is handed. At SIGTERM it takes what is in the queue, and ends.
const SERVER: &str = r#"
import os, signal, socket, sys
assert os.environ["LISTEN_PID"] == str(os.getpid())
# In one write: lines of two programs do not mix.
say = lambda *words: os.write(1, (" ".join(map(str, words)) + "\n").encode())
count, names = int(os.environ["LISTEN_FDS"]), os.environ["LISTEN_FDNAMES"]
listener = socket.socket(fileno=3)
ends = []
signal.signal(signal.SIGTERM, lambda *_: ends.append(1))
say("up", count, names, os.environ.get("ANSWER", ""))
if os.environ.get("READY") == "no":
    sys.exit(4)
if "NOTIFY_SOCKET" in os.environ:
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.sendto(b"READY=1", "\0" + os.environ["NOTIFY_SOCKET"][1:])
listener.settimeout(0.02)
while not ends:
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        continue
    connection.settimeout(None)
    connection.sendall(os.environ.get("ANSWER", "").encode())
    connection.close()
say("ended")
"#;

/// The interpreter itself: what is found first may be a slow script that looks for it.
fn python() -> &'static str {
    static PYTHON: LazyLock<String> = LazyLock::new(|| {
        let asked = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output();
        String::from_utf8(asked.expect("python3 is here").stdout)
            .expect("a path")
            .trim()
            .to_owned()
    });
    &PYTHON
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("it is bound").port()
}

#[test]
fn sockets_are_handed_over_with_their_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("app.sock");
    let (unix, tcp) = (
        format!("unix:{}", path.display()),
        format!("web=127.0.0.1:{}", free_port()),
    );
    for place in places() {
        let run = Supervised::start(
            place,
            &["--listen", &unix, "--listen", &tcp],
            &[python(), "-S", "-c", SERVER],
        );
        assert_eq!(run.line(), "up 2 unknown:web ", "{place:?}");
        let mut answer = String::new();
        UnixStream::connect(&path)
            .expect("it listens")
            .read_to_string(&mut answer)
            .expect("answered");
        run.signal(15);
        assert_eq!(run.code(), 0, "{place:?}");
        assert!(!path.exists(), "it is removed with run");
    }
}

#[test]
fn no_connection_is_refused_in_twenty_restarts() {
    for flags in [&[][..], &["--overlap"][..]] {
        let volume = Volume::new(&[("ANSWER", "0")]);
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let flags = [&["--listen", &listen, "--env-from", volume.as_str()], flags].concat();
        let run = Supervised::start(Place::Here, &flags, &[python(), "-S", "-c", SERVER]);
        assert_eq!(run.line(), "up 1 unknown 0");
        let is_over = Arc::new(AtomicBool::new(false));
        let client = thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                let mut answers = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("never refused");
                    let mut answer = String::new();
                    connection.read_to_string(&mut answer).expect("answered");
                    assert!(!answer.is_empty());
                    answers += 1;
                }
                answers
            }
        });
        for restart in 1..=20 {
            volume.write(&[("ANSWER", &restart.to_string())]);
            run.until(&format!("up 1 unknown {restart}"));
        }
        is_over.store(true, Ordering::Relaxed);
        let answers: u32 = client.join().expect("no connection failed");
        assert!(answers > 20, "{answers} connections with {flags:?}");
        run.signal(15);
        run.end();
    }
}

#[test]
fn with_overlap_a_new_program_that_fails_leaves_the_old_one_and_the_next_is_tried() {
    let volume = Volume::new(&[("ANSWER", "old")]);
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let flags = [
        "--listen",
        &listen,
        "--env-from",
        volume.as_str(),
        "--overlap",
        "--ready-within",
        "10m",
    ];
    let run = Supervised::start(Place::Here, &flags, &[python(), "-S", "-c", SERVER]);
    assert_eq!(run.line(), "up 1 unknown old");
    volume.write(&[("ANSWER", "new"), ("READY", "no")]);
    assert_eq!(run.line(), "up 1 unknown new");
    assert_eq!(answer(port), "old");
    volume.write(&[("ANSWER", "newest")]);
    assert_eq!(run.line(), "up 1 unknown newest");
    assert_eq!(run.line(), "ended", "the old one");
    assert_eq!(answer(port), "newest");
}

/// What the program answers to one connection.
#[track_caller]
fn answer(port: u16) -> String {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("answered");
    answer
}

#[test]
fn a_socket_of_the_one_that_has_started_run_is_handed_on() {
    // What systemd does: descriptor 3, and the variables. `exec` keeps the pid.
    let activate = r#"
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="activated", ANSWER="yes")
os.execvp(sys.argv[1], sys.argv[1:])
"#;
    let mut call = Command::new("python3");
    call.args(["-c", activate])
        .args(crate::supervised::words(Place::Here))
        .args(["--", python(), "-S", "-c", SERVER]);
    let run = Supervised::call(Place::Here, call);
    let port: u16 = run.line().parse().expect("a port");
    assert_eq!(run.line(), "up 1 activated yes");
    assert_eq!(answer(port), "yes");
    run.signal(15);
    assert_eq!(run.code(), 0);
}
