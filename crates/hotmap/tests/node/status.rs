//! Who has which revision: `hotmap status`, the reports it reads, and what programs say on their socket.

use serde_json::{Value, json};

use crate::{
    harness::{Finished, Release, Running, finish, hotmap},
    host::{Node, config_map, idle, pod},
};

/// How long `-w` may wait; far beyond what it takes.
const PATIENCE: &str = "--timeout=120s";

fn status(node: &Node, arguments: &[&str]) -> Finished {
    let mut command = hotmap();
    command
        .arg("status")
        .args(arguments)
        .env("KUBECONFIG", node.server.kubeconfig());
    finish(&mut command, None)
}

#[track_caller]
fn until(node: &Node, is_wanted: impl Fn(&Value) -> bool) -> Value {
    until_of(node, "cm/app", is_wanted)
}

/// Waits until `hotmap status` answers like this about an object; it is asked again with each report of the node.
#[track_caller]
pub(crate) fn until_of(node: &Node, object: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let shape = r#"jsonpath={.metadata.resourceVersion} reported{"\n"}"#;
    let arguments = ["get", "deliveryreports", "--watch", "-o", shape];
    let mut reports = Running::start(&mut node.command(&arguments));
    loop {
        reports.line_with("reported");
        let answer = status(node, &[object, "-o", "json"]).ok();
        let answer = serde_json::from_str(&answer).expect("JSON");
        if is_wanted(&answer) {
            return answer;
        }
        eprintln!("not yet: {answer:#}");
    }
}

#[track_caller]
fn until_rows(node: &Node, wanted: &[&str]) -> Value {
    until(node, |answer| rows(answer) == wanted)
}

/// `POD VIA STATE: REASON` of each row.
pub(crate) fn rows(answer: &Value) -> Vec<String> {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter()
        .map(|row| {
            let words = ["pod", "via", "state", "reason"].map(|field| text(row, field));
            words.join(" ").trim_end().to_owned()
        })
        .collect()
}

/// Waits for an event about `pod` that says so; its newest state counts.
#[track_caller]
fn until_told(node: &Node, pod: &str, wanted: &str) {
    let field = format!("involvedObject.name={pod},reason=ConfigurationUpdated");
    let shape = r#"jsonpath={.message}{"\n"}"#;
    let arguments = [
        "get",
        "events",
        "--watch",
        "--field-selector",
        &field,
        "-o",
        shape,
    ];
    Running::start(&mut node.command(&arguments)).line_with(wanted);
}

#[test]
fn an_edit_is_followed_to_everybody_who_has_it() {
    let Some(node) = Node::start_with(Release::Newest, &["--configuration-events"]) else {
        return;
    };
    node.create([config_map("app", json!({"a": "1", "b": "1"}))]);
    let items = json!([{"key": "b", "path": "b"}]);
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let volume = |source: Value| json!([{"name": "v", "configMap": source}]);
    node.create([
        pod(
            "whole",
            json!({"containers": [idle(mount.clone())], "volumes": volume(json!({"name": "app"}))}),
        ),
        pod(
            "picky",
            json!({"containers": [idle(mount)], "volumes": volume(json!({"name": "app", "items": items}))}),
        ),
    ]);
    let started = status(&node, &["cm/app", "-w", PATIENCE]);
    assert_eq!(started.code, 0, "{}{}", started.stdout, started.stderr);
    crate::has(
        &started.stdout,
        &["POD", "whole", "volume/v", "Current", "2 of 2 pods have revision"],
    );

    node.call(&["patch", "configmap", "app", "-p", r#"{"data": {"a": "2"}}"#])
        .ok();
    let edited = status(&node, &["configmap/app", "--watch", PATIENCE]);
    assert_eq!(edited.code, 0, "{}{}", edited.stdout, edited.stderr);
    let version = node.field("configmap/app", ".metadata.resourceVersion");
    crate::has(&edited.stdout, &[&format!("2 of 2 pods have revision {version}")]);
    assert_eq!(node.sh("whole", "cat /v/a"), "2");
    let told = format!("volume \"v\" shows configmap/app at revision {version}");
    until_told(&node, "whole", &told);
    crate::has(&edited.stdout, &[" ms after the edit"]);
    // The kubeconfig's context may say which namespace is meant.
    node.ok("config set-context --current --namespace=elsewhere");
    let elsewhere = status(&node, &["cm/app", "-o", "json"]).ok();
    crate::has(&elsewhere, &["\"namespace\": \"elsewhere\""]);
    node.ok("config set-context --current --namespace=default");

    // A pod that cannot have it is named with the reason, and keeps what it has.
    node.call(&["patch", "configmap", "app", "-p", r#"{"data": {"b": null}}"#])
        .ok();
    let answer = until_rows(
        &node,
        &[
            "picky volume/v behind configmap references non-existent config key: b",
            "whole volume/v current",
        ],
    );
    let held = answer["rows"][0]["resourceVersion"].as_str();
    assert_eq!(held, Some(version.as_str()));
    let late = status(&node, &["cm/app", "-w", "--timeout=1s"]);
    assert_eq!(late.code, 1, "{}{}", late.stdout, late.stderr);
    crate::has(
        &late.stdout,
        &["1 of 2 pods has revision", "behind: picky (volume/v)"],
    );
    node.call(&["patch", "configmap", "app", "-p", r#"{"data": {"b": "3"}}"#])
        .ok();
    assert_eq!(status(&node, &["cm/app", "-w", PATIENCE]).code, 0);

    // Variables stay behind until their container starts again; the agent's death does not make them forget.
    let variables = json!({"envFrom": [{"configMapRef": {"name": "app"}}]});
    node.create([pod("env", json!({"containers": [idle(variables)]}))]);
    assert_eq!(status(&node, &["cm/app", "-w", PATIENCE]).code, 0);
    node.call(&["patch", "configmap", "app", "-p", r#"{"data": {"a": "4"}}"#])
        .ok();
    let behind =
        "env env/main behind variables are read when the container starts: restart it to have the change";
    let all = [behind, "picky volume/v current", "whole volume/v current"];
    until_rows(&node, &all);
    let mut node = node;
    node.server.crash_and_restart();
    until_rows(&node, &all);
    node.ok("delete pod env");
    assert_eq!(status(&node, &["cm/app", "-w", PATIENCE]).code, 0);
    until_rows(&node, &all[1..]);

    let columns = node.ok("get deliveryreports");
    crate::has(&columns, &["NAME", "OBJECTS", "BEHIND", "AGE", "node-a"]);
    let report = node.ok("get deliveryreport node-a -o yaml");
    crate::has(&report, &["digest: sha256:", "visibleAt:", "name: app"]);
}

#[test]
fn a_call_that_cannot_be_answered_says_so() {
    let Some(node) = Node::start() else { return };
    let wrong = status(&node, &["pod/web"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    crate::has(&wrong.stderr, &["\"pod\" is not a kind that is delivered"]);
    let nobody = status(&node, &["secret/none"]).ok();
    assert_eq!(nobody, "secret/none is not there, and no pod refers to it\n");
    crate::has(
        &status(&node, &["--print-rbac"]).ok(),
        &["kind: ClusterRole", "deliveryreports"],
    );
}

/// Says on the socket what `$1` is: the rest of a line after the projection that the volume shows.
const SAY: &str = r#"perl -MIO::Socket::UNIX -e '
    my $agent = IO::Socket::UNIX->new("/run/hotmap/agent.sock") or die "cannot connect: $!";
    my $revision = readlink("/v/..data");
    print $agent "{\"loaded\": {\"volume\": \"v\", \"revision\": \"$revision\"}, $ARGV[0]}\n";
    print scalar <$agent>' -- "$1""#;

#[test]
fn programs_say_what_they_have_loaded() {
    let Some(node) = Node::start() else { return };
    node.create([config_map("app", json!({"a": "1"}))]);
    let container = idle(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}));
    let volume = json!([{"name": "v", "configMap": {"name": "app"}}]);
    // Any user may speak, and nobody may put something else in the socket's place.
    let user = json!({"runAsUser": 1000});
    node.create([
        pod("web", json!({"containers": [container], "volumes": volume, "securityContext": user})),
        pod("own", json!({"containers": [idle(json!({"volumeMounts": [{"name": "mine", "mountPath": "/run/hotmap"}]}))],
            "volumes": [{"name": "mine", "emptyDir": {}}]})),
    ]);
    node.ready("web own");
    let say = |node: &Node, line: &str| -> String {
        let said = node
            .call(&["exec", "web", "--", "sh", "-c", SAY, "sh", line])
            .ok();
        said.trim_end().to_owned()
    };
    assert_eq!(
        node.sh("own", "ls /run/hotmap"),
        "",
        "a mount of the pod's own stands"
    );
    assert_ne!(node.exec("web", "rm -f /run/hotmap/agent.sock").code, 0);
    assert_eq!(say(&node, r#""ok": true"#), r#"{"ok":true}"#);
    let has_loaded = |answer: &Value| answer["loadedReporting"] == 1 && answer["loadedCurrent"] == 1;
    assert_eq!(rows(&until(&node, has_loaded)), ["web volume/v current"]);

    node.call(&["patch", "configmap", "app", "-p", r#"{"data": {"a": "2"}}"#])
        .ok();
    until_rows(
        &node,
        &["web volume/v notLoaded the program has not said that it loaded it"],
    );
    assert_eq!(
        say(&node, r#""ok": false, "message": "line 3""#),
        r#"{"ok":true}"#
    );
    until_rows(&node, &["web volume/v notLoaded the program refused it: line 3"]);

    // The next agent listens where the containers look.
    let mut node = node;
    node.server.crash_and_restart();
    node.ready("web");
    let script = format!("until {{ {SAY}; }}; do inotifywait -qq -t 1 -e moved_to /run/hotmap || :; done");
    let said = node.call(&["exec", "web", "--", "sh", "-c", &script, "sh", r#""ok": true"#]);
    crate::has(&said.ok(), &[r#"{"ok":true}"#]);
    assert_eq!(rows(&until(&node, has_loaded)), ["web volume/v current"]);
}
