//! The examples do what they say.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::sync::mpsc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[path = "../examples/server.rs"]
#[expect(dead_code, reason = "its `main` is not called here")]
mod server;
#[path = "../examples/worker.rs"]
#[expect(dead_code, reason = "its `main` is not called here")]
mod worker;

const PATIENCE: Duration = Duration::from_secs(60);

/// Puts a file into its place by one rename: nothing half written is ever there.
fn put(path: &std::path::Path, text: &str) {
    let new = path.with_file_name("..new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    format!("{} {body}", head.split(' ').nth(1).unwrap())
}

#[tokio::test]
async fn the_server_follows_its_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("app.yaml");
    fs::write(&file, "greeting: hello\n").unwrap();
    let live = server::follow(temporary.path().to_str().unwrap()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(server::serve(listener, live.clone()));
    assert_eq!(get(address, "/a").await, "200 hello, /a\n");
    let mut changes = live.changes();
    put(&file, "greeting: good evening\npath_bytes_max: 3\n");
    let changed = tokio::time::timeout(PATIENCE, changes.changed()).await;
    changed.expect("it is told").unwrap();
    assert_eq!(get(address, "/a").await, "200 good evening, /a\n");
    assert_eq!(get(address, "/long").await, "414 good evening, /long\n");
    serving.abort();
}

#[test]
fn the_worker_takes_a_new_pause_at_once() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("worker.yaml");
    fs::write(&file, "pause_millis: 3600000\n").unwrap();
    let live = hotmap_live::Live::<worker::Config>::builder()
        .file(&file)
        .start()
        .unwrap();
    let pause = live.subscribe(worker::pause_of);
    let (did, does) = mpsc::channel();
    let working =
        std::thread::spawn(move || worker::work(pause, |number, millis| did.send((number, millis)).unwrap()));
    assert_eq!(does.recv_timeout(PATIENCE).unwrap(), (1, 3_600_000));
    put(&file, "pause_millis: 7200000\n");
    assert_eq!(does.recv_timeout(PATIENCE).unwrap(), (2, 7_200_000));
    drop(live);
    assert_eq!(working.join().unwrap(), Err(hotmap_live::Closed));
}
