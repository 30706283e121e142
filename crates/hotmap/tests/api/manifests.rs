//! `up -f`: files at start, directories as they change.

use std::{fs, path::Path};

use crate::{
    harness::{Http, Server, ServerOptions, finish, hotmap},
    has,
};

fn temporary() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("hotmap-e2e-")
        .tempdir()
        .expect("a temporary directory")
}

fn config_map(name: &str, value: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{a: '{value}'}}}}\n")
}

/// Writes as editors do: beside the file, then over it.
fn save(directory: &Path, name: &str, content: &str) {
    let staged = directory.join(format!("{name}~"));
    fs::write(&staged, content).expect("ours");
    fs::rename(staged, directory.join(name)).expect("ours");
}

fn value(server: &Server, name: &str) -> String {
    let path = format!("/api/v1/namespaces/default/configmaps/{name}");
    let answer = Http::admin(server).get(&path);
    match answer.code {
        200 => answer.json()["data"]["a"].as_str().unwrap_or_default().to_owned(),
        404 => "gone".to_owned(),
        _ => answer.text(),
    }
}

fn following(directory: &Path, more: &[&str]) -> Vec<String> {
    let flags = ["-f".to_owned(), directory.display().to_string()];
    flags
        .into_iter()
        .chain(more.iter().map(|flag| (*flag).to_owned()))
        .collect()
}

#[test]
fn edits_in_a_directory_are_applied_and_what_is_wrong_is_named() {
    let directory = temporary();
    let manifests = directory.path();
    let mut server = Server::start_with(ServerOptions {
        flags: following(manifests, &[]),
        ..ServerOptions::default()
    });
    // Nothing is there yet, and a line says when something is.
    save(manifests, "one.yaml", &config_map("one", "1"));
    server.line_with("configmap/one created");
    save(manifests, "one.yaml", &config_map("one", "2"));
    server.line_with("configmap/one configured");
    assert_eq!(value(&server, "one"), "2");

    // An object may come before its namespace.
    let early = "{apiVersion: v1, kind: ConfigMap, metadata: {name: early, namespace: late}}\n";
    fs::write(manifests.join("early.yaml"), early).expect("ours");
    save(
        manifests,
        "late.yaml",
        "{apiVersion: v1, kind: Namespace, metadata: {name: late}}\n",
    );
    server.line_with("configmap/early created");

    // What breaks keeps what it has applied, and holds nothing else up.
    save(manifests, "one.yaml", "{apiVersion: v1, kind: ConfigMap\n");
    save(
        manifests,
        "refused.json",
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NO"}}"#,
    );
    save(manifests, "two.yaml", &config_map("two", "1"));
    server.line_with("configmap/two created");
    assert_eq!(value(&server, "one"), "2");
    has(
        &server.log(),
        &[
            "one.yaml: ",
            "what it held stays as it is",
            r#"refused.json: configmaps "NO": "#,
        ],
    );
    let events = Http::admin(&server)
        .get("/api/v1/namespaces/default/events")
        .text();
    has(
        &events,
        &[
            "ParseManifestFailed",
            "one.yaml",
            "ApplyManifestFailed",
            "refused.json",
        ],
    );
    save(manifests, "one.yaml", &config_map("one", "3"));
    server.line_with("configmap/one configured");

    // What leaves the directory stays, and that is said.
    fs::remove_file(manifests.join("one.yaml")).expect("ours");
    has(&server.line_with("configmap/one stays"), &["--prune"]);
    assert_eq!(value(&server, "one"), "3");
}

#[test]
fn prune_deletes_what_it_has_applied_and_nothing_else() {
    let directory = temporary();
    let manifests = directory.path();
    save(
        manifests,
        "both.yaml",
        &[config_map("one", "1"), config_map("two", "1")].join("---\n"),
    );
    save(manifests, "three.yaml", &config_map("three", "1"));
    save(manifests, "four.yaml", &config_map("four", "1"));
    let mut server = Server::start_with(ServerOptions {
        flags: following(manifests, &["--prune"]),
        ..ServerOptions::default()
    });
    server.line_with("configmap/three created");
    let http = Http::admin(&server);
    let collection = "/api/v1/namespaces/default/configmaps";
    http.post(collection, json_of("own"));
    // Taken out of a file; moved to another one; a file that breaks.
    save(manifests, "both.yaml", "{apiVersion: v1, kind: ConfigMap\n");
    save(manifests, "moved.yaml", &config_map("four", "1"));
    save(manifests, "next.yaml", &config_map("next", "1"));
    server.line_with("configmap/next created");
    fs::remove_file(manifests.join("four.yaml")).expect("ours");
    save(manifests, "both.yaml", &config_map("one", "2"));
    server.line_with("configmap/two deleted");
    assert_eq!(
        ["one", "two", "three", "four", "own"].map(|name| value(&server, name)),
        ["2", "gone", "1", "1", "x"]
    );

    // While nobody follows: a file goes, and an object is made anew by somebody else.
    server.stop();
    fs::remove_file(manifests.join("three.yaml")).expect("ours");
    server.set_flags(&[]);
    server.restart();
    let http = Http::admin(&server);
    http.send("DELETE", &format!("{collection}/four"), &[], "");
    http.post(collection, json_of("four"));
    server.stop();
    fs::remove_file(manifests.join("moved.yaml")).expect("ours");
    let flags = following(manifests, &["--prune"]);
    server.set_flags(&Vec::from_iter(flags.iter().map(String::as_str)));
    server.restart();
    server.line_with("configmap/three deleted");
    save(manifests, "five.yaml", &config_map("five", "1"));
    server.line_with("configmap/five created");
    assert_eq!(
        ["one", "three", "four", "own"].map(|name| value(&server, name)),
        ["2", "gone", "x", "x"]
    );
}

fn json_of(name: &str) -> String {
    format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}"}},"data":{{"a":"x"}}}}"#)
}

#[test]
fn standard_input_is_a_file_that_is_read_once() {
    let directory = temporary();
    let mut command = hotmap();
    command
        .args(["up", "--temp", "-f", "-", "--", "sh", "-c", "echo ran"])
        .env("TMPDIR", directory.path());
    assert_eq!(
        finish(&mut command, Some(config_map("one", "1").as_bytes())).ok(),
        "ran\n"
    );
    let refused = finish(
        &mut command,
        Some(b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dta: {}}"),
    )
    .refused();
    has(&refused, &["standard input: ", r#"unknown field "dta""#]);
}
