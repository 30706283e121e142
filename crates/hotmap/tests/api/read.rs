//! Objects go out: tables, other formats, selectors, pages, descriptions.

use crate::{harness::Kubectl, has};

/// Three ConfigMaps with labels, and one in another namespace.
fn some(kubectl: &Kubectl) {
    kubectl.apply("\
{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: web, tier: a}}, data: {k: '3', l: ''}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: db, tier: b}}, data: {k: '1'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {app: web}}, data: {k: '2'}, binaryData: {z: AP8=}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: other}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}, type: example.com/t, stringData: {k: v}}
");
}

/// The cells of a printed table, without ages.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

each_kubectl! {
    fn tables_have_the_columns_people_know(kubectl) {
        some(kubectl);
        kubectl.apply(POD);
        for (call, header, row) in [
            ("get cm a", "NAME DATA AGE", "a 1"),
            ("get cm b", "NAME DATA AGE", "b 2"),
            ("get secret s", "NAME TYPE DATA AGE", "s example.com/t 1"),
            ("get ns other", "NAME STATUS AGE", "other Active"),
            ("get pod idle", "NAME READY STATUS RESTARTS AGE", "idle 0/1 Pending 0"),
            ("get pod idle -o wide", "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES",
             "idle 0/1 Pending 0"),
            ("get cm a --show-labels", "NAME DATA AGE LABELS", "a 1"),
            ("get cm a -L app", "NAME DATA AGE APP", "a 1"),
            ("get cm d -n other", "NAME DATA AGE", "d 0"),
        ] {
            let table = kubectl.ok(call);
            let cells = cells(&table);
            assert_eq!(cells[0].join(" "), header, "{call}");
            assert!(cells[1].join(" ").starts_with(row), "{call}: {table}");
        }
        assert_eq!(cells(&kubectl.ok("get cm -A --no-headers --field-selector=metadata.name!=kube-root-ca.crt")).iter().map(|row| row[..2].join("/")).collect::<Vec<_>>(),
                   ["default/a", "default/b", "default/c", "other/d"]);
        has(&kubectl.run("get secret -n empty-one").ended(0), &["No resources found in empty-one namespace."]);
        has(&kubectl.run("get cm nope").refused(), &[r#"Error from server (NotFound): configmaps "nope" not found"#]);
        has(&kubectl.run("get ingresses").refused(), &[r#"error: the server doesn't have a resource type "ingresses""#]);
        has(&kubectl.ok("get all"), &["pod/idle"]);
    }

    fn every_output_format_works(kubectl) {
        some(kubectl);
        for (call, expected) in [
            ("get cm -o name --field-selector=metadata.name!=kube-root-ca.crt", "configmap/a\nconfigmap/b\nconfigmap/c\n"),
            ("get cm,secret -o name --field-selector=metadata.name!=kube-root-ca.crt", "configmap/a\nconfigmap/b\nconfigmap/c\nsecret/s\n"),
            ("get cm a -o jsonpath={.data.k}", "1"),
            ("get cm -o jsonpath={.items[*].data.k}", "1 2 3"),
            ("get cm a -o go-template={{.data.k}}", "1"),
            ("get cm -o custom-columns=N:.metadata.name,K:.data.k --no-headers --field-selector=metadata.name!=kube-root-ca.crt", "a     1\nb     2\nc     3\n"),
            ("get cm -o name --sort-by=.data.k --field-selector=metadata.name!=kube-root-ca.crt", "configmap/a\nconfigmap/b\nconfigmap/c\n"),
            ("get cm -o name -l app=web", "configmap/b\nconfigmap/c\n"),
            ("get cm -o name -l app!=web --field-selector=metadata.name!=kube-root-ca.crt", "configmap/a\n"),
            ("get cm -o name -l app,tier", "configmap/a\nconfigmap/c\n"),
            ("get cm -o name -l !tier --field-selector=metadata.name!=kube-root-ca.crt", "configmap/b\n"),
            ("get cm -o name --field-selector metadata.name=b", "configmap/b\n"),
            ("get cm -o name --field-selector metadata.name!=b,metadata.name!=kube-root-ca.crt", "configmap/a\nconfigmap/c\n"),
            ("get secret -o name --field-selector type=example.com/t", "secret/s\n"),
            ("get cm -o name --chunk-size=1 --field-selector=metadata.name!=kube-root-ca.crt", "configmap/a\nconfigmap/b\nconfigmap/c\n"),
            ("get ns -o name --field-selector status.phase=Terminating", ""),
        ] {
            assert_eq!(kubectl.ok(call), expected, "{call}");
        }
        assert_eq!(kubectl.call(&["get", "cm", "-o", "name", "-l", "app in (web,db),tier notin (b)"]).ok(),
                   "configmap/b\nconfigmap/c\n");
        let sorted = kubectl.ok("get cm --sort-by={.data.l} --no-headers --field-selector=metadata.name!=kube-root-ca.crt");
        assert_eq!(cells(&sorted).len(), 3, "{sorted}");
        let chunked = kubectl.ok("get cm -A --chunk-size=1 --no-headers --field-selector=metadata.name!=kube-root-ca.crt");
        assert_eq!(cells(&chunked).len(), 4, "{chunked}");
        let json: serde_json::Value = serde_json::from_str(&kubectl.ok("get cm a -o json")).expect("JSON");
        assert_eq!((json["kind"].as_str(), json["data"]["k"].as_str()), (Some("ConfigMap"), Some("1")));
        has(&kubectl.ok("get cm b -o yaml"), &["kind: ConfigMap", "binaryData:\n  z: AP8=", "k: \"2\""]);
        has(&kubectl.run("get cm --field-selector data.k=1").refused(), &[r#""data.k" is not a known field selector: only "metadata.name", "metadata.namespace""#]);
        has(&kubectl.run("get cm -l a===b").refused(), &["unable to parse requirement"]);
    }

    fn describe_shows_what_there_is(kubectl) {
        some(kubectl);
        kubectl.apply(POD);
        kubectl.apply("{apiVersion: v1, kind: Node, metadata: {name: box}}");
        kubectl.apply("\
apiVersion: v1
kind: Event
metadata: {name: a.1}
involvedObject: {kind: ConfigMap, namespace: default, name: a, apiVersion: v1}
reason: Looked
message: somebody looked at it
type: Normal
");
        for (call, parts) in [
            ("describe cm b", &["Name:         b", "k:\n----\n2", "BinaryData\n====\nz: 2 bytes", "Events:"][..]),
            ("describe secret s", &["Type:  example.com/t", "k:  1 bytes"]),
            ("describe ns other", &["Name:         other", "Status:       Active"]),
            ("describe pod idle", &["Status:", "Pending", "Image:", "QoS Class:", "BestEffort", "Node-Selectors:"]),
            ("describe node box", &["Name:               box", "Non-terminated Pods:", "Allocated resources:"]),
            ("describe sa", &[]),
            ("describe cm", &["Name:         a", "Name:         c"]),
        ] {
            has(&kubectl.ok(call), parts);
        }
        // Without uid in the event's reference, describe of the object itself does not select it; lists do.
        has(&kubectl.ok("get events"), &["LAST SEEN", "Normal", "Looked", "configmap/a", "somebody looked at it"]);
        has(&kubectl.ok("events"), &["Looked", "ConfigMap/a", "somebody looked at it"]);
        has(&kubectl.ok("get events --field-selector reason=Looked -o name"), &["event/a.1"]);
        assert_eq!(kubectl.ok("get events --field-selector reason=Nothing -o name"), "");
        has(&kubectl.ok("get events.events.k8s.io -o jsonpath={.items[0].note}"), &["somebody looked at it"]);
        has(&kubectl.run("describe cm nope").refused(), &[r#"configmaps "nope" not found"#]);
    }

    fn what_needs_a_node_says_so(kubectl) {
        kubectl.apply(POD);
        // A pod without a node has no log yet, which is no error.
        assert_eq!(kubectl.ok("logs idle"), "");
        for (call, reason) in [
            ("exec idle -- true", "pod idle does not have a host assigned"),
            ("cp idle:/x ./x", "pod idle does not have a host assigned"),
            ("attach idle", "pod idle does not have a host assigned"),
            ("port-forward pod/idle 18080:80", "pod is not running"),
        ] {
            has(&kubectl.run(call).refused(), &[reason]);
        }
        for call in ["top pod", "top node"] {
            has(&kubectl.run(call).refused(), &["Metrics API not available"]);
        }
    }
}

/// A pod that nothing runs.
pub(crate) const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: idle, labels: {app: idle}}
spec:
  containers:
  - {name: main, image: busybox, command: [sleep, inf]}
";
