//! The audit log: who asked for what, and what came of it; and never a secret.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::harness::{Http, Kubectl, Release, Server, ServerOptions, finish, hotmap};

const SECRET: &str = "hunter2-is-my-password";

fn options(log: &Path, level: &str) -> ServerOptions {
    let log = log.to_str().expect("a plain path");
    let flags = ["--audit-log", log, "--audit-level", level];
    ServerOptions {
        flags: flags.map(str::to_owned).into(),
        ..ServerOptions::default()
    }
}

/// All events, of a server that has ended.
fn events(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).expect("a log");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// The events whose fields at these pointers have these values.
fn found<'a>(events: &'a [Value], wanted: &[(&str, &str)]) -> Vec<&'a Value> {
    let holds = |event: &&Value| {
        wanted
            .iter()
            .all(|(at, value)| event.pointer(at) == Some(&json!(value)))
    };
    events.iter().filter(holds).collect()
}

#[test]
fn every_request_leaves_its_line_and_no_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("audit.log");
    let Some(mut kubectl) = Kubectl::with_options(Release::Newest, options(&log, "request")) else {
        return;
    };
    kubectl.ok("create configmap settings --from-literal=color=blue");
    // Every way in which a secret comes by.
    kubectl.ok(&format!(
        "create secret generic password --from-literal=key={SECRET}"
    ));
    let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "applied"}, "stringData": {"key": SECRET}});
    kubectl.apply(&manifest.to_string());
    kubectl.ok(&format!(
        r#"patch secret applied -p {{"stringData":{{"more":"{SECRET}"}}}}"#
    ));
    let http = Http::admin(&kubectl.server);
    let secrets = "/api/v1/namespaces/default/secrets";
    for body in [
        format!("{SECRET} is no JSON"),
        format!(r#"{{"metadata": {{"name": "x"}}, "data": {{"key": "{SECRET}!"}}}}"#),
    ] {
        assert_eq!(http.post(secrets, body).code, 400);
    }
    // Also to the wrong place.
    let misplaced = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "misplaced"}, "stringData": {"key": SECRET}});
    let configmaps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(http.post(configmaps, misplaced.to_string()).code, 400);
    kubectl.ok("create serviceaccount robot");
    let token = kubectl.ok("create token robot").trim().to_owned();
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    assert_eq!(
        http.post("/apis/authentication.k8s.io/v1/tokenreviews", review.to_string())
            .code,
        201
    );
    // Somebody else's name, no right, no name at all.
    kubectl.run("get pods --as=jane --as-group=developers").refused();
    assert_eq!(Http::anonymous(&kubectl.server).get("/api/v1/nodes").code, 403);
    let mine = http.send(
        "GET",
        "/api/v1/nodes?limit=5",
        &[("audit-id", "of-mine"), ("user-agent", "tester/1")],
        "",
    );
    assert_eq!(mine.header("audit-id"), "of-mine");
    let bad = Http::anonymous(&kubectl.server).send(
        "GET",
        "/api/v1/pods",
        &[("authorization", &format!("Bearer {SECRET}"))],
        "",
    );
    assert_eq!(bad.code, 401);
    // The list comes before the watch: a change is what only the watch can show.
    let mut watch = kubectl.start("get configmaps --watch");
    watch.line_with("settings");
    kubectl.ok("create configmap later");
    watch.line_with("later");
    kubectl.server.stop();

    let text = fs::read_to_string(&log).expect("a log");
    for secret in [SECRET, &BASE64_STANDARD.encode(SECRET), &token] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
    assert_eq!(
        fs::metadata(&log).expect("a log").permissions().mode() & 0o777,
        0o600
    );
    let events = events(&log);
    for event in &events {
        for field in [
            "kind",
            "auditID",
            "stage",
            "requestURI",
            "verb",
            "user",
            "requestReceivedTimestamp",
            "stageTimestamp",
        ] {
            assert!(!event[field].is_null(), "no {field}: {event}");
        }
        assert_eq!(
            (&event["apiVersion"], &event["level"]),
            (&json!("audit.k8s.io/v1"), &json!("Request"))
        );
        assert_eq!(event["sourceIPs"], json!(["127.0.0.1"]));
        assert!(event.get("responseObject").is_none());
    }
    let created = found(
        &events,
        &[
            ("/verb", "create"),
            ("/objectRef/resource", "configmaps"),
            ("/requestObject/data/color", "blue"),
        ],
    );
    let [created] = created[..] else {
        panic!("{} lines", created.len())
    };
    assert_eq!(created["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(created["objectRef"]["namespace"], "default");
    assert_eq!(created["user"]["username"], "kubernetes-admin");
    assert_eq!(created["annotations"]["authorization.k8s.io/decision"], "allow");
    assert!(
        created["userAgent"]
            .as_str()
            .is_some_and(|agent| agent.starts_with("kubectl"))
    );
    let misplaced = found(&events, &[("/objectRef/name", "misplaced")]);
    assert_eq!(misplaced[0].get("requestObject"), None);
    let password = [
        ("/verb", "create"),
        ("/objectRef/resource", "secrets"),
        ("/objectRef/name", "password"),
    ];
    assert_eq!(found(&events, &password).len(), 1);
    for (resource, lines) in [("secrets", 5), ("serviceaccounts", 2), ("tokenreviews", 1)] {
        let written = found(
            &events,
            &[
                ("/objectRef/resource", resource),
                ("/user/username", "kubernetes-admin"),
            ],
        );
        let written: Vec<_> = written
            .into_iter()
            .filter(|event| event["verb"] != "get" && event["verb"] != "list")
            .collect();
        assert_eq!(written.len(), lines, "{resource}: {written:#?}");
        let bodies = written
            .iter()
            .filter(|event| event.get("requestObject").is_some())
            .count();
        assert_eq!(bodies, usize::from(resource == "serviceaccounts"), "{resource}");
    }
    let jane = found(
        &events,
        &[
            ("/impersonatedUser/username", "jane"),
            ("/annotations/authorization.k8s.io~1decision", "forbid"),
        ],
    );
    assert!(!jane.is_empty());
    assert_eq!(jane[0]["user"]["username"], "kubernetes-admin");
    assert_eq!(jane[0]["responseStatus"]["reason"], "Forbidden");
    let anonymous = found(
        &events,
        &[
            ("/user/username", "system:anonymous"),
            ("/objectRef/resource", "nodes"),
        ],
    );
    assert_eq!(anonymous[0]["responseStatus"]["code"], 403);
    let mine = found(&events, &[("/auditID", "of-mine")]);
    assert_eq!(
        (&mine[0]["requestURI"], &mine[0]["userAgent"]),
        (&json!("/api/v1/nodes?limit=5"), &json!("tester/1"))
    );
    let unknown: Vec<_> = events
        .iter()
        .filter(|event| event["responseStatus"]["code"] == 401)
        .collect();
    assert_eq!((unknown.len(), &unknown[0]["user"]), (1, &json!({})));
    let watches = found(
        &events,
        &[
            ("/verb", "watch"),
            ("/objectRef/resource", "configmaps"),
            ("/user/username", "kubernetes-admin"),
        ],
    );
    let stages: Vec<_> = watches
        .iter()
        .map(|event| event["stage"].as_str().unwrap_or_default())
        .collect();
    // kubectl may have begun another before it was turned away.
    assert_eq!(stages[..2], ["ResponseStarted", "ResponseComplete"]);
    assert_eq!(watches[0]["auditID"], watches[1]["auditID"]);
}

#[test]
fn metadata_holds_no_bodies_and_none_holds_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (metadata, none) = (directory.path().join("metadata"), directory.path().join("none"));
    let mut server = Server::start_with(options(&metadata, "Metadata"));
    let body = r#"{"metadata": {"name": "plain"}, "data": {"color": "blue"}}"#;
    let answer = Http::admin(&server).post("/api/v1/namespaces/default/configmaps", body);
    let id = answer.header("audit-id").to_owned();
    assert_eq!(answer.code, 201);
    let text = Http::admin(&server).get("/metrics").text();
    assert!(text.contains("apiserver_audit_event_total"), "{text}");
    server.stop();
    let events = events(&metadata);
    let created = found(&events, &[("/auditID", &id)]);
    assert_eq!((created.len(), created[0].get("requestObject")), (1, None));

    let mut server = Server::start_with(options(&none, "None"));
    let answer = Http::admin(&server).post("/api/v1/namespaces/default/configmaps", body);
    assert_eq!(answer.code, 201);
    server.stop();
    assert!(!none.exists());
}

#[test]
fn a_log_that_cannot_be_opened_stops_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = hotmap();
    command.args([
        "up",
        "--no-node",
        "--listen",
        "127.0.0.1:0",
        "--audit-log",
        "/nowhere/audit.log",
        "--data-dir",
    ]);
    let finished = finish(command.arg(directory.path().join("data")), None);
    assert_ne!(finished.code, 0);
    let said = "the audit log /nowhere/audit.log cannot be opened: No such file or directory";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
    // A level without a log is a mistake.
    let finished = finish(hotmap().args(["up", "--audit-level", "Request"]), None);
    assert_eq!(finished.code, 2);
    assert!(finished.stderr.contains("--audit-log"), "{}", finished.stderr);
}
