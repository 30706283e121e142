//! `--serve`: the local endpoint as programs see it, and the clients in examples/endpoint-clients.

#[path = "endpoint/clients.rs"]
mod clients;
#[path = "endpoint/live.rs"]
mod live;
#[path = "endpoint/served.rs"]
mod served;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use served::{Served, Volume};

#[test]
fn a_program_asks_follows_and_says_what_it_has_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("app"), &[("app.yaml", "level: info\n")]);
    let volume_dir = volume.path.to_str().unwrap().to_owned();
    let refuses_bad = format!("! grep -q bad {volume_dir}/app.yaml");
    let socket = directory.path().join("hotmap.sock");
    let flags = [
        "--volume-dir",
        &volume_dir,
        "--check",
        &format!("sh -c '{refuses_bad}'"),
    ];
    let served = Served::start(&socket, &flags);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);

    // What is there, and the first word on it.
    let mut events = served.stream("/v1/events");
    let first = events.says("data:");
    assert!(first.contains(&volume.revision()), "{first}");
    let (status, body) = served.get("/v1/config/app.yaml");
    assert_eq!((status, body.as_str()), (200, "level: info\n"));
    served.acknowledge(&volume.revision());
    served.wait_for(
        "/v1/config",
        &[
            "\"phase\":\"loaded\"",
            &format!("\"loaded\":\"{}\"", volume.revision()),
        ],
    );
    assert_eq!(served.get("/healthz"), (200, "ok\n".to_owned()));

    // A change that does not pass the check is no event, and not healthy.
    volume.swap(&[("app.yaml", "level: bad\n")]);
    let (_, told) = served.wait_for_status("/healthz", 503);
    assert!(told.starts_with("the last change was held back: check"), "{told}");
    let (_, config) = served.get("/v1/config?values=false");
    assert!(config.contains("\"phase\":\"held-back\""), "{config}");

    volume.swap(&[("app.yaml", "level: debug\n"), ("more", "1")]);
    let change = events.says("data:");
    assert!(
        change.contains(&volume.revision()),
        "the bad one in between is not told: {change}"
    );
    assert!(
        change.contains("\"added\":[\"more\"]") && change.contains("\"modified\":[\"app.yaml\"]"),
        "{change}"
    );
    let (status, refused) = served.post("/v1/ack", "{\"revision\": \"..2020\", \"ok\": true}");
    assert!(status == 409 && refused.contains("..2020"), "{status} {refused}");
    served.acknowledge(&volume.revision());
    let (_, metrics) = served.get("/metrics");
    let loaded = format!(
        "hotmap_loaded_info{{volume=\"{volume_dir}\",revision=\"{}\"}} 1",
        volume.revision()
    );
    assert!(metrics.contains(&loaded), "{metrics}");

    // The same content under another name is no change: it is as loaded as it was.
    volume.swap(&[("app.yaml", "level: debug\n"), ("more", "1")]);
    let loaded = format!("\"loaded\":\"{}\"", volume.revision());
    served.wait_for("/v1/config?values=false", &["\"phase\":\"loaded\"", &loaded]);

    // A second one does not take the socket away, and an end leaves none.
    let refused = served.second(&flags);
    assert!(refused.contains("somebody listens on"), "{refused}");
    assert_eq!(served.get("/healthz").0, 200);
    served.terminate();
    assert!(!socket.exists());
}

#[test]
fn a_socket_that_a_killed_process_left_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let volume = Volume::new(directory.path().join("app"), &[("app.yaml", "1")]);
    let socket = directory.path().join("hotmap.sock");
    let flags = ["--volume-dir", volume.path.to_str().unwrap()];
    Served::start(&socket, &flags).kill();
    assert!(socket.exists(), "nobody was left to remove it");
    let served = Served::start(&socket, &flags);
    assert_eq!(served.get("/v1/config/app.yaml"), (200, "1".to_owned()));
}

#[test]
fn what_is_loaded_is_reported_to_whom_a_flag_names() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("app"), &[("app.yaml", "1")]);
    let volume_dir = volume.path.to_str().unwrap().to_owned();
    let token = directory.path().join("token");
    fs::write(&token, "of-audience-hotmap\n").unwrap();
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/reports", receiver.local_addr().unwrap());
    let token_file = token.to_str().unwrap();
    let flags = [
        "--volume-dir",
        &volume_dir,
        "--exec",
        "true",
        "--report-to",
        &url,
        "--report-token-file",
        token_file,
        "--pod-name",
        "web-0",
    ];
    let socket = directory.path().join("hotmap.sock");
    let _served = Served::start(&socket, &flags);
    let report = take_report(&receiver);
    for words in [
        "POST /v1/reports ",
        "Bearer of-audience-hotmap",
        "\"pod\":{\"name\":\"web-0\"}",
        &volume.revision(),
    ] {
        assert!(report.contains(words), "{words} is not in {report}");
    }
    volume.swap(&[("app.yaml", "2")]);
    let report = take_report(&receiver);
    assert!(
        report.contains(&volume.revision()) && report.contains("\"ok\":true"),
        "{report}"
    );
}

/// Takes one request, and says that it was taken.
fn take_report(receiver: &TcpListener) -> String {
    let (mut stream, _) = receiver.accept().expect("somebody reports");
    stream
        .set_read_timeout(Some(served::PATIENCE))
        .expect("it is not zero");
    let mut report = String::new();
    // The body is one JSON object, which ends with the list of volumes.
    while !report.ends_with("]}") {
        let mut part = [0; 4_096];
        let read = stream.read(&mut part).expect("a part comes");
        assert!(read > 0, "the request broke off: {report}");
        report.push_str(std::str::from_utf8(&part[..read]).expect("it is text"));
    }
    stream
        .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
        .expect("it listens");
    report
}
