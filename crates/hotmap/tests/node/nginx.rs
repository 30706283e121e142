//! nginx follows its configuration.

use std::path::Path;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;

use crate::{article_001::example, has, host::Node};

/// Serves the page on 8080, a probe's answer over TLS on 8443, and the health service of gRPC on 8444.
const CONF: &str = r#"events {}
http {
  server { listen 8080; location / { return 200 "one\n"; } }
  server {
    listen 8443 ssl;
    ssl_certificate /tls/tls.crt;
    ssl_certificate_key /tls/tls.key;
    location = /healthz { return 204; }
  }
  server {
    listen 8444 http2;
    root /etc/nginx-config;
    location = /grpc.health.v1.Health/Check { error_page 405 =200 /serving; return 405; }
    location = /serving { default_type application/grpc; add_trailer grpc-status 0 always; }
  }
}
"#;
/// A message of gRPC: the status SERVING.
const SERVING: [u8; 7] = [0, 0, 0, 0, 2, 8, 1];

fn served(node: &Node) -> String {
    node.sh("nginx", "busybox wget -qO- http://localhost:8080/")
}

#[test]
fn an_edit_is_served_after_a_reload_by_a_pod_that_is_probed_over_tls_and_grpc() {
    let Some(node) = Node::start() else { return };
    // Without the watcher of the example: the reload is done by hand.
    let mut conf = crate::host::config_map("conf", json!({"nginx.conf": CONF}));
    conf["binaryData"] = json!({"serving": BASE64_STANDARD.encode(SERVING)});
    let pair = rcgen::generate_simple_self_signed(["of.nobody.example".to_owned()]).expect("a certificate");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": pair.cert.pem(), "tls.key": pair.signing_key.serialize_pem()}});
    node.create([
        conf,
        secret,
        crate::host::pod("nginx", json!({
            "containers": [{"name": "nginx", "image": "nginx", "args": ["-c", "/etc/nginx-config/nginx.conf", "-g", "daemon off;"],
                // Nobody trusts the certificate, and a probe does not ask for that.
                "readinessProbe": {"httpGet": {"scheme": "HTTPS", "path": "/healthz", "port": 8443}, "periodSeconds": 1},
                "startupProbe": {"grpc": {"port": 8444}, "periodSeconds": 1, "failureThreshold": 1_000},
                "volumeMounts": [{"name": "c", "mountPath": "/etc/nginx-config"}, {"name": "t", "mountPath": "/tls"}]}],
            "volumes": [{"name": "c", "configMap": {"name": "conf"}}, {"name": "t", "secret": {"secretName": "tls"}}]})),
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
