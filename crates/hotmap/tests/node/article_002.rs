//! The failure story of examples/article-002: a bad configuration, edited in place, waits in every pod for its restart.

use serde_json::{Value, json};

use crate::{article_001::example, harness::Running, has, host::Node};

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
        let wait = "until grep -q lissten /etc/nginx-config/nginx.conf; do inotifywait -qq -t 1 -e moved_to /etc/nginx-config || :; done";
        node.exec(pod, wait).ok();
        assert_eq!(served(&node, pod), "good configuration", "{pod} has not read it");
    }

    // The shell that kills may go with its pod before it says so.
    node.exec(&pods[0], "kill 1");
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

/// The annotation that says which configuration the template is for, as the README's patch sets it.
const ROLL: &str = r#"{"spec": {"template": {"metadata": {"annotations": {"config/md5": "ee69d8c0ed3d1a107c5d26dd03cc1610"}}}}}"#;
/// One line per change of a pod: its name, and why its container waits.
const WAITS: &str = r#"jsonpath={.metadata.name} {.status.containerStatuses[0].state.waiting.reason}{"\n"}"#;

#[test]
fn a_rollout_stops_at_the_bad_configuration_and_saves_nobody() {
    let Some(node) = Node::start() else { return };
    node.apply(&example(GOOD));
    node.ok("rollout status deployment/nginx --timeout=120s");
    let old = node.ok("get pods -l app=nginx -o name");
    let old: Vec<&str> = old.lines().map(|line| line.trim_start_matches("pod/")).collect();
    assert_eq!(old.len(), 3);
    node.apply(&example(BROKEN));
    node.call(&["patch", "deployment", "nginx", "-p", ROLL]).ok();
    let broken = |pod: &str| {
        let mut watch = node.command(&["get", "pods", "-l", "app=nginx", "--watch", "-o", WAITS]);
        let line = Running::start(&mut watch).line_with(&format!("{pod} CrashLoopBackOff"));
        line.split(' ').next().map(str::to_owned)
    };
    let new = broken("").expect("a name");
    assert!(!old.contains(&new.as_str()), "{new} is one of {old:?}");
    // The rollout does not get on, and what it has not replaced serves.
    let shown = node.field("deployment/nginx", ".status");
    let status: Value = serde_json::from_str(&shown).expect("JSON");
    let counts = ["updatedReplicas", "readyReplicas", "replicas"].map(|field| &status[field]);
    assert_eq!(counts, [&json!(1), &json!(3), &json!(4)], "{shown}");
    node.run("rollout status deployment/nginx --timeout=1s").refused();
    for pod in &old {
        assert_eq!(served(&node, pod), "good configuration");
    }

    node.exec(old[0], "kill 1");
    broken(old[0]);
    node.ok("wait deployment/nginx --for=jsonpath={.status.readyReplicas}=2 --timeout=120s");

    let good = example(GOOD);
    node.apply(good.split_once("\n---").expect("two documents").0);
    node.ok("rollout status deployment/nginx --timeout=120s");
}
