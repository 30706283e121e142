//! StatefulSets with real pods: their order, their updates and how one gets back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    harness::Running,
    host::{Node, idle, pod},
};

/// A set with a headless Service, and pods that say which version they are.
fn set(replicas: u32, version: &str, more: Value) -> [Value; 2] {
    let labels = json!({"app": "web"});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 80}]}});
    let mut spec = json!({"serviceName": "web", "replicas": replicas, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels},
            "spec": {"terminationGracePeriodSeconds": 1,
                "containers": [idle(json!({"env": [{"name": "VERSION", "value": version}]}))]}}});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let set =
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec});
    [service, set]
}

fn update(node: &Node, version: &str) {
    node.ok(&format!("set env statefulset/web VERSION={version}"));
}

fn settled(node: &Node) {
    let status = node.run("rollout status statefulset/web --timeout=120s");
    if status.code != 0 {
        panic!(
            "{}\n{}\n{}",
            status.stderr,
            node.ok("get pods,statefulsets"),
            node.ok("get events")
        );
    }
}

/// Waits until a field of the set says this.
fn field(node: &Node, path: &str, value: &str) {
    let condition = format!("--for=jsonpath={{{path}}}={value}");
    node.call(&["wait", "statefulset/web", &condition, "--timeout=120s"])
        .ok();
}

fn versions(node: &Node) -> String {
    let path = r#"jsonpath={range .items[*]}{.metadata.name}={.spec.containers[0].env[0].value} {end}"#;
    node.call(&["get", "pods", "-l", "app=web", "-o", path])
        .ok()
        .trim()
        .to_owned()
}

/// One line per change of a pod, from the start on.
struct Story {
    watch: Running,
    pods: BTreeMap<String, Seen>,
    /// `+name` and `-name`: pods that became ready, were asked to go, and are gone (`!name`), in this order.
    told: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Seen {
    uid: String,
    is_ready: bool,
    is_deleted: bool,
}

impl Story {
    fn start(node: &Node) -> Self {
        // What is there when the watch begins comes first: from then on nothing is missed.
        node.create([pod("begin", json!({"containers": [idle(json!({}))]}))]);
        let shape = r#"jsonpath={.type} {.object.metadata.name} {.object.metadata.uid} {.object.status.conditions[?(@.type=="Ready")].status} {.object.metadata.deletionTimestamp}{"\n"}"#;
        let arguments = ["get", "pods", "--watch", "--output-watch-events", "-o", shape];
        let mut watch = Running::start(&mut node.command(&arguments));
        watch.line_with(" begin ");
        Self {
            watch,
            pods: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    /// What happened until this did.
    fn until(&mut self, last: &str) -> String {
        while self.told.last().is_none_or(|told| told != last) {
            let line = self.watch.line_with(" web-");
            let words: Vec<_> = line.split(' ').collect();
            let [kind, name, uid, ready, deleted] = words[..] else {
                panic!("{line:?}");
            };
            let seen = Seen {
                uid: uid.to_owned(),
                is_ready: ready == "True",
                is_deleted: !deleted.is_empty(),
            };
            let before = self.pods.get(name).filter(|before| before.uid == uid).cloned();
            if seen.is_ready && !before.as_ref().is_some_and(|before| before.is_ready) {
                self.told.push(format!("+{name}"));
            }
            if seen.is_deleted && !before.as_ref().is_some_and(|before| before.is_deleted) {
                self.told.push(format!("-{name}"));
            }
            if kind == "DELETED" {
                self.pods.remove(name);
                self.told.push(format!("!{name}"));
            } else {
                assert!(
                    before.is_some() || !self.pods.contains_key(name),
                    "two pods of one name: {line:?}"
                );
                self.pods.insert(name.to_owned(), seen);
            }
        }
        self.told.drain(..).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn pods_start_stop_and_roll_in_order() {
    let Some(node) = Node::start() else { return };
    let mut story = Story::start(&node);
    node.create(set(3, "1", json!({})));
    assert_eq!(story.until("+web-2"), "+web-0 +web-1 +web-2");
    settled(&node);
    assert_eq!(node.sh("web-1", "hostname"), "web-1");
    let labels = node.field("pod/web-1", ".metadata.labels");
    let labels: Value = serde_json::from_str(&labels).expect("a map");
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-1");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(
        labels["controller-revision-hash"],
        node.field("statefulset/web", ".status.currentRevision").as_str()
    );
    assert_eq!(node.field("pod/web-1", ".spec.subdomain"), "web");

    // The same again changes nothing.
    let before = node.field("statefulset/web", ".metadata.resourceVersion");
    let applied = node.feed("apply -f -", manifest(set(3, "1", json!({})))).ok();
    assert_eq!(applied, "service/web unchanged\nstatefulset.apps/web unchanged\n");
    assert_eq!(node.field("statefulset/web", ".metadata.resourceVersion"), before);

    update(&node, "2");
    assert_eq!(
        story.until("+web-0"),
        "-web-2 !web-2 +web-2 -web-1 !web-1 +web-1 -web-0 !web-0 +web-0"
    );
    settled(&node);
    assert_eq!(versions(&node), "web-0=2 web-1=2 web-2=2");

    node.ok("scale statefulset/web --replicas=1");
    assert_eq!(story.until("!web-1"), "-web-2 !web-2 -web-1 !web-1");
    node.ok("scale statefulset/web --replicas=2");
    assert_eq!(story.until("+web-1"), "+web-1");

    // A pod that somebody deletes comes back under its name.
    node.ok("delete pod web-0");
    assert_eq!(story.until("+web-0"), "-web-0 !web-0 +web-0");
    node.event(
        "web",
        "SuccessfulCreate: Create Pod web-0 in StatefulSet web successful",
    );
    node.event(
        "web",
        "SuccessfulDelete: Delete Pod web-2 in StatefulSet web successful",
    );

    node.ok("delete statefulset web --timeout=120s");
    node.ok("wait --for=delete pod/web-0 pod/web-1 --timeout=120s");
    assert_eq!(node.ok("get controllerrevisions -o name"), "");
}

fn manifest(objects: impl IntoIterator<Item = Value>) -> String {
    let items = Vec::from_iter(objects);
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn a_partition_holds_an_update_back_and_history_leads_back() {
    let Some(node) = Node::start() else { return };
    let partition =
        |at: u32| json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": at}}});
    let set = |version: &str, at| {
        let mut more = partition(at);
        more["podManagementPolicy"] = "Parallel".into();
        set(3, version, more)
    };
    node.create(set("1", 2));
    settled(&node);
    node.create(set("2", 2));
    settled(&node);
    assert_eq!(versions(&node), "web-0=1 web-1=1 web-2=2");
    field(&node, ".status.currentReplicas", "2");
    field(&node, ".status.updatedReplicas", "1");

    // Below the partition a lost pod comes back as it was.
    node.ok("delete pod web-0");
    field(&node, ".status.readyReplicas", "3");
    assert_eq!(versions(&node), "web-0=1 web-1=1 web-2=2");

    node.create(set("2", 0));
    settled(&node);
    assert_eq!(versions(&node), "web-0=2 web-1=2 web-2=2");
    let (current, update) = (".status.currentRevision", ".status.updateRevision");
    assert_eq!(
        node.field("statefulset/web", current),
        node.field("statefulset/web", update)
    );

    let history = node.ok("rollout history statefulset/web");
    assert_eq!(numbers(&history), ["1", "2"], "{history}");
    crate::has(
        &node.ok("rollout history statefulset/web --revision=1"),
        &["VERSION:\t1"],
    );
    crate::has(&node.ok("rollout undo statefulset/web"), &["rolled back"]);
    settled(&node);
    assert_eq!(versions(&node), "web-0=1 web-1=1 web-2=1");
    let history = node.ok("rollout history statefulset/web");
    assert_eq!(numbers(&history), ["2", "3"], "{history}");
    assert_eq!(node.ok("get controllerrevisions -o name").lines().count(), 2);
}

/// The revisions in what `kubectl rollout history` prints.
fn numbers(history: &str) -> Vec<&str> {
    let rows = history.lines().filter_map(|line| line.split_whitespace().next());
    rows.filter(|word| word.parse::<u32>().is_ok()).collect()
}

#[test]
fn a_broken_update_stops_at_its_first_pod_and_needs_a_hand_to_get_back() {
    let Some(node) = Node::start() else { return };
    node.create(set(2, "1", json!({})));
    settled(&node);
    let mut story = Story::start(&node);
    assert_eq!(story.until("+web-1"), "+web-0 +web-1");
    // Without a command it is the image that says what to run, and this one stands for nothing here.
    let broken = json!({"spec": {"template": {"spec": {"containers":
        [{"name": "main", "image": "memcached:1", "command": null, "args": null}]}}}});
    node.call(&["patch", "statefulset/web", "-p", &broken.to_string()])
        .ok();
    assert_eq!(story.until("!web-1"), "-web-1 !web-1");
    node.waiting("web-1", "ErrImageNeverPull");
    field(&node, ".status.readyReplicas", "1");
    assert_eq!(node.sh("web-0", "echo $VERSION"), "1");

    // As upstream: putting the template back is not enough.
    node.ok("rollout undo statefulset/web");
    field(&node, ".status.observedGeneration", "3");
    node.waiting("web-1", "ErrImageNeverPull");
    node.ok("delete pod web-1");
    settled(&node);
    assert_eq!(versions(&node), "web-0=1 web-1=1");
}

#[test]
fn on_delete_leaves_the_update_to_whoever_deletes() {
    let Some(node) = Node::start() else { return };
    node.create(set(
        2,
        "1",
        json!({"updateStrategy": {"type": "OnDelete"}, "ordinals": {"start": 3}}),
    ));
    field(&node, ".status.readyReplicas", "2");
    update(&node, "2");
    field(&node, ".status.observedGeneration", "2");
    assert_eq!(versions(&node), "web-3=1 web-4=1");
    let mut story = Story::start(&node);
    node.ok("delete pod web-3");
    story.until("+web-3");
    assert_eq!(versions(&node), "web-3=2 web-4=1");
}
