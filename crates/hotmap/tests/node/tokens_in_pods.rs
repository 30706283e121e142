//! Projected tokens: what lies in the pod, whose it is, and for whom it is good.

use serde_json::{Value, json};

use crate::{
    harness::Http,
    host::{Node, idle, pod},
};

const REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A pod with a token for the API and one for somebody else.
fn with_token(name: &str, security: Value) -> Value {
    let mount = json!({"volumeMounts": [{"name": "t", "mountPath": "/t"}]});
    let sources = json!([
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"serviceAccountToken": {"path": "vault", "audience": "vault", "expirationSeconds": 600}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]);
    let mut pod = pod(
        name,
        json!({"serviceAccountName": "robot", "containers": [idle(mount)],
        "volumes": [{"name": "t", "projected": {"sources": sources}}]}),
    );
    pod["spec"]["securityContext"] = security;
    pod
}

/// Who the API takes the bearer of this token for; `Err`: the code.
fn bearer(node: &Node, token: &str) -> Result<Value, u16> {
    let headers = [
        ("content-type", "application/json"),
        ("authorization", &*format!("Bearer {token}")),
    ];
    let body = r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#;
    let answer = Http::anonymous(&node.server).send("POST", REVIEW, &headers, body);
    match answer.code {
        201 => Ok(answer.json()["status"]["userInfo"].clone()),
        code => Err(code),
    }
}

#[test]
fn a_pod_speaks_as_its_account_and_the_token_is_for_its_user_alone() {
    let Some(node) = Node::start() else { return };
    node.ok("create serviceaccount robot");
    node.create([
        with_token("plain", json!({})),
        with_token("user", json!({"runAsUser": 1000})),
        with_token("group", json!({"fsGroup": 2000})),
    ]);
    node.ready("plain user group");
    for (name, expected) in [
        ("plain", "644 0:0"),
        ("user", "600 1000:0"),
        ("group", "640 0:2000"),
    ] {
        let looks = node.sh(name, "stat -L -c '%a %u:%g' /t/token; cat /t/namespace");
        assert_eq!(looks, format!("{expected}\ndefault"), "{name}");
        let user = bearer(&node, &node.sh(name, "cat /t/token")).expect("a good token");
        assert_eq!(user["username"], "system:serviceaccount:default:robot");
        assert_eq!(
            user["extra"]["authentication.kubernetes.io/pod-name"],
            json!([name])
        );
    }
    let vault = node.sh("plain", "cat /t/vault");
    assert_eq!(bearer(&node, &vault), Err(401), "it is for somebody else");
}

#[test]
fn a_node_that_starts_anew_asks_anew_and_a_token_ends_with_its_pod() {
    let Some(mut node) = Node::start() else { return };
    node.ok("create serviceaccount robot");
    node.create([with_token("p", json!({}))]);
    node.ready("p");
    let process = node.process("p");
    let first = node.sh("p", "cat /t/token");
    node.server.crash_and_restart();
    node.exec(
        "p",
        &format!("while grep -q '{first}' /t/token; do inotifywait -qq -t 1 -e moved_to /t || :; done"),
    )
    .ok();
    let second = node.sh("p", "cat /t/token");
    for token in [&first, &second] {
        assert!(bearer(&node, token).is_ok(), "both are of the same pod");
    }
    assert_eq!(node.process("p"), process, "nothing was restarted");
    node.ok("delete pod p --timeout=120s");
    for token in [&first, &second] {
        assert_eq!(bearer(&node, token), Err(401));
    }
}
