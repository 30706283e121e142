//! examples/reload-sidecar, as people write it.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    article_001::example,
    has,
    host::Node,
    status::{rows, until_of},
};

/// The manifest with the program of this build: its directory is mounted, for it is installed nowhere.
fn manifest() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_hotmap"));
    let directory = program.parent().expect("a directory").display().to_string();
    let text = example("reload-sidecar/manifest.yaml");
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("a manifest of ours");
    let spec = &mut objects[1]["spec"];
    spec["initContainers"][0]["command"][0] = "/opt/hotmap/hotmap".into();
    let list = |value: &mut Value, item: Value| value.as_array_mut().expect("a list").push(item);
    list(
        &mut spec["initContainers"][0]["volumeMounts"],
        json!({"name": "program", "mountPath": "/opt/hotmap", "readOnly": true}),
    );
    list(
        &mut spec["volumes"],
        json!({"name": "program", "hostPath": {"path": directory}}),
    );
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

#[test]
fn an_edit_is_served_because_the_sidecar_signals_nginx() {
    let Some(node) = Node::start() else { return };
    node.apply(&manifest());
    node.ready("web");
    has(&node.ok("get pod web"), &["2/2", "Running"]);
    let served = "busybox wget -qO- http://localhost:8080/";
    assert_eq!(node.sh("web", served), "Hello from a ConfigMap");
    for text in ["Hello again", "Hello for the last time"] {
        let script = format!(r#"sed -i 's/"Hello.*\\n"/"{text}\\n"/' "$1""#);
        node.edit("configmap web-conf", &script).ok();
        let until = format!(r#"until [ "$({served})" = "{text}" ]; do sleep 0.1; done"#);
        node.exec("web", &until).ok();
        // The sidecar has said on the pod's socket that nginx has taken it.
        let has_loaded = |answer: &Value| {
            answer["loadedReporting"] == 1
                && answer["loadedCurrent"] == 1
                && rows(answer) == ["web volume/conf current"]
        };
        until_of(&node, "cm/web-conf", has_loaded);
    }
    // The same processes all along.
    let restarts =
        "{.status.initContainerStatuses[0].restartCount} {.status.containerStatuses[0].restartCount}";
    assert_eq!(
        node.ok(&format!("get pod web -o jsonpath={}", restarts.replace(' ', ","))),
        "0,0"
    );
    node.ok("delete pod web --timeout=120s");
}
