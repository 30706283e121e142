//! `hotmap agent --join`: a node that comes with a token, and stays without it.

use serde_json::json;

use crate::{
    agents::{Agent, token},
    harness::{Kubectl, Release, finish, hotmap},
    has,
    host::{Turn, can_run_pods, config_map, pod, shell},
};

const NODE: &str = "join-a";

#[test]
fn a_node_comes_with_a_token_and_stays_without_it() {
    if !can_run_pods() {
        return;
    }
    let _turn = Turn::take();
    let Some(kubectl) = Kubectl::with_server(Release::Newest) else {
        return;
    };
    let tokens = |arguments: &str| {
        let mut command = hotmap();
        command
            .arg("token")
            .args(arguments.split_whitespace())
            .arg("--kubeconfig")
            .arg(kubectl.server.kubeconfig());
        finish(&mut command, None).ok()
    };
    let made = token(&kubectl.server);
    let text = |field: &str| made[field].as_str().expect("text");
    let mut agent = Agent::new(NODE, &kubectl.server);
    let url = kubectl.server.url();

    let wrong = format!("sha256:{}", "0".repeat(64));
    let join = ["--join", url, "--token", text("token"), "--ca-hash"];
    let refused = finish(&mut agent.command(&[&join[..], &[wrong.as_str()]].concat()), None).refused();
    has(
        &refused,
        &["is not the one of --ca-hash", "its authority is sha256:"],
    );
    let refused = finish(&mut agent.command(&["--join", url]), None).refused();
    has(&refused, &["--join needs --token and --ca-hash"]);

    agent.start(&[&join[..], &[text("authorityHash")]].concat());
    kubectl.ok(&format!("wait node/{NODE} --for=condition=Ready --timeout=120s"));
    kubectl.apply(&config_map("c", json!({"k": "one"})).to_string());
    let script = r#"until [ "$(cat /c/k)" = two ]; do inotifywait -qq -t 1 -e moved_to /c || :; done"#;
    let mount = json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]});
    kubectl.apply(
        &pod(
            "p",
            json!({
                "restartPolicy": "Never", "containers": [shell(script, mount)],
                "volumes": [{"name": "c", "configMap": {"name": "c"}}],
            }),
        )
        .to_string(),
    );
    kubectl.ok("wait pod/p --for=condition=Ready --timeout=120s");

    // Neither token nor flags: the node is known by its own certificate, which it replaces.
    tokens(&format!("delete {}", text("id")));
    agent.stop();
    let mut requests = kubectl.start("get csr --watch");
    agent.start(&["--fault-rotate-at-start"]);
    requests.line_with(&format!("system:node:{NODE}"));
    kubectl.ok("wait csr --all --for=jsonpath={.status.certificate} --timeout=120s");
    kubectl.apply(&config_map("c", json!({"k": "two"})).to_string());
    kubectl.ok("wait pod/p --for=jsonpath={.status.phase}=Succeeded --timeout=120s");

    let refused = {
        agent.stop();
        finish(&mut agent.command(&["--join", "https://127.0.0.1:1"]), None).refused()
    };
    has(
        &refused,
        &[
            "this node has joined https://127.0.0.1:",
            "agent.kubeconfig to join another API",
        ],
    );
}
