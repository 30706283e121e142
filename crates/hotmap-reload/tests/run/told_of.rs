//! What others hear of the program: a service manager over NOTIFY_SOCKET, a scraper over /metrics.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use crate::program::{PATIENCE, free_port, get, wait_until};
use crate::supervised::{Place, Supervised, words};

/// Says that it is ready as `sd_notify` does, with a status and with what is for nobody else. At SIGTERM it ends.
const SERVICE: &str = r#"
import os, signal, socket
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
address = os.environ["NOTIFY_SOCKET"]
signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
print("WATCHDOG_PID" in os.environ, os.environ["WATCHDOG_USEC"], flush=True)
notify.sendto(b"STATUS=warm\nREADY=1\nMAINPID=1\nSTOPPING=1", "\0" + address[1:])
notify.sendto(b"WATCHDOG=1", "\0" + address[1:])
signal.pause()
"#;

#[test]
fn a_service_manager_hears_of_the_program_through_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time");
    let hears = || {
        let mut message = [0; 256];
        let length = manager.recv(&mut message).expect("a message comes");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    // The harness takes the variable away from what it starts.
    let mut call = Command::new("env");
    call.arg(format!("NOTIFY_SOCKET={}", path.display()))
        .args(["WATCHDOG_USEC=1000000", "WATCHDOG_PID=1"])
        .args(words(Place::Here))
        .args(["--", "python3", "-S", "-c", SERVICE]);
    let run = Supervised::call(Place::Here, call);
    assert_eq!(run.line(), "False 1000000", "the pid is not the program's");
    assert_eq!(hears(), "STATUS=warm");
    assert_eq!(hears(), "READY=1");
    assert_eq!(hears(), "WATCHDOG=1");
    run.signal(15);
    assert_eq!(hears(), "STOPPING=1");
    assert_eq!(run.code(), 5);
}

#[test]
fn a_scraper_sees_starts_crashes_back_off_and_orphans() {
    let address = format!("127.0.0.1:{}", free_port());
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
    let port = port.expect("a port");
    let flags = [
        "--metrics-address",
        &address,
        "--restart",
        "on-failure",
        "--restart-backoff",
        "1h",
        "--restart-backoff-max",
        "1h",
    ];
    // What a shell leaves behind when it ends is an orphan.
    let run = Supervised::sh(Place::Here, &flags, "(true &); exit 3");
    let lines = [
        "hotmap_run_starts_total 2",
        "hotmap_run_start_failures_total 0",
        "hotmap_run_processes 0",
        "hotmap_run_exits_total{kind=\"failure\"} 2",
        "hotmap_run_last_exit_code 3",
        "hotmap_run_crashes_total 2",
        "hotmap_run_backoff_seconds 3600.0",
        "hotmap_run_orphans_reaped_total 2",
        "hotmap_run_accept_stalls_total 0",
    ];
    wait_until("all that is counted", || {
        let answer = get(port, "/metrics");
        lines
            .iter()
            .all(|line| answer.lines().any(|shown| shown == *line))
    });
    let healthy = get(port, "/healthz");
    assert!(healthy.starts_with("HTTP/1.1 200"), "{healthy}");
    run.signal(15);
    assert_eq!(run.code(), 143, "there is no program to ask");
}
