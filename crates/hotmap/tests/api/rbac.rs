//! Roles and bindings as people write them with kubectl, and what they and service accounts may do then.

use crate::{
    harness::{Finished, Kubectl, Release},
    has,
};

/// Makes the account `robot` and runs calls with its token, as a program in a pod would.
struct Robot<'a> {
    kubectl: &'a Kubectl,
    kubeconfig: String,
}

impl<'a> Robot<'a> {
    fn new(kubectl: &'a Kubectl) -> Self {
        kubectl.ok("create serviceaccount robot");
        let token = kubectl.ok("create token robot");
        let kubeconfig = kubectl.file("robot.kubeconfig", kubectl.ok("config view --raw --flatten"));
        let kubeconfig = kubeconfig.display().to_string();
        kubectl.ok(&format!(
            "config set-credentials robot --kubeconfig={kubeconfig} --token={}",
            token.trim()
        ));
        Self { kubectl, kubeconfig }
    }

    #[track_caller]
    fn run(&self, arguments: &str) -> Finished {
        let kubeconfig = &self.kubeconfig;
        self.kubectl
            .run(&format!("{arguments} --kubeconfig={kubeconfig} --user=robot"))
    }
}

each_kubectl! {
    fn roles_and_bindings_are_created_shown_and_described(kubectl) {
        for (call, answer) in [
            ("create role reader --verb=get,list --resource=configmaps --resource-name=a", "role.rbac.authorization.k8s.io/reader created\n"),
            ("create role scaler --verb=update --resource=deployments.apps/scale", "role.rbac.authorization.k8s.io/scaler created\n"),
            ("create clusterrole metrics --verb=get --non-resource-url=/metrics", "clusterrole.rbac.authorization.k8s.io/metrics created\n"),
            ("create clusterrole gather --aggregation-rule=a=b", "clusterrole.rbac.authorization.k8s.io/gather created\n"),
            ("create rolebinding readers --role=reader --user=bob --group=devs --serviceaccount=default:robot", "rolebinding.rbac.authorization.k8s.io/readers created\n"),
            ("create clusterrolebinding metrics --clusterrole=metrics --user=bob", "clusterrolebinding.rbac.authorization.k8s.io/metrics created\n"),
        ] {
            assert_eq!(kubectl.ok(call), answer, "{call}");
        }
        has(&kubectl.ok("get roles"), &["NAME     CREATED AT\n", "reader   20"]);
        has(&kubectl.ok("get rolebindings -o wide"), &["NAME", "ROLE", "AGE", "USERS", "GROUPS", "SERVICEACCOUNTS", "Role/reader", "bob", "devs", "default/robot"]);
        has(&kubectl.ok("describe role reader"), &["configmaps  []                 [a]             [get list]"]);
        has(&kubectl.ok("describe rolebinding readers"), &["Kind:  Role", "User            bob", "ServiceAccount  robot  default"]);
        assert_eq!(kubectl.field("role/scaler", ".rules[0]"), r#"{"apiGroups":["apps"],"resources":["deployments/scale"],"verbs":["update"]}"#);
        assert_eq!(kubectl.field("rolebinding/readers", ".subjects[*].apiGroup"), "rbac.authorization.k8s.io rbac.authorization.k8s.io");
        has(&kubectl.run("create role reader --verb=get --resource=pods").refused(), &[r#"roles.rbac.authorization.k8s.io "reader" already exists"#]);
        has(&kubectl.run("create role odd --verb=get --resource=nothings").refused(), &[r#"the server doesn't have a resource type "nothings""#]);
    }

    fn manifests_apply_twice_and_the_role_of_a_binding_stays(kubectl) {
        let manifest = |role: &str| format!("
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: b}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {role}}}
subjects: [{{kind: User, name: bob, apiGroup: rbac.authorization.k8s.io}}]
");
        assert_eq!(kubectl.apply(&manifest("one")), "rolebinding.rbac.authorization.k8s.io/b created\n");
        assert_eq!(kubectl.apply(&manifest("one")), "rolebinding.rbac.authorization.k8s.io/b unchanged\n");
        has(&kubectl.feed("apply -f -", manifest("two")).refused(), &[r#"The RoleBinding "b" is invalid: roleRef: Invalid value: "#, "cannot change roleRef"]);
        has(&kubectl.feed("apply -f -", manifest("''")).refused(), &["roleRef.name: Required value"]);
        let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{verbs: [get], nonResourceURLs: [/x]}]}";
        has(&kubectl.feed("apply -f -", role).refused(), &["rules[0].nonResourceURLs: Invalid value", "namespaced rules cannot apply to non-resource URLs"]);
    }

    fn can_i_answers_and_lists(kubectl) {
        kubectl.ok("create role reader --verb=get,list --resource=configmaps --resource-name=a");
        kubectl.ok("create rolebinding reader --role=reader --user=bob");
        kubectl.ok("create rolebinding viewers --clusterrole=view --group=devs");
        kubectl.ok("create clusterrolebinding lost --clusterrole=gone --user=lost");
        for (call, answer) in [
            ("get configmaps/a --as=bob", "yes\n"),
            ("get configmaps/b --as=bob", "no\n"),
            ("get configmaps --as=bob", "no\n"),
            ("get configmaps/a --as=bob -n kube-system", "no\n"),
            ("list pods --as=x --as-group=devs", "yes\n"),
            ("list pods --as=x --as-group=devs --all-namespaces", "no\n"),
            ("get pods --subresource=log --as=x --as-group=devs", "yes\n"),
            ("get secrets --as=x --as-group=devs", "no\n"),
            ("get /version --as=x", "yes\n"),
            ("get /metrics --as=x", "no\n"),
            ("get pods --as=lost", "no - RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found\n"),
        ] {
            let answered = kubectl.run(&format!("auth can-i {call}"));
            assert_eq!(answered.stdout, answer, "{call}");
            assert_eq!(answered.code == 0, answer.starts_with("yes"), "{call}");
        }
        let list = kubectl.ok("auth can-i --list --as=bob");
        has(&list, &["selfsubjectrulesreviews.authorization.k8s.io", "configmaps", "[a]", "[get list]", "[/version]"]);
        has(&kubectl.ok("auth can-i --list"), &["*.*", "[*]"]);
        has(&kubectl.ok("auth whoami --as=bob"), &["bob", "system:authenticated"]);
    }

    fn nobody_grants_more_than_they_have(kubectl) {
        kubectl.ok("create rolebinding carol --clusterrole=admin --user=carol");
        assert_eq!(kubectl.ok("create role own --verb=get,delete --resource=pods --as=carol"), "role.rbac.authorization.k8s.io/own created\n");
        assert_eq!(kubectl.ok("create rolebinding dave --clusterrole=edit --user=dave --as=carol"), "rolebinding.rbac.authorization.k8s.io/dave created\n");
        has(&kubectl.run("create role more --verb=list,get --resource=nodes --as=carol").refused(), &[
            r#"roles.rbac.authorization.k8s.io "more" is forbidden: user "carol" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#,
            r#"{APIGroups:[""], Resources:["nodes"], Verbs:["list" "get"]}"#]);
        has(&kubectl.run("create rolebinding root --clusterrole=cluster-admin --user=carol --as=carol").refused(), &[
            r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#, r#"{NonResourceURLs:["*"], Verbs:["*"]}"#]);
        has(&kubectl.run("create clusterrolebinding root --clusterrole=view --user=carol --as=carol").refused(), &[
            r#"User "carol" cannot create resource "clusterrolebindings" in API group "rbac.authorization.k8s.io" at the cluster scope"#]);
        has(&kubectl.run("create rolebinding x --role=none --user=carol --as=carol").refused(), &[r#"roles.rbac.authorization.k8s.io "none" not found"#]);
        let patch = ["patch", "role", "own", "--type=json", "-p", r#"[{"op":"add","path":"/rules/0/verbs/-","value":"escalate"}]"#, "--as=carol"];
        has(&kubectl.call(&patch).refused(), &["is attempting to grant RBAC permissions not currently held"]);
        // The verbs that allow it all the same.
        kubectl.ok("create role may --verb=escalate,bind --resource=roles,clusterroles");
        kubectl.ok("create rolebinding may --role=may --user=carol");
        kubectl.call(&patch).ok();
        kubectl.ok("create rolebinding root --clusterrole=cluster-admin --user=carol --as=carol");
        assert_eq!(kubectl.ok("auth can-i delete secrets --as=carol"), "yes\n");
    }

    fn auth_reconcile_adds_what_is_missing(kubectl) {
        let manifest = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: Group, name: devs, apiGroup: rbac.authorization.k8s.io}]
"#;
        has(&kubectl.feed("auth reconcile -f -", manifest).ok(), &["clusterrole.rbac.authorization.k8s.io/r reconciled", "clusterrolebinding.rbac.authorization.k8s.io/b reconciled"]);
        kubectl.call(&["patch", "clusterrole", "r", "--type=merge", "-p", r#"{"rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["list"]}]}"#]).ok();
        has(&kubectl.feed("auth reconcile -f -", manifest).ended(0), &["reconciliation required update", "missing rules added"]);
        assert_eq!(kubectl.field("clusterrole/r", ".rules[*].resources[0]"), "nodes pods");
        // What the binding had to change to another role, it becomes anew.
        let other = manifest.replace("kind: ClusterRole, name: r", "kind: ClusterRole, name: view");
        has(&kubectl.feed("auth reconcile -f -", other).ended(0), &["reconciliation required recreate"]);
        assert_eq!(kubectl.field("clusterrolebinding/b", ".roleRef.name"), "view");
    }

    fn service_accounts_may_what_they_were_granted(kubectl) {
        let robot = Robot::new(kubectl);
        kubectl.ok("create configmap one --from-literal=k=v");
        has(&robot.run("get configmap one").refused(), &[
            r#"Error from server (Forbidden): configmaps "one" is forbidden: User "system:serviceaccount:default:robot" cannot get resource "configmaps" in API group "" in the namespace "default""#]);
        has(&robot.run("auth whoami").ok(), &["system:serviceaccount:default:robot", "system:serviceaccounts:default", "system:authenticated"]);
        kubectl.ok("create role reader --verb=get --resource=configmaps --resource-name=one");
        kubectl.ok("create rolebinding reader --role=reader --serviceaccount=default:robot");
        has(&robot.run("get configmap one").ok(), &["one"]);
        has(&robot.run("get configmap other").refused(), &["Forbidden"]);
        has(&robot.run("delete configmap one").refused(), &["cannot delete resource"]);
        kubectl.ok("delete rolebinding reader");
        has(&robot.run("get configmap one").refused(), &["Forbidden"]);
        kubectl.ok("create rolebinding all --clusterrole=edit --group=system:serviceaccounts:default");
        robot.run("delete configmap one").ok();
        assert_eq!(robot.run("auth can-i get secrets -n kube-system").stdout, "no\n");
    }

    fn acting_as_others_is_granted_like_anything_else(kubectl) {
        let robot = Robot::new(kubectl);
        let whoami = |flags: &str| robot.run(&format!("auth whoami {flags}"));
        let refused = |flags: &str| robot.run(&format!("get --raw /apis {flags}")).refused();
        has(&refused("--as=bob"), &[r#"User "system:serviceaccount:default:robot" cannot impersonate resource "users" in API group "" at the cluster scope"#]);
        kubectl.ok("create clusterrole as-bob --verb=impersonate --resource=users --resource-name=bob");
        kubectl.ok("create clusterrolebinding as-bob --clusterrole=as-bob --serviceaccount=default:robot");
        has(&whoami("--as=bob").ok(), &["bob"]);
        has(&refused("--as=eve"), &[r#"users "eve" is forbidden"#]);
        has(&refused("--as=bob --as-group=system:masters"), &[r#"groups "system:masters" is forbidden"#]);
        kubectl.ok("create clusterrole as-devs --verb=impersonate --resource=groups --resource-name=devs");
        kubectl.ok("create clusterrolebinding as-devs --clusterrole=as-devs --serviceaccount=default:robot");
        has(&whoami("--as=bob --as-group=devs").ok(), &["devs", "system:authenticated"]);
        has(&refused("--as=bob --as-uid=7"), &[r#"uids.authentication.k8s.io "7" is forbidden"#]);
        let extra = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: as-uid}, rules: [{apiGroups: [authentication.k8s.io], resources: [uids], verbs: [impersonate]}]}";
        kubectl.apply(extra);
        kubectl.ok("create clusterrolebinding as-uid --clusterrole=as-uid --serviceaccount=default:robot");
        has(&whoami("--as=bob --as-uid=7").ok(), &["bob", "7"]);
        // An editor acts as the accounts of the namespace, in that namespace.
        kubectl.ok("create rolebinding editor --clusterrole=edit --serviceaccount=default:robot");
        has(&whoami("--as=system:serviceaccount:default:other").ok(), &["system:serviceaccounts:default"]);
        has(&refused("--as=system:serviceaccount:kube-system:other"), &[r#"cannot impersonate resource "serviceaccounts" in API group "" in the namespace "kube-system""#]);
    }

    fn reviews_tell_administrators_about_others(kubectl) {
        kubectl.ok("create rolebinding viewers --clusterrole=view --group=devs");
        let review = |kind: &str, head: &str| format!(
            "{{apiVersion: authorization.k8s.io/v1, kind: {kind}, {head} spec: {{user: x, groups: [devs], resourceAttributes: {{verb: get, resource: pods, namespace: default}}}}}}");
        let status = "-o jsonpath={.status}";
        for (kind, head) in [("SubjectAccessReview", ""), ("LocalSubjectAccessReview", "metadata: {namespace: default},")] {
            has(&kubectl.feed(&format!("create -f - {status}"), review(kind, head)).ok(), &[
                r#""allowed":true"#, r#"RBAC: allowed by RoleBinding \"viewers/default\" of ClusterRole \"view\" to Group \"devs\""#]);
        }
        has(&kubectl.feed("create -f - --as=x", review("SubjectAccessReview", "")).refused(), &["cannot create resource \"subjectaccessreviews\""]);
    }
}

#[test]
fn default_roles_are_there_after_every_start() {
    let Some(mut kubectl) = Kubectl::with_server(Release::Newest) else {
        return;
    };
    let names = kubectl.ok("get clusterroles -l kubernetes.io/bootstrapping=rbac-defaults -o name");
    for name in [
        "admin",
        "cluster-admin",
        "edit",
        "view",
        "system:discovery",
        "system:node",
    ] {
        assert!(
            names.lines().any(|line| line.ends_with(&format!("/{name}"))),
            "{name}: {names}"
        );
    }
    kubectl.ok("delete clusterrole view system:discovery");
    kubectl.ok("create clusterrole extra --verb=frob --resource=pods");
    kubectl.ok("label clusterrole extra rbac.authorization.k8s.io/aggregate-to-edit=true");
    kubectl.ok("create rolebinding e --clusterrole=edit --user=u");
    let lost = "no - RBAC: clusterrole.rbac.authorization.k8s.io \"system:discovery\" not found\n";
    assert_eq!(kubectl.run("auth can-i get pods --as=u").stdout, lost);
    kubectl.server.crash_and_restart();
    assert_eq!(kubectl.ok("auth can-i get pods --as=u"), "yes\n");
    assert_eq!(
        kubectl.ok("get clusterroles -l kubernetes.io/bootstrapping=rbac-defaults -o name"),
        names
    );
    let revision = kubectl.ok("get clusterroles -o jsonpath={.metadata.resourceVersion}");
    kubectl.server.crash_and_restart();
    let again = kubectl.ok("get clusterroles -o jsonpath={.metadata.resourceVersion}");
    assert_eq!(again, revision, "a start with nothing missing writes nothing");
}
