//! Owners and dependents, made by hand of ConfigMaps: what a deletion takes with it, and in which order.

use crate::{harness::Kubectl, has};

/// A ConfigMap that belongs to others; `!` before an owner: it waits for this one when deleted in the foreground.
fn create(kubectl: &Kubectl, name: &str, owners: &[&str], finalizers: &str) {
    let owners: Vec<String> = owners.iter().map(|owner| reference(kubectl, owner)).collect();
    kubectl.apply(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, finalizers: [{finalizers}], ownerReferences: [{}]}}}}",
        owners.join(", ")
    ));
}

fn reference(kubectl: &Kubectl, owner: &str) -> String {
    let name = owner.trim_start_matches('!');
    let uid = kubectl.field(&format!("cm/{name}"), ".metadata.uid");
    let blocks = owner.starts_with('!');
    format!("{{apiVersion: v1, kind: ConfigMap, name: {name}, uid: {uid}, blockOwnerDeletion: {blocks}}}")
}

fn config_maps(kubectl: &Kubectl) -> String {
    kubectl
        .ok("get cm -o name --field-selector=metadata.name!=kube-root-ca.crt")
        .replace("configmap/", "")
        .replace('\n', " ")
        .trim()
        .to_owned()
}

fn drop_finalizers(kubectl: &Kubectl, object: &str) {
    kubectl
        .call(&[
            "patch",
            object,
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ])
        .ok();
}

each_kubectl! {
    fn in_the_background_a_chain_goes_after_its_owner(kubectl) {
        create(kubectl, "root", &[], "");
        create(kubectl, "branch", &["root"], "");
        create(kubectl, "leaf", &["!branch"], "");
        create(kubectl, "stranger", &[], "");
        create(kubectl, "shared", &["root", "stranger"], "");
        kubectl.ok("delete cm root");
        kubectl.ok("wait cm/branch cm/leaf --for=delete --timeout=120s");
        kubectl.ok("wait cm/shared --for=jsonpath={.metadata.ownerReferences[0].name}=stranger --timeout=120s");
        assert_eq!(config_maps(kubectl), "shared stranger");
    }

    fn in_the_foreground_the_owner_goes_last(kubectl) {
        create(kubectl, "root", &[], "");
        create(kubectl, "held", &["!root"], "example.com/hold");
        create(kubectl, "free", &["root"], "");
        create(kubectl, "under", &["!held"], "");
        let mut deleting = kubectl.start("delete cm root --cascade=foreground --timeout=120s");
        // Those below go, as far as they can; the owner waits.
        kubectl.ok("wait cm/free cm/under --for=delete --timeout=120s");
        assert_eq!(kubectl.field("cm/root", ".metadata.finalizers"), r#"["foregroundDeletion"]"#);
        assert_ne!(kubectl.field("cm/held", ".metadata.deletionTimestamp"), "");
        drop_finalizers(kubectl, "cm/held");
        assert_eq!(deleting.wait(), 0);
        assert_eq!(config_maps(kubectl), "");
    }

    fn in_the_foreground_nobody_waits_for_who_does_not_block(kubectl) {
        create(kubectl, "root", &[], "");
        create(kubectl, "held", &["root"], "example.com/hold");
        kubectl.ok("delete cm root --cascade=foreground --timeout=120s");
        assert_eq!(config_maps(kubectl), "held");
        assert_ne!(kubectl.field("cm/held", ".metadata.deletionTimestamp"), "");
        drop_finalizers(kubectl, "cm/held");
        kubectl.ok("wait cm/held --for=delete --timeout=120s");
    }

    fn orphans_stay_without_their_owner(kubectl) {
        create(kubectl, "root", &[], "");
        create(kubectl, "one", &["root"], "");
        create(kubectl, "two", &["!root"], "");
        kubectl.ok("delete cm root --cascade=orphan --timeout=120s");
        assert_eq!(config_maps(kubectl), "one two");
        for name in ["one", "two"] {
            assert_eq!(kubectl.field(&format!("cm/{name}"), ".metadata.ownerReferences"), "", "{name}");
        }
    }

    fn a_circle_goes_as_a_whole(kubectl) {
        create(kubectl, "a", &[], "");
        create(kubectl, "b", &["!a"], "");
        create(kubectl, "c", &["!b"], "");
        create(kubectl, "a", &["!c"], "");
        kubectl.ok("delete cm a --cascade=foreground --timeout=120s");
        kubectl.ok("wait cm/b cm/c --for=delete --timeout=120s");
        assert_eq!(config_maps(kubectl), "");
    }

    fn who_belongs_to_nobody_that_ever_was_goes(kubectl) {
        kubectl.ok("create configmap other");
        for (name, owner) in [
            // The name is there, under another uid.
            ("imposter", "{apiVersion: v1, kind: ConfigMap, name: other, uid: 11111111-1111-4111-8111-111111111111}"),
            ("dreamer", "{apiVersion: v1, kind: Secret, name: never, uid: 22222222-2222-4222-8222-222222222222}"),
        ] {
            let manifest = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, ownerReferences: [{owner}]}}}}");
            kubectl.feed("create -f -", manifest).ok();
            kubectl.ok(&format!("wait cm/{name} --for=delete --timeout=120s"));
        }
        // What kind it is nobody knows: better to keep too much.
        kubectl.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: keeper, ownerReferences: [{apiVersion: example.com/v1, kind: Pizza, name: p, uid: 33333333-3333-4333-8333-333333333333}]}}");
        create(kubectl, "probe", &["other"], "");
        kubectl.ok("delete cm other");
        kubectl.ok("wait cm/probe --for=delete --timeout=120s");
        assert_eq!(config_maps(kubectl), "keeper");
    }

    fn an_owner_in_another_namespace_is_none_and_that_is_said(kubectl) {
        kubectl.ok("create namespace away");
        kubectl.ok("create configmap owner -n away");
        let uid = kubectl.field("cm/owner -n away", ".metadata.uid");
        let owner = format!("{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}");
        // An object of the cluster cannot belong to one of a namespace either; it stays.
        kubectl.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: odd, ownerReferences: [{owner}]}}}}"));
        kubectl.apply(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: stray, ownerReferences: [{owner}]}}}}"));
        kubectl.ok("wait cm/stray --for=delete --timeout=120s");
        let mut events = kubectl.start("get events --watch --no-headers --field-selector reason=OwnerRefInvalidNamespace,involvedObject.name=stray");
        let said = events.line_with("OwnerRefInvalidNamespace");
        has(&said, &["Warning", "configmap/stray", "name: owner", &uid, r#"does not exist in namespace "default""#]);
        let mut events = kubectl.start("get events --watch --no-headers --field-selector reason=OwnerRefInvalidNamespace,involvedObject.name=odd");
        events.line_with("namespace/odd");
        assert_eq!(kubectl.field("ns/odd", ".status.phase"), "Active");
    }

    fn an_object_of_the_cluster_owns_things_in_namespaces(kubectl) {
        kubectl.ok("create namespace owner");
        let uid = kubectl.field("ns/owner", ".metadata.uid");
        let owner = format!("{{apiVersion: v1, kind: Namespace, name: owner, uid: {uid}, blockOwnerDeletion: true}}");
        kubectl.apply(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: owned, ownerReferences: [{owner}]}}}}"));
        kubectl.ok("delete ns owner --cascade=foreground --timeout=120s");
        kubectl.ok("wait secret/owned --for=delete --timeout=120s");
    }
}

each_kubectl! {
    fn a_terminating_namespace_says_what_is_left(kubectl) {
        kubectl.ok("create namespace team");
        kubectl.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: team, finalizers: [example.com/hold]}}");
        kubectl.apply("{apiVersion: v1, kind: Secret, metadata: {name: held, namespace: team, finalizers: [example.com/hold]}}");
        kubectl.ok("create configmap free -n team");
        kubectl.ok("delete ns team --wait=false");
        kubectl.ok("wait ns/team --for=condition=NamespaceFinalizersRemaining --timeout=120s");
        let said = kubectl.ok("get ns team -o yaml");
        has(&said, &[
            "phase: Terminating",
            "type: NamespaceDeletionDiscoveryFailure",
            "reason: ResourcesDiscovered",
            "type: NamespaceDeletionContentFailure",
            "reason: SomeResourcesRemain",
            "reason: SomeFinalizersRemain",
        ]);
        has(&kubectl.field("ns/team", ".status.conditions[*].message"), &[
            "Some resources are remaining: configmaps. has 1 resource instances, secrets. has 1 resource instances",
            "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
        ]);
        kubectl.call(&["patch", "cm", "held", "-n", "team", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).ok();
        let mut watching = kubectl.start("get ns team --watch -o jsonpath={.status.conditions[3].message}{'\\n'}");
        has(&watching.line_with("secrets. has 1 resource instances"), &["Some resources are remaining: "]);
        kubectl.call(&["patch", "secret", "held", "-n", "team", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).ok();
        kubectl.ok("wait ns/team --for=delete --timeout=120s");
    }

    fn a_namespace_with_a_finalizer_of_its_own_says_that_its_content_is_gone(kubectl) {
        kubectl.apply("{apiVersion: v1, kind: Namespace, metadata: {name: team, finalizers: [example.com/hold]}}");
        kubectl.ok("create configmap a -n team");
        kubectl.ok("delete ns team --wait=false");
        kubectl.ok("wait ns/team --for=jsonpath={.status.conditions[3].reason}=ContentRemoved --timeout=120s");
        kubectl.ok("wait cm/a -n team --for=delete --timeout=120s");
        kubectl.call(&["patch", "ns", "team", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).ok();
        kubectl.ok("wait ns/team --for=delete --timeout=120s");
    }
}

/// Whatever the collector was about to do is done after a crash.
#[test]
fn a_crash_in_the_middle_loses_no_garbage() {
    let Some(mut kubectl) = Kubectl::with_server(crate::harness::Release::Newest) else {
        return;
    };
    create(&kubectl, "root", &[], "");
    for number in 0..20 {
        create(&kubectl, &format!("leaf-{number}"), &["!root"], "");
    }
    kubectl.ok("delete cm root --cascade=foreground --wait=false");
    kubectl.server.crash_and_restart();
    kubectl.ok("wait cm/root --for=delete --timeout=120s");
    assert_eq!(config_maps(&kubectl), "");
}
