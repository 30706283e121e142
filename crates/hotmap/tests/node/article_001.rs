//! The experiments of examples/article-001.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{deployments::answers, has, host::Node};

/// What `kubectl edit` is given for an editor.
const INFO_TO_DEBUG: &str = r#"sed -i s/INFO/DEBUG/ "$1""#;

pub(crate) fn example(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    fs::read_to_string(root.join(path)).expect("an example of ours")
}

#[test]
fn an_edit_reaches_the_volume_and_a_new_pod_the_environment_and_the_subpath() {
    let Some(node) = Node::start() else { return };
    node.apply(&example("article-001/my-nginx.yaml"));
    let rolled_out = || node.ok("rollout status deployment my-nginx --timeout=120s");
    rolled_out();
    let pod = || {
        let names = node.ok("get pods -l run=my-nginx --field-selector status.phase=Running -o=name");
        let name = names
            .lines()
            .next()
            .expect("a pod")
            .trim_start_matches("pod/")
            .to_owned();
        node.ok(&format!("wait --for=condition=Ready --timeout=120s pod/{name}"));
        name
    };
    let level = |pod: &str| {
        let seen = "env | grep log_level; cat /etc/config/log_level; echo; cat /etc/config-subpath/log_level";
        node.sh(pod, seen)
    };
    let first = pod();
    assert_eq!(level(&first), "log_level=INFO\nINFO\nINFO");
    let process = node.process(&first);

    for name in ["env-config", "special-config"] {
        node.edit(&format!("configmap {name}"), INFO_TO_DEBUG).ok();
    }
    node.until_file(&first, "/etc/config/log_level", "DEBUG");
    assert_eq!(level(&first), "log_level=INFO\nDEBUG\nINFO");
    assert_eq!(node.process(&first), process, "nothing was restarted");

    // As the article ends: an annotation of the template makes new pods.
    let patch = r#"{"spec": {"template": {"metadata": {"annotations": {"version/config": "20180411" }}}}}"#;
    node.call(&["patch", "deployment", "my-nginx", "--patch", patch])
        .ok();
    rolled_out();
    node.ok(&format!("wait --for=delete --timeout=120s pod/{first}"));
    let second = pod();
    assert_eq!(level(&second), "log_level=DEBUG\nDEBUG\nDEBUG");
    let address = node.field(&format!("pod/{second}"), ".status.podIP");
    // The article's pods are ready once they run, a little before nginx listens.
    node.exec(
        &second,
        "until busybox nc -w 5 127.0.0.1 80 < /dev/null; do :; done",
    )
    .ok();
    answers(&address);
    has(&node.ok("rollout history deployment my-nginx"), &["\n1 ", "\n2 "]);
}

#[test]
fn the_articles_text_stays_the_same_to_the_byte() {
    let Some(node) = Node::start() else { return };
    let manifest = example("article-001/nginx-config.yaml");
    let block = manifest.split_once("nginx.conf: |-\n").expect("a block").1;
    let block = block.split_once("\nkind:").expect("an end").0;
    let text = Vec::from_iter(
        block
            .lines()
            .map(|line| line.strip_prefix("    ").unwrap_or(line)),
    )
    .join("\n");
    assert_eq!(text.len(), 1468);

    let pod = crate::host::pod(
        "reader",
        serde_json::json!({"containers": [crate::host::idle(serde_json::json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]}))],
            "volumes": [{"name": "c", "configMap": {"name": "nginx-config"}}]}),
    );
    node.apply(&manifest);
    node.create([pod]);
    node.ready("reader");
    let file = || node.exec("reader", "cat /c/nginx.conf").ok();
    let held = || node.field("configmap/nginx-config", r".data.nginx\.conf");
    assert_eq!((file(), held()), (text.clone(), text.clone()));

    // As it comes back it goes in again, through YAML and through an editor.
    let shown = node.ok("get configmap nginx-config -o yaml");
    has(&shown, &["nginx.conf: |-\n    worker_processes 1;\n"]);
    node.feed("replace -f -", &shown).ok();
    let edited = node.edit(
        "configmap nginx-config",
        r#"sed -i 's/worker_processes 1;/worker_processes 2;/' "$1""#,
    );
    edited.ok();
    let text = text.replacen("worker_processes 1;", "worker_processes 2;", 1);
    node.exec(
        "reader",
        "until grep -q 'processes 2' /c/nginx.conf; do inotifywait -qq -t 1 -e moved_to /c || :; done",
    )
    .ok();
    assert_eq!((file(), held()), (text.clone(), text));
    let document: Value = serde_json::from_str(&node.ok("get configmap nginx-config -o json")).expect("JSON");
    assert_eq!(document["data"].as_object().map(|data| data.len()), Some(1));
}
