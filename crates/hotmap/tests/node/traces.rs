//! The way of a change as one trace, from the request to what a container sees.

use std::{collections::BTreeMap, time::Instant};

use serde_json::json;

use crate::{
    harness::{Http, PATIENCE, Release},
    host::{Node, config_map, idle, pod},
};

/// One line of `--log-spans`.
#[derive(Debug, Clone)]
struct Span {
    name: String,
    id: String,
    parent: String,
    line: String,
}

/// Spans of a trace, by name; the last of each.
fn spans(log: &str, trace: &str) -> BTreeMap<String, Span> {
    let lines = log
        .lines()
        .filter(|line| line.contains(&format!(" trace={trace} ")));
    lines
        .map(|line| {
            let words = Vec::from_iter(line.split(' '));
            let value = |key: &str| {
                let found = words.iter().find_map(|word| word.strip_prefix(key));
                found.unwrap_or_else(|| panic!("no {key} in {line}")).to_owned()
            };
            let span = Span {
                name: words[2].to_owned(),
                id: value("span="),
                parent: value("parent="),
                line: line.to_owned(),
            };
            (span.name.clone(), span)
        })
        .collect()
}

#[test]
fn a_change_is_one_trace_from_the_request_to_the_file() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const CALLER: &str = "00f067aa0ba902b7";
    /// Each step with the one it is a part of.
    const WAY: [(&str, &str); 6] = [
        ("commit", "request"),
        ("heard", "request"),
        ("volume", "heard"),
        ("payload", "volume"),
        ("write", "volume"),
        ("subpath", "volume"),
    ];
    let Some(node) = Node::start_with(Release::Newest, &["--log-spans"]) else {
        return;
    };
    let mut live = pod(
        "p",
        json!({
            "containers": [idle(json!({"volumeMounts": [
                {"name": "config", "mountPath": "/etc/app.conf", "subPath": "key"},
                {"name": "config", "mountPath": "/whole"}]}))],
            "volumes": [{"name": "config", "configMap": {"name": "c"}}],
        }),
    );
    live["metadata"]["annotations"] = json!({"hotmap.dev/live-subpath": "true"});
    node.create([config_map("c", json!({"key": "one"})), live]);
    node.ready("p");

    let admin = Http::admin(&node.server);
    let change = |traceparent: &str, value: &str| {
        let headers = [
            ("content-type", "application/merge-patch+json"),
            ("traceparent", traceparent),
        ];
        let body = json!({"data": {"key": value}}).to_string();
        let path = "/api/v1/namespaces/default/configmaps/c";
        assert_eq!(admin.send("PATCH", path, &headers, body).code, 200);
        node.until_file("p", "/whole/key", value);
    };
    change(&format!("00-{TRACE}-{CALLER}-01"), "hunter2");
    let begun = Instant::now();
    let way = loop {
        let way = spans(&node.server.log(), TRACE);
        if way.contains_key("request") && WAY.iter().all(|(step, _)| way.contains_key(*step)) {
            break way;
        }
        // Each question takes a moment, and something has to say how far it got.
        assert!(begun.elapsed() < PATIENCE, "{way:#?}");
        node.ok("get --raw /readyz");
    };
    assert_eq!(way["request"].parent, CALLER);
    crate::has(
        &way["request"].line,
        &[
            r#" verb="PATCH" resource="configmaps" namespace="default" name="c""#,
            " code=200",
        ],
    );
    for (step, part_of) in WAY {
        assert_eq!(way[step].parent, way[part_of].id, "{step} in {way:#?}");
    }

    // Neither what nobody keeps nor what is no trace gets into a log as one.
    change(&format!("00-{}-{CALLER}-00", TRACE.replace('4', "5")), "two");
    change(
        &format!("00-{}-{CALLER}-01-more", TRACE.replace('4', "6")),
        "three",
    );
    let log = node.server.log();
    assert!(spans(&log, &TRACE.replace('4', "5")).is_empty(), "{log}");
    assert!(spans(&log, &TRACE.replace('4', "6")).is_empty(), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}
