//! Deployments with real pods, driven by kubectl.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::{
    harness::Running,
    has,
    host::{Node, idle, pod},
};

/// A deployment named `web` whose pods do nothing until they are asked to stop.
fn deployment(spec: Value) -> Value {
    let mut deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [idle(json!({"env": [{"name": "LEVEL", "value": "one"}]}))]}},
    }});
    for (key, value) in spec.as_object().expect("fields") {
        deployment["spec"][key] = value.clone();
    }
    // A shell that is asked to stop before it has set its trap does not hear it.
    deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 2.into();
    deployment
}

trait Rollouts {
    fn rolled_out(&self);
    fn until(&self, field: &str);
    fn patch(&self, patch: &Value);
    fn pods(&self) -> Vec<String>;
    fn level(&self) -> String;
}

impl Rollouts for Node {
    #[track_caller]
    fn rolled_out(&self) {
        self.ok("rollout status deployment/web --timeout=120s");
    }

    /// Waits for a field of the deployment, as `{path}=value`.
    #[track_caller]
    fn until(&self, field: &str) {
        let field = format!("--for=jsonpath={field}");
        self.call(&["wait", "--timeout=120s", &field, "deployment/web"])
            .ok();
    }

    #[track_caller]
    fn patch(&self, patch: &Value) {
        self.call(&["patch", "deployment", "web", "--patch", &patch.to_string()])
            .ok();
    }

    /// Names of the pods that stay, sorted.
    fn pods(&self) -> Vec<String> {
        let shape =
            r#"jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.deletionTimestamp}{"\n"}{end}"#;
        let listed = self.call(&["get", "pods", "-l", "app=web", "-o", shape]).ok();
        let staying = listed.lines().filter_map(|line| line.strip_suffix(' '));
        let mut names: Vec<String> = staying.map(str::to_owned).collect();
        names.sort();
        names
    }

    /// What the processes of the staying pods have in their environment, if they agree.
    fn level(&self) -> String {
        let mut levels: Vec<String> = self
            .pods()
            .iter()
            .map(|pod| self.sh(pod, "echo $LEVEL"))
            .collect();
        levels.dedup();
        levels.join(" ")
    }
}

#[test]
fn kubectl_rolls_deployments_out_back_and_on() {
    let Some(node) = Node::start() else { return };
    node.create([deployment(json!({"replicas": 2}))]);
    node.rolled_out();
    let first = node.pods();
    assert_eq!((first.len(), node.level().as_str()), (2, "one"));

    // In one write: no rollout status waits for an annotation alone.
    let env = json!([{"name": "main", "env": [{"name": "LEVEL", "value": "two"}]}]);
    node.patch(&json!({
        "metadata": {"annotations": {"kubernetes.io/change-cause": "second"}},
        "spec": {"template": {"spec": {"containers": env}}},
    }));
    node.rolled_out();
    assert_eq!(node.level(), "two");
    assert!(node.pods().iter().all(|pod| !first.contains(pod)));
    has(
        &node.ok("rollout history deployment/web"),
        &["1         <none>", "2         second"],
    );
    has(
        &node.ok("rollout history deployment/web --revision=1"),
        &["LEVEL:\tone"],
    );

    node.ok("rollout undo deployment/web");
    node.rolled_out();
    assert_eq!(node.level(), "one");
    node.ok("rollout undo deployment/web --to-revision=2");
    node.rolled_out();
    assert_eq!(node.level(), "two");
    let revision = r".metadata.annotations.deployment\.kubernetes\.io/revision";
    assert_eq!(node.field("deployment/web", revision), "4");

    node.ok("rollout pause deployment/web");
    node.ok("set env deployment/web LEVEL=three");
    node.ok("set image deployment/web main=busybox:3");
    node.ok("set resources deployment/web --limits=memory=64Mi");
    node.ok("scale deployment/web --replicas=3");
    node.until("{.status.availableReplicas}=3");
    assert_eq!(node.level(), "two", "paused, it grows and does not roll");
    node.ok("rollout resume deployment/web");
    node.rolled_out();
    assert_eq!(node.level(), "three");
    assert_eq!(
        node.field("deployment/web", revision),
        "5",
        "three edits, one rollout"
    );
    let container = node.field(&format!("pod/{}", node.pods()[0]), ".spec.containers[0]");
    has(
        &container,
        &[r#""image":"busybox:3""#, r#""limits":{"memory":"64Mi"}"#],
    );

    let before = node.pods();
    node.ok("rollout restart deployment/web");
    node.rolled_out();
    assert!(node.pods().iter().all(|pod| !before.contains(pod)));
    node.ok("scale deployment/web --replicas=1");
    node.rolled_out();
    assert_eq!(node.pods().len(), 1);
    for (direction, sizes) in [("up", "from 0 to 2"), ("down", "from 3 to 1")] {
        let told = node.event("web", sizes);
        has(
            &told,
            &[&format!("ScalingReplicaSet: Scaled {direction} replica set web-")],
        );
    }
}

#[test]
fn a_rollout_that_cannot_succeed_stops_with_the_old_pods_serving() {
    let Some(node) = Node::start() else { return };
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx",
            "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1}}]},
    });
    node.create([deployment(json!({"template": template}))]);
    node.rolled_out();
    let serving = node.pods();
    let bad_image = json!({"image": "memcached:1"});
    let bad_command = json!({"command": ["there-is-no-such-command"]});
    let bad_probe = json!({"readinessProbe": {"tcpSocket": {"port": 81}}});
    for mut container in [bad_image, bad_command, bad_probe] {
        container["name"] = "main".into();
        let template = json!({"spec": {"containers": [container]}});
        node.patch(&json!({"spec": {"progressDeadlineSeconds": 2, "template": template}}));
        // Once its only pod is there, the rollout makes no progress any more.
        node.until("{.status.updatedReplicas}=1");
        node.until(r#"{.status.conditions[?(@.type=="Progressing")].reason}=ProgressDeadlineExceeded"#);
        let status = node.run("rollout status deployment/web --timeout=120s").refused();
        has(
            &status,
            &["error: deployment \"web\" exceeded its progress deadline"],
        );
        let available = r#".status.conditions[?(@.type=="Available")].status"#;
        assert_eq!(node.field("deployment/web", available), "True");
        let pods = node.pods();
        assert_eq!(pods.len(), serving.len() + 1, "{pods:?}");
        for pod in &serving {
            assert!(pods.contains(pod), "the old ones stay: {pods:?}");
            answers(&node.field(&format!("pod/{pod}"), ".status.podIP"));
        }
        if container["image"] == "memcached:1" {
            let new = pods.iter().find(|pod| !serving.contains(pod));
            node.waiting(new.expect("one more"), "ErrImageNeverPull");
        }
        node.patch(&json!({"spec": {"progressDeadlineSeconds": 600}}));
        node.ok("rollout undo deployment/web");
        node.rolled_out();
        assert_eq!(node.pods(), serving, "the old pods were never touched");
    }
}

#[test]
fn orphans_are_adopted_and_nothing_restarts() {
    let Some(node) = Node::start() else { return };
    node.create([deployment(json!({}))]);
    node.rolled_out();
    let pods = node.pods();
    let uid = |object: &str| node.field(object, ".metadata.uid");
    let set = node.ok("get replicasets -l app=web -o name").trim().to_owned();
    let (set_uid, process) = (uid(&set), node.process(&pods[0]));
    node.ok("delete deployment web --cascade=orphan");
    assert_eq!(node.field(&set, ".metadata.ownerReferences"), "");

    node.create([deployment(json!({}))]);
    node.rolled_out();
    assert_eq!(
        node.field(&set, ".metadata.ownerReferences[0].uid"),
        uid("deployment/web")
    );
    assert_eq!(
        (node.pods(), uid(&set), node.process(&pods[0])),
        (pods.clone(), set_uid, process)
    );

    // A pod that the selector matches is adopted, and then it is one too many; who is not ready goes first.
    let hash = node.field(&set, ".metadata.labels.pod-template-hash");
    let never = json!({"readinessProbe": {"exec": {"command": ["false"]}}});
    let mut extra = pod("extra", json!({"containers": [idle(never)]}));
    extra["metadata"]["labels"] = json!({"app": "web", "pod-template-hash": hash});
    node.create([extra]);
    node.ok("wait --for=delete pod/extra --timeout=120s");
    assert_eq!(node.pods(), pods);
}

#[test]
fn recreate_never_runs_two_versions() {
    let Some(node) = Node::start() else { return };
    let strategy = json!({"type": "Recreate"});
    node.create([deployment(json!({"strategy": strategy, "replicas": 2}))]);
    node.rolled_out();
    let old = node.pods();
    let shape = r#"jsonpath={.type} {.object.metadata.name} {.object.status.phase}{"\n"}"#;
    let watch = [
        "get",
        "pods",
        "-l",
        "app=web",
        "--watch",
        "--output-watch-events",
        "-o",
        shape,
    ];
    let mut watch = Running::start(&mut node.command(&watch));
    for _ in &old {
        watch.line_with("ADDED ");
    }
    node.ok("set env deployment/web LEVEL=two");
    let mut ended = BTreeSet::new();
    let first = loop {
        let line = watch.line_with("web-");
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_default();
        let (what, name, phase) = (word(), word(), word());
        match (what, phase) {
            ("ADDED", _) => break name.to_owned(),
            ("DELETED", _) | (_, "Succeeded" | "Failed") => ended.insert(name.to_owned()),
            _ => false,
        };
    };
    assert!(
        old.iter().all(|pod| ended.contains(pod)),
        "{first} came while {ended:?} of {old:?} had ended"
    );
    node.rolled_out();
    assert_eq!(node.level(), "two");
}

/// Asks nginx on port 80 of a pod.
#[track_caller]
pub(crate) fn answers(address: &str) {
    let mut stream = TcpStream::connect((address, 80)).expect("nginx listens on port 80 of each pod");
    stream
        .write_all(b"HEAD / HTTP/1.0\r\n\r\n")
        .expect("it is connected");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    has(&answer, &["HTTP/1.1 ", "Server: nginx"]);
}
