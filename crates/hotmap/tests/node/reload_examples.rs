//! The examples of `hotmap reload` as pods: no pid namespace is shared; a request, a connection or `hotmap run` is enough.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    article_001::example,
    harness::Running,
    host::{Node, config_map},
};

/// A manifest with the program of this build in place of `hotmap-reload`: its directory is mounted, for it is installed
/// nowhere.
fn manifest(file: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_hotmap"));
    let directory = program.parent().expect("a directory").display().to_string();
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&example(file)).expect("a manifest of ours");
    let list = |value: &mut Value, item: Value| value.as_array_mut().expect("a list").push(item);
    let spec = &mut objects[1]["spec"];
    for of in ["initContainers", "containers"] {
        let Some(containers) = spec.get_mut(of).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers {
            if container["command"][0] == "hotmap-reload" {
                container["command"][0] = "/opt/hotmap/hotmap".into();
                // The slim binary says by itself what it does; this one only what goes wrong.
                let words = container["command"].as_array_mut().expect("a list");
                words.splice(1..1, ["--log".into(), "info".into()]);
                list(
                    &mut container["volumeMounts"],
                    json!({"name": "program", "mountPath": "/opt/hotmap", "readOnly": true}),
                );
            }
        }
    }
    // Prometheus asks for its own name at every reload, and a machine of tests has nobody who answers: to be refused at
    // once is better than to wait.
    list(
        &mut spec["volumes"],
        json!({"name": "resolver", "configMap": {"name": "resolver"}}),
    );
    let resolver = json!({"name": "resolver", "mountPath": "/etc/resolv.conf", "subPath": "resolv.conf"});
    list(&mut spec["containers"][0]["volumeMounts"], resolver);
    list(
        &mut spec["volumes"],
        json!({"name": "program", "hostPath": {"path": directory}}),
    );
    objects.insert(
        0,
        config_map("resolver", json!({"resolv.conf": "nameserver 127.0.0.1\n"})),
    );
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// The log of the container that tells of changes, once it follows them.
fn reload_log(node: &Node, pod: &str) -> Running {
    let mut log = node.start(&format!("logs -f {pod} -c reload"));
    log.line_with("content found");
    log
}

#[test]
fn prometheus_is_told_over_the_loopback_address_of_its_pod() {
    let Some(node) = Node::start() else { return };
    node.apply(&manifest("reload-prometheus/manifest.yaml"));
    node.ready("prometheus");
    let mut log = reload_log(&node, "prometheus");
    let has_rules = |name: &str| {
        let rules = "busybox wget -qO- http://127.0.0.1:9090/api/v1/rules";
        let until = format!(r#"until {rules} | grep -q '"name":"{name}"'; do sleep 0.1; done"#);
        node.exec("prometheus", &until).ok();
    };
    has_rules("first");
    node.edit(
        "configmap prometheus",
        r#"sed -i 's/name: first/name: second/' "$1""#,
    )
    .ok();
    log.line_with("change loaded");
    has_rules("second");
    node.edit("configmap prometheus", r#"sed -i 's/sum by/sum buy/' "$1""#)
        .ok();
    log.line_with("change held back");
    has_rules("second");
    node.edit(
        "configmap prometheus",
        r#"sed -i 's/sum buy/sum by/; s/name: second/name: third/' "$1""#,
    )
    .ok();
    log.line_with("change loaded");
    has_rules("third");
}

#[test]
fn postgresql_is_asked_and_told_over_a_connection() {
    let Some(node) = Node::start() else { return };
    node.apply(&manifest("reload-postgresql/manifest.yaml"));
    node.ready("postgresql");
    let mut log = reload_log(&node, "postgresql");
    let shows = |memory: &str| {
        let until =
            format!(r#"until [ "$(psql -XAt -h /data -c 'show work_mem')" = {memory} ]; do sleep 0.1; done"#);
        node.exec("postgresql", &until).ok();
    };
    shows("4MB");
    for (from, to, is_good) in [
        ("4MB", "8MB", true),
        ("8MB", "much", false),
        ("much", "16MB", true),
    ] {
        let script = format!(r#"sed -i 's/work_mem = {from}/work_mem = {to}/' "$1""#);
        node.edit("configmap postgresql", &script).ok();
        log.line_with(if is_good {
            "change loaded"
        } else {
            "change held back"
        });
        shows(if is_good { to } else { from });
    }
}

#[test]
fn haproxy_is_started_and_signalled_by_one_container() {
    let Some(node) = Node::start() else { return };
    node.apply(&manifest("reload-haproxy/manifest.yaml"));
    node.ready("haproxy");
    let mut log = node.start("logs -f haproxy");
    log.line_with("program started");
    let shows = |revision: &str| {
        let got = "busybox wget -qO- http://127.0.0.1:8080/";
        let until = format!(r#"until [ "$({got})" = "Hello from revision {revision}" ]; do sleep 0.1; done"#);
        node.exec("haproxy", &until).ok();
    };
    shows("1");
    for (from, to, is_good) in [
        ("revision 1", "revision 2", true),
        ("bind", "bnd", false),
        ("bnd", "bind", true),
    ] {
        node.edit("configmap haproxy", &format!(r#"sed -i 's/{from}/{to}/' "$1""#))
            .ok();
        log.line_with(if is_good {
            "change loaded"
        } else {
            "change held back"
        });
        shows("2");
    }
    let restarts = node.field("pod/haproxy", ".status.containerStatuses[0].restartCount");
    assert_eq!(restarts, "0", "the same process all along");
}
