//! Jobs with real pods: they complete, fail, wait and go.

use serde_json::{Value, json};

use crate::host::{Node, shell};

fn job(name: &str, script: &str, spec: Value) -> Value {
    let pod = json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [shell(script, json!({}))]});
    let mut full = json!({"template": {"spec": pod}});
    let fields = spec.as_object().expect("an object").clone();
    full.as_object_mut().expect("an object").extend(fields);
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": full})
}

fn wait_for(node: &Node, condition: &str, job: &str) {
    node.ok(&format!(
        "wait --for=condition={condition} job/{job} --timeout=120s"
    ));
}

#[test]
fn a_job_completes_and_keeps_its_pods_and_logs() {
    let Some(node) = Node::start() else { return };
    node.ok("create job hello --image=busybox -- echo hello from a job");
    wait_for(&node, "complete", "hello");
    assert_eq!(node.ok("logs job/hello").trim(), "hello from a job");
    assert_eq!(node.field("job/hello", ".status.succeeded"), "1");
    assert_eq!(node.field("job/hello", ".status.uncountedTerminatedPods"), "{}");
    let line = node.ok("get job hello --no-headers");
    assert!(line.contains("Complete") && line.contains("1/1"), "{line}");
    let text = node.ok("describe job hello");
    for part in [
        "SuccessfulCreate",
        "Completed",
        "Pods Statuses:",
        "0 Active (0 Ready) / 1 Succeeded / 0 Failed",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Its end is written down: nothing holds the pod any more.
    let finalizers = node.ok("get pods -l job-name=hello -o jsonpath={.items[*].metadata.finalizers}");
    assert_eq!(finalizers, "");
    node.ok("delete job hello --timeout=120s");
    node.ok("wait --for=delete pod -l job-name=hello --timeout=120s");
}

#[test]
fn every_index_has_its_pod() {
    let Some(node) = Node::start() else { return };
    let script = "echo index $JOB_COMPLETION_INDEX on $(hostname); test $JOB_COMPLETION_INDEX != 1";
    let spec =
        json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 0});
    node.create([job("sum", script, spec)]);
    wait_for(&node, "failed", "sum");
    assert_eq!(node.field("job/sum", ".status.completedIndexes"), "0,2");
    assert_eq!(node.field("job/sum", ".status.failedIndexes"), "1");
    assert_eq!(
        node.field("job/sum", ".status.conditions[?(@.type=='Failed')].reason"),
        "FailedIndexes"
    );
    let log = node.ok("logs -l batch.kubernetes.io/job-completion-index=2 --tail=-1");
    assert_eq!(log.trim(), "index 2 on sum-2");
}

#[test]
fn a_failing_job_is_given_up_and_its_time_ends() {
    let Some(node) = Node::start() else { return };
    node.create([
        job("once", "exit 3", json!({"backoffLimit": 0})),
        job("late", "sleep infinity", json!({"activeDeadlineSeconds": 1})),
        job("policy", "exit 42", json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}})),
        job("gone", "true", json!({"ttlSecondsAfterFinished": 0})),
    ]);
    for (name, reason) in [
        ("once", "BackoffLimitExceeded"),
        ("late", "DeadlineExceeded"),
        ("policy", "PodFailurePolicy"),
    ] {
        wait_for(&node, "failed", name);
        let path = ".status.conditions[?(@.type=='Failed')].reason";
        assert_eq!(node.field(&format!("job/{name}"), path), reason);
        assert_eq!(
            node.field(&format!("job/{name}"), ".status.failed"),
            "1",
            "{name}"
        );
    }
    node.ok("wait --for=delete job/gone --timeout=120s");
    node.ok("wait --for=delete pod -l job-name=gone --timeout=120s");
}

#[test]
fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let Some(node) = Node::start() else { return };
    node.create([job("later", "echo now; sleep infinity", json!({"suspend": true}))]);
    wait_for(&node, "suspended", "later");
    assert_eq!(node.ok("get pods -l job-name=later -o name"), "");
    node.ok(r#"patch job later -p {"spec":{"suspend":false}}"#);
    node.ok("wait --for=jsonpath={.status.ready}=1 job/later --timeout=120s");
    node.ok(r#"patch job later -p {"spec":{"suspend":true}}"#);
    wait_for(&node, "suspended", "later");
    node.ok("wait --for=delete pod -l job-name=later --timeout=120s");
    assert_eq!(node.field("job/later", ".status.failed"), "");
    assert_eq!(node.field("job/later", ".status.startTime"), "");
}

#[test]
fn a_cron_job_lends_its_template_and_keeps_its_jobs_in_view() {
    let Some(node) = Node::start() else { return };
    node.ok("create cronjob tick --image=busybox --schedule=@yearly -- echo tick");
    node.ok("create job by-hand --from=cronjob/tick");
    wait_for(&node, "complete", "by-hand");
    let line = node.ok("get cronjob tick --no-headers");
    assert!(line.contains("@yearly") && line.contains("False"), "{line}");
    node.ok("wait --for=jsonpath={.status.lastSuccessfulTime} cronjob/tick --timeout=120s");
    // What it owns goes with it.
    node.ok("delete cronjob tick --timeout=120s");
    node.ok("wait --for=delete job/by-hand --timeout=120s");
}

#[test]
fn a_job_survives_a_crash_of_the_server() {
    let Some(mut node) = Node::start() else { return };
    let script = "mkfifo /gate; cat /gate";
    node.create([job("steady", script, json!({"completions": 1}))]);
    node.ok("wait --for=jsonpath={.status.ready}=1 job/steady --timeout=120s");
    node.server.crash_and_restart();
    let pod = node.ok("get pods -l job-name=steady -o jsonpath={.items[*].metadata.name}");
    // The word ends the container, and that may end the writer too.
    drop(node.exec(&pod, "until test -p /gate; do :; done; echo go > /gate"));
    wait_for(&node, "complete", "steady");
    assert_eq!(node.field("job/steady", ".status.succeeded"), "1");
    assert_eq!(node.field("job/steady", ".status.failed"), "");
}
