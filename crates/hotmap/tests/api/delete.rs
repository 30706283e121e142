//! Objects go: by name, label, kind, namespace; held back by finalizers and grace.

use crate::has;

each_kubectl! {
    fn delete_takes_names_labels_and_everything(kubectl) {
        for name in ["a", "b", "c", "d", "e"] {
            kubectl.ok(&format!("create configmap {name}"));
        }
        kubectl.ok("label cm b c app=x");
        has(&kubectl.ok("delete cm a"), &["configmap \"a\" deleted"]);
        has(&kubectl.run("delete cm a").refused(), &[r#"configmaps "a" not found"#]);
        kubectl.ok("delete cm a --ignore-not-found");
        kubectl.ok("delete cm -l app=x");
        assert_eq!(kubectl.ok("get cm -o name --field-selector=metadata.name!=kube-root-ca.crt"), "configmap/d\nconfigmap/e\n");
        kubectl.feed("delete -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}}").ok();
        kubectl.ok("create secret generic s");
        kubectl.ok("delete cm,secret --all");
        assert_eq!(kubectl.ok("get cm,secret -o name --field-selector=metadata.name!=kube-root-ca.crt"), "");
    }

    fn every_cascade_ends(kubectl) {
        for cascade in ["background", "orphan", "foreground"] {
            kubectl.ok(&format!("create configmap {cascade}"));
            let said = kubectl.run(&format!("delete cm {cascade} --cascade={cascade} --timeout=120s")).ended(0);
            assert_eq!(said, "", "{cascade}");
            assert_eq!(kubectl.ok("get cm -o name --field-selector=metadata.name!=kube-root-ca.crt"), "", "{cascade}");
        }
    }

    fn a_namespace_takes_its_contents_with_it(kubectl) {
        kubectl.ok("create namespace team");
        kubectl.ok("create configmap a -n team");
        kubectl.ok("create secret generic b -n team");
        kubectl.ok("create serviceaccount c -n team");
        kubectl.feed("apply -n team -f -", crate::read::POD).ok();
        has(&kubectl.ok("delete namespace team --timeout=120s"), &["namespace \"team\" deleted"]);
        has(&kubectl.run("get ns team").refused(), &[r#"namespaces "team" not found"#]);
        assert_eq!(kubectl.ok("get cm,secret,pod -A -o jsonpath={.items[?(@.metadata.namespace==\"team\")].metadata.name}"), "");
        // The name is free again, and empty.
        kubectl.ok("create namespace team");
        kubectl.ok("create configmap fresh -n team");
        assert_eq!(kubectl.ok("get cm -n team -o name --field-selector=metadata.name!=kube-root-ca.crt"), "configmap/fresh\n");
        has(&kubectl.run("delete namespace default").refused(), &[r#"namespaces "default" is forbidden: this namespace may not be deleted"#]);
    }

    fn a_namespace_that_ends_takes_nothing_new(kubectl) {
        kubectl.ok("create namespace team");
        kubectl.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: team, finalizers: [example.com/hold]}}");
        kubectl.ok("delete namespace team --wait=false");
        assert_eq!(kubectl.field("ns/team", ".status.phase"), "Terminating");
        has(&kubectl.run("create configmap late -n team").refused(),
            &[r#"configmaps "late" is forbidden: unable to create new content in namespace team because it is being terminated"#]);
        kubectl.ok("wait cm/held -n team --for=jsonpath={.metadata.deletionTimestamp} --timeout=120s");
        kubectl.call(&["patch", "cm", "held", "-n", "team", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).ok();
        kubectl.ok("wait ns/team --for=delete --timeout=120s");
    }

    fn a_finalizer_holds_until_it_is_taken_off(kubectl) {
        kubectl.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}, data: {a: '1'}}");
        kubectl.ok("delete cm held --wait=false");
        assert_ne!(kubectl.field("cm/held", ".metadata.deletionTimestamp"), "");
        assert_eq!(kubectl.field("cm/held", ".metadata.deletionGracePeriodSeconds"), "0");
        has(&kubectl.run("create configmap held").refused(), &[r#"object is being deleted: configmaps "held" already exists"#]);
        let add = r#"{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}"#;
        has(&kubectl.call(&["patch", "cm", "held", "--type=merge", "-p", add]).refused(),
            &["metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted"]);
        let mut waiting = kubectl.start("wait cm/held --for=delete --timeout=120s");
        kubectl.call(&["patch", "cm", "held", "--type=json", "-p", r#"[{"op":"remove","path":"/metadata/finalizers"}]"#]).ok();
        assert_eq!(waiting.wait(), 0);
        has(&kubectl.run("get cm held").refused(), &["not found"]);
    }

    fn a_pod_that_never_ran_goes_at_once(kubectl) {
        kubectl.apply(crate::read::POD);
        has(&kubectl.ok("delete pod idle --timeout=20s"), &["pod \"idle\" deleted"]);
        kubectl.apply(crate::read::POD);
        kubectl.ok("delete pod idle --force --grace-period=0 --timeout=20s");
        assert_eq!(kubectl.ok("get pods -o name"), "");
    }
}
