//! nginx follows its configuration.

use std::path::Path;

use crate::{article_001::example, has, host::Node};

fn served(node: &Node) -> String {
    node.sh("nginx", "busybox wget -qO- http://localhost:8080/")
}

#[test]
fn an_edit_is_served_after_a_reload() {
    let Some(node) = Node::start() else { return };
    // Without the watcher of the example: the reload is done by hand.
    let conf = "events {}\nhttp { server { listen 8080; location / { return 200 \"one\\n\"; } } }\n";
    node.create([
        crate::host::config_map("conf", serde_json::json!({"nginx.conf": conf})),
        crate::host::pod("nginx", serde_json::json!({
            "containers": [{"name": "nginx", "image": "nginx", "args": ["-c", "/etc/nginx-config/nginx.conf", "-g", "daemon off;"],
                "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
                "volumeMounts": [{"name": "c", "mountPath": "/etc/nginx-config"}]}],
            "volumes": [{"name": "c", "configMap": {"name": "conf"}}]})),
    ]);
    node.ready("nginx");
    assert_eq!(served(&node), "one");
    let process = node.process("nginx");
    node.edit("configmap conf", r#"sed -i 's/one/two/' "$1""#).ok();
    node.exec("nginx", "until grep -q two /etc/nginx-config/nginx.conf; do inotifywait -qq -t 1 -e moved_to /etc/nginx-config || :; done").ok();
    assert_eq!(
        served(&node),
        "one",
        "nginx reads its configuration when it is told to"
    );
    node.sh("nginx", "nginx -c /etc/nginx-config/nginx.conf -s reload");
    node.exec(
        "nginx",
        "until [ \"$(busybox wget -qO- http://localhost:8080/)\" = two ]; do :; done",
    )
    .ok();
    assert_eq!(node.process("nginx"), process);
}

#[test]
fn the_example_reloads_by_itself() {
    let Some(node) = Node::start() else { return };
    for file in ["nginx-config.yaml", "nginx.yaml"] {
        let path = Path::new("nginx").join(file);
        node.apply(&example(&path.display().to_string()));
    }
    node.ready("nginx");
    has(&served(&node), &["Hello"]);
    node.edit("configmap nginx-config", r#"sed -i 's/Hello/Good morning/' "$1""#)
        .ok();
    let wait = "until busybox wget -qO- http://localhost:8080/ | grep 'Good morning'; do :; done";
    has(&node.exec("nginx", wait).ok(), &["Good morning"]);
}
