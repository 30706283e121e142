//! Starts and stops: what a wrong call, a taken port and a broken directory say.

use std::{fs, path::Path, process::Command};

use crate::{
    harness::{Http, Server, ServerOptions, finish, hotmap},
    has,
};

fn up(data_dir: &Path, listen: &str) -> Command {
    let mut command = hotmap();
    command
        .args(["up", "--no-node", "--listen", listen, "--data-dir"])
        .arg(data_dir);
    command
}

fn temporary() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("hotmap-e2e-")
        .tempdir()
        .expect("a temporary directory")
}

#[test]
fn a_wrong_call_ends_with_2_and_a_sentence() {
    let directory = temporary();
    for (flags, sentence) in [
        ("--no-such-flag", "unexpected argument '--no-such-flag'"),
        (
            "--no-node --listen nonsense",
            "--listen \"nonsense\" is not an address like 127.0.0.1:6443",
        ),
        (
            "--no-node --listen 127.0.0.1:99999",
            "--listen \"127.0.0.1:99999\" is not an address",
        ),
        (
            "--no-node -f /no/such/file",
            "--filename /no/such/file: no such file or directory",
        ),
        (
            "--change-detection poll",
            "unknown change detection \"poll\": there are watch, cache and get",
        ),
        ("--sync-frequency 0s", "not between 1s and 24h"),
        ("--temp", "required arguments were not provided"),
        ("--temp --data-dir /x -- true", "cannot be used with"),
        ("--no-node --log =", "is not a filter"),
    ] {
        let mut command = hotmap();
        command
            .arg("up")
            .args(flags.split(' '))
            .current_dir(directory.path());
        has(&finish(&mut command, None).ended(2), &[sentence]);
    }
    has(&finish(&mut hotmap(), None).ended(2), &["Usage: hotmap"]);
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
}

#[test]
fn without_root_up_names_no_node() {
    let mut command = match crate::temp::unprivileged() {
        Some(command) => command,
        None if rustix::process::geteuid().is_root() => return,
        None => hotmap(),
    };
    has(
        &finish(command.args(["up", "--data-dir", "/tmp/never-made"]), None).ended(2),
        &["--no-node", "root"],
    );
    assert!(!Path::new("/tmp/never-made").exists());
}

#[test]
fn a_taken_port_is_named() {
    let server = Server::start();
    let other = temporary();
    let refused = finish(&mut up(other.path(), server.address()), None).refused();
    has(
        &refused,
        &[
            &format!("cannot listen on {}", server.address()),
            "in use",
            "--listen",
        ],
    );
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let server = Server::start();
    let refused = finish(&mut up(&server.data_dir(), "127.0.0.1:0"), None).refused();
    has(
        &refused,
        &[
            "another hotmap",
            &format!("process {}", server.pid()),
            "--data-dir",
        ],
    );
    assert_eq!(Http::admin(&server).get("/readyz").text(), "ok");
}

#[test]
fn a_damaged_store_is_named_and_left_alone() {
    let mut server = Server::start();
    Http::admin(&server).post(
        "/api/v1/namespaces",
        r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kept"}}"#,
    );
    server.stop();
    let file = server.data_dir().join("store.redb");
    let good = fs::read(&file).expect("the store");
    for (what, damaged) in [
        ("text", b"this is no store".to_vec()),
        ("half", good[..good.len() / 2].to_vec()),
        (
            "nothing of its head",
            [vec![0xff; 4096], good[4096..].to_vec()].concat(),
        ),
    ] {
        fs::write(&file, &damaged).expect("ours");
        let refused = finish(&mut up(&server.data_dir(), "127.0.0.1:0"), None);
        assert_eq!(refused.code, 1, "{what}: {refused:?}");
        has(&refused.stderr, &["store.redb"]);
        assert!(!refused.stderr.contains("panicked"), "{what}: {}", refused.stderr);
        assert_eq!(
            fs::read(&file).expect("the store").len(),
            damaged.len(),
            "{what}: not touched"
        );
    }
    fs::write(&file, good).expect("ours");
    server.restart();
    assert_eq!(Http::admin(&server).get("/api/v1/namespaces/kept").code, 200);
}

#[test]
fn a_directory_that_is_not_ours_is_named() {
    let directory = temporary();
    fs::write(directory.path().join("file"), "").expect("ours");
    let refused = finish(&mut up(&directory.path().join("file/data"), "127.0.0.1:0"), None).refused();
    has(
        &refused,
        &["cannot use the data directory", "Not a directory", "--data-dir"],
    );
    let Some(mut command) = crate::temp::unprivileged() else {
        return;
    };
    command
        .args(["up", "--no-node", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory.path().join("data"));
    has(
        &finish(&mut command, None).refused(),
        &["cannot use the data directory", "Permission denied", "--data-dir"],
    );
}

#[test]
fn it_stops_when_asked_and_comes_back_with_everything() {
    let mut server = Server::start();
    let made = Http::admin(&server)
        .post(
            "/api/v1/namespaces/default/configmaps",
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"kept"},"data":{"a":"1"}}"#,
        )
        .json();
    assert_eq!(
        server.stop().last().map(String::as_str),
        Some("hotmap has stopped; no pods are running")
    );
    server.restart();
    // The same client: authority, certificates and port stayed.
    assert_eq!(
        Http::admin(&server)
            .get("/api/v1/namespaces/default/configmaps/kept")
            .json(),
        made
    );
    assert_eq!(server.log(), "");
}

#[test]
fn more_names_reach_the_certificate() {
    let server = Server::start_with(ServerOptions {
        flags: vec!["--tls-san=box.example".into(), "--tls-san=192.0.2.7".into()],
        ..ServerOptions::default()
    });
    let Some(program) = crate::harness::Python::find() else {
        return;
    };
    let script = "
import os, socket, ssl, yaml, base64
cluster = yaml.safe_load(open(os.environ['KUBECONFIG']))['clusters'][0]['cluster']
context = ssl.create_default_context(cadata=base64.b64decode(cluster['certificate-authority-data']).decode())
port = int(cluster['server'].rsplit(':', 1)[1])
for name in ('box.example', '192.0.2.7', 'localhost', '127.0.0.1', 'kubernetes.default.svc'):
    context.wrap_socket(socket.create_connection(('127.0.0.1', port)), server_hostname=name).close()
print('done')";
    assert_eq!(program.run(script, &server).ok(), "done\n");
}

#[test]
fn manifests_given_to_up_are_applied_once_and_again_when_changed() {
    let directory = temporary();
    let manifests = directory.path().join("manifests");
    fs::create_dir(&manifests).expect("ours");
    let write = |data: &str| {
        fs::write(
            manifests.join("one.yaml"),
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: one}}, data: {data}}}"),
        )
        .expect("ours");
    };
    write("{a: '1', b: '2'}");
    let flags = vec!["-f".to_owned(), manifests.display().to_string()];
    let mut server = Server::start_with(ServerOptions {
        flags,
        ..ServerOptions::default()
    });
    let data = |server: &Server| {
        Http::admin(server)
            .get("/api/v1/namespaces/default/configmaps/one")
            .json()["data"]
            .to_string()
    };
    server.line_with("configmap/one created");
    assert_eq!(data(&server), r#"{"a":"1","b":"2"}"#);
    server.stop();
    server.restart();
    server.line_with("configmap/one unchanged");
    server.stop();
    write("{a: '3'}");
    server.restart();
    server.line_with("configmap/one configured");
    assert_eq!(data(&server), r#"{"a":"3"}"#);
}
