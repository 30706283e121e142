//! Programs that many manifests name, started as their images are: by name, without a command.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    harness::skipped,
    host::{Node, config_map, pod},
};

const HAPROXY: &str = "defaults\n  mode http\n  timeout client 10s\n  timeout connect 1s\n  timeout server 10s\n\
    frontend web\n  bind :8080\n  http-request return status 200\n";

#[test]
fn the_programs_of_the_table_serve_under_the_default_profile() {
    let Some(node) = Node::start() else { return };
    node.create([config_map("haproxy", json!({"haproxy.cfg": HAPROXY}))]);
    let exec = |command: Value| json!({"exec": {"command": command}, "periodSeconds": 1});
    let http = |path: &str, port: u16| json!({"httpGet": {"path": path, "port": port}, "periodSeconds": 1});
    let psql = json!(["psql", "-h", "127.0.0.1", "-U", "app", "-c", "select 1", "shop"]);
    let containers = [
        (
            "/usr/bin/redis-server",
            json!({"name": "redis", "image": "docker.io/library/redis:8", "args": ["--save", ""],
                "readinessProbe": exec(json!(["redis-cli", "ping"]))}),
        ),
        (
            "/usr/bin/pg_ctlcluster",
            json!({"name": "postgres", "image": "postgres:18", "readinessProbe": exec(psql), "env": [
                {"name": "POSTGRES_USER", "value": "app"}, {"name": "POSTGRES_DB", "value": "shop"},
                {"name": "POSTGRES_PASSWORD", "value": "hush"}, {"name": "PGPASSWORD", "value": "hush"}]}),
        ),
        (
            "/usr/bin/prometheus",
            json!({"name": "prometheus", "image": "prom/prometheus", "readinessProbe": http("/-/ready", 9090)}),
        ),
        (
            "/usr/sbin/haproxy",
            json!({"name": "haproxy", "image": "haproxy:3.2", "args": ["-f", "/config/haproxy.cfg"],
                "readinessProbe": http("/", 8080), "volumeMounts": [{"name": "config", "mountPath": "/config"}]}),
        ),
        (
            "/usr/sbin/nginx",
            json!({"name": "nginx", "image": "nginx", "readinessProbe": http("/", 80)}),
        ),
        (
            "/usr/bin/python3",
            json!({"name": "python", "image": "python", "command": ["python3", "-m", "http.server", "8000"],
                "readinessProbe": http("/etc/hostname", 8000)}),
        ),
    ];
    let mut present = Vec::new();
    for (program, container) in containers {
        if Path::new(program).exists() {
            present.push(container);
        } else {
            skipped(&format!("{program} is not here; scripts/tools installs it"));
        }
    }
    let names: Vec<String> = present
        .iter()
        .map(|one| one["name"].as_str().expect("named").to_owned())
        .collect();
    node.create([pod(
        "all",
        json!({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}, "containers": present,
            "volumes": [{"name": "config", "configMap": {"name": "haproxy"}}]}),
    )]);
    node.ready("all");
    for name in names {
        let confined = [
            "exec",
            "all",
            "-c",
            &name,
            "--",
            "grep",
            "Seccomp:",
            "/proc/1/status",
        ];
        assert_eq!(node.call(&confined).ok(), "Seccomp:\t2\n", "{name}");
    }
    assert_eq!(
        node.field("pod/all", ".status.containerStatuses[*].restartCount")
            .replace(' ', "")
            .trim_matches('0'),
        ""
    );
}
