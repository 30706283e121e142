//! The failure story of examples/article-002: a bad configuration, edited in place, waits in every pod for its restart.

use serde_json::{Value, json};

use crate::{article_001::example, has, host::Node};

const GOOD: &str = "article-002/nginx.yaml";
const BROKEN: &str = "article-002/broken-config.yaml";

/// Pods as the example's Deployment has them, without it: nothing makes new ones here.
fn pods_of_the_template(node: &Node) -> Vec<String> {
    let shown = node
        .feed("create --dry-run=client -o json -f -", example(GOOD))
        .ok();
    let (config, deployment) = {
        let mut documents = serde_json::Deserializer::from_str(&shown).into_iter::<Value>();
        let list = documents.next().expect("a list").expect("JSON");
        match list["items"].as_array() {
            Some(items) => (items[0].clone(), items[1].clone()),
            None => (list, documents.next().expect("a Deployment").expect("JSON")),
        }
    };
    let names: Vec<String> = (0..3).map(|number| format!("nginx-{number}")).collect();
    let pods = names.iter().map(|name| {
        let mut metadata = deployment["spec"]["template"]["metadata"].clone();
        metadata["name"] = name.as_str().into();
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": deployment["spec"]["template"]["spec"]})
    });
    node.create([config].into_iter().chain(pods));
    names
}

fn served(node: &Node, pod: &str) -> String {
    node.sh(pod, "busybox wget -qO- http://localhost/")
}

#[test]
fn a_bad_configuration_reaches_every_pod_and_breaks_each_at_its_next_start() {
    let Some(node) = Node::start() else { return };
    let pods = pods_of_the_template(&node);
    node.ready(&pods.join(" "));
    node.apply(&example(BROKEN));
    for pod in &pods {
        let wait = "until grep -q lissten /etc/nginx-config/nginx.conf; do inotifywait -qq -t 1 -e moved_to /etc/nginx-config; done";
        node.exec(pod, wait).ok();
        assert_eq!(served(&node, pod), "good configuration", "{pod} has not read it");
    }

    node.sh(&pods[0], "kill 1");
    node.waiting(&pods[0], "CrashLoopBackOff");
    has(
        &node.ok(&format!("logs {}", pods[0])),
        &["unknown directive \"lissten\""],
    );
    node.wait(&pods[0], "condition=Ready=false");
    for pod in &pods[1..] {
        assert_eq!(served(&node, pod), "good configuration");
    }

    // Put right in place, it heals in place.
    let good = example(GOOD);
    let config = good.split_once("\n---").expect("two documents").0;
    node.apply(config);
    node.ready(&pods.join(" "));
    assert_eq!(served(&node, &pods[0]), "good configuration");
}
