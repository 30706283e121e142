//! Nodes without anybody behind them: what their taints do, and to whom.

use crate::harness::{Kubectl, Release};

/// A node that says that it is ready, though nobody is there.
fn create_node(kubectl: &Kubectl, name: &str) {
    kubectl.apply(&format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}"
    ));
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl
        .call(&[
            "patch",
            "node",
            name,
            "--subresource=status",
            "--type=merge",
            "-p",
            status,
        ])
        .ok();
}

fn create_pod(kubectl: &Kubectl, name: &str, node: &str, tolerations: &str) {
    kubectl.apply(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{nodeName: {node}, tolerations: [{tolerations}], containers: [{{name: c, image: busybox}}]}}}}"
    ));
}

/// Waits until the node has this taint, with this effect.
fn wait_for_taint(kubectl: &Kubectl, node: &str, key: &str, effect: &str) {
    let condition = format!("--for=jsonpath={{.spec.taints[?(@.effect==\"{effect}\")].key}}={key}");
    kubectl
        .call(&["wait", &format!("node/{node}"), &condition, "--timeout=60s"])
        .ok();
}

#[test]
fn a_node_that_cannot_be_reached_is_tainted_and_its_pods_are_told() {
    let Some(kubectl) = Kubectl::with_server(Release::Newest) else {
        return;
    };
    let kubectl = &kubectl;
    create_node(kubectl, "sick");
    create_pod(kubectl, "p", "sick", "");
    let ready = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl
        .call(&[
            "patch",
            "pod",
            "p",
            "--subresource=status",
            "--type=merge",
            "-p",
            ready,
        ])
        .ok();
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}"#;
    kubectl
        .call(&[
            "patch",
            "node",
            "sick",
            "--subresource=status",
            "--type=merge",
            "-p",
            status,
        ])
        .ok();
    wait_for_taint(kubectl, "sick", "node.kubernetes.io/unreachable", "NoSchedule");
    wait_for_taint(kubectl, "sick", "node.kubernetes.io/unreachable", "NoExecute");
    kubectl.ok("wait pod/p --for=condition=Ready=false --timeout=60s");
    // It has five minutes, like every pod that says nothing else.
    assert_eq!(
        kubectl.field("pod/p", ".spec.tolerations[*].tolerationSeconds"),
        "300 300"
    );
    assert_eq!(
        kubectl.field("pod/p", ".spec.tolerations[*].key"),
        "node.kubernetes.io/not-ready node.kubernetes.io/unreachable"
    );
    assert_eq!(kubectl.field("pod/p", ".metadata.deletionTimestamp"), "");
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl
        .call(&[
            "patch",
            "node",
            "sick",
            "--subresource=status",
            "--type=merge",
            "-p",
            status,
        ])
        .ok();
    let mut events = kubectl.start("get events --watch --no-headers --field-selector involvedObject.name=p");
    events.line_with("Cancelling deletion of Pod default/p");
    kubectl.ok("delete pod p --force --grace-period=0");
}

#[test]
fn pods_leave_a_node_whose_taint_they_do_not_tolerate() {
    let Some(kubectl) = Kubectl::with_server(Release::Newest) else {
        return;
    };
    let kubectl = &kubectl;
    create_node(kubectl, "full");
    create_pod(kubectl, "weak", "full", "");
    create_pod(
        kubectl,
        "strong",
        "full",
        "{key: example.com/out, operator: Exists, effect: NoExecute}",
    );
    create_pod(
        kubectl,
        "brief",
        "full",
        "{key: example.com/out, operator: Exists, effect: NoExecute, tolerationSeconds: 1}",
    );
    kubectl.ok("taint node full example.com/out:NoExecute");
    for pod in ["weak", "brief"] {
        kubectl.ok(&format!(
            "wait pod/{pod} --for=condition=DisruptionTarget --timeout=60s"
        ));
        kubectl.ok(&format!(
            "wait pod/{pod} --for=jsonpath={{.metadata.deletionGracePeriodSeconds}}=30 --timeout=60s"
        ));
        let mut events = kubectl.start(&format!(
            "get events --watch --no-headers --field-selector involvedObject.name={pod}"
        ));
        events.line_with(&format!("Marking for deletion Pod default/{pod}"));
    }
    assert_eq!(kubectl.field("pod/strong", ".metadata.deletionTimestamp"), "");
    kubectl.ok("delete pod --all --force --grace-period=0");
}

#[test]
fn a_pod_without_a_node_that_somebody_holds_is_marked_as_failed() {
    let Some(kubectl) = Kubectl::with_server(Release::Newest) else {
        return;
    };
    let kubectl = &kubectl;
    kubectl.apply("{apiVersion: v1, kind: Pod, metadata: {name: held, finalizers: [example.com/hold]}, spec: {containers: [{name: c, image: busybox}]}}");
    kubectl.ok("delete pod held --wait=false");
    kubectl.ok("wait pod/held --for=jsonpath={.status.phase}=Failed --timeout=60s");
    kubectl
        .call(&[
            "patch",
            "pod",
            "held",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ])
        .ok();
    kubectl.ok("wait pod/held --for=delete --timeout=60s");
}
