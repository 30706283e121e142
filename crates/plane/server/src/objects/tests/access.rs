//! Roles and bindings through the whole write path: who may write them, and when they count.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Server, names};
use crate::{authorization::Attributes, request::User};

const MASTERS: &str = "group=system:masters";

async fn start() -> Server {
    let server = Server::start().await;
    server
        .objects
        .bootstrap_access_policy()
        .await
        .expect("default roles");
    server
}

fn role(name: &str, verb: &str, labels: Value) -> Value {
    json!({"metadata": {"name": name, "labels": labels},
        "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]})
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role}, "subjects": [{"kind": "User", "name": user}]})
}

fn may(server: &Server, user: &str, verb: &str) -> bool {
    let user = User {
        name: user.to_owned(),
        ..User::default()
    };
    let wanted = Attributes {
        verb: verb.to_owned(),
        resource: "pods".to_owned(),
        namespace: "default".to_owned(),
        name: "x".to_owned(),
        ..Attributes::default()
    };
    server.objects.roles().allows(&user, &wanted)
}

#[tokio::test]
async fn a_grant_counts_when_its_write_is_answered() {
    let server = start().await;
    for round in 0..20 {
        let verb = format!("verb-{round}");
        assert!(!may(&server, "u", &verb));
        server
            .ok(
                &format!("create default/roles?{MASTERS}"),
                role("r", &verb, json!({})),
            )
            .await;
        server
            .ok(
                &format!("create default/rolebindings?{MASTERS}"),
                binding("b", "Role", "r", "u"),
            )
            .await;
        assert!(may(&server, "u", &verb));
        server.ok("delete default/rolebindings/b", Value::Null).await;
        assert!(!may(&server, "u", &verb));
        server.ok("delete default/roles/r", Value::Null).await;
    }
    // It is known again after a restart.
    server
        .ok(
            &format!("create default/rolebindings?{MASTERS}"),
            binding("b", "ClusterRole", "view", "u"),
        )
        .await;
    let server = server.restart().await;
    assert!(may(&server, "u", "get"));
}

#[tokio::test]
async fn gathered_rules_are_there_when_the_write_is_answered() {
    let server = start().await;
    server
        .ok(
            &format!("create default/rolebindings?{MASTERS}"),
            binding("b", "ClusterRole", "admin", "u"),
        )
        .await;
    assert!(!may(&server, "u", "frob"));
    let label = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    server
        .ok(
            &format!("create clusterroles?{MASTERS}"),
            role("extra", "frob", label),
        )
        .await;
    // From view to edit to admin, in one answer.
    assert!(may(&server, "u", "frob"));
    let admin = server.ok("get clusterroles/admin", Value::Null).await;
    let verbs = |role: &Value| role["rules"].to_string().matches("frob").count();
    assert_eq!(verbs(&admin), 1);
    let patch = json!({"metadata": {"labels": null}});
    server
        .ok(&format!("merge clusterroles/extra?{MASTERS}"), patch)
        .await;
    assert!(!may(&server, "u", "frob"));
    // What somebody writes into a role that gathers does not stay.
    let patch = json!({"rules": [{"verbs": ["frob"], "apiGroups": [""], "resources": ["pods"]}]});
    server
        .ok(&format!("merge clusterroles/admin?{MASTERS}"), patch)
        .await;
    assert!(!may(&server, "u", "frob"));
    assert_eq!(verbs(&server.ok("get clusterroles/admin", Value::Null).await), 0);
    assert!(may(&server, "u", "get"));
}

#[tokio::test]
async fn nobody_writes_what_they_do_not_have_whatever_the_verb() {
    let server = start().await;
    server
        .ok(
            &format!("create default/rolebindings?{MASTERS}"),
            binding("mine", "ClusterRole", "view", "tester"),
        )
        .await;
    server
        .ok("create default/roles", role("own", "get", json!({})))
        .await;
    let more = role("own", "delete", json!({}));
    let grants = "is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\"]}";
    for (call, body) in [
        ("create default/roles", role("new", "delete", json!({}))),
        (
            "create default/roles?dryRun=All",
            role("new", "delete", json!({})),
        ),
        ("update default/roles/own", more.clone()),
        ("merge default/roles/own", json!({"rules": more["rules"]})),
        (
            "strategic-merge default/roles/own",
            json!({"rules": more["rules"]}),
        ),
        (
            "json default/roles/own",
            json!([{"op": "replace", "path": "/rules/0/verbs/0", "value": "delete"}]),
        ),
        // PUT creates what is not there.
        ("update default/roles/new", role("new", "delete", json!({}))),
    ] {
        let (code, message) = server.refused(call, body).await;
        assert!(
            code == 403 && message.ends_with(grants),
            "{call}: {code} {message}"
        );
    }
    let everything = binding("b", "ClusterRole", "cluster-admin", "tester");
    for call in [
        "create default/rolebindings",
        "create clusterrolebindings",
        "update default/rolebindings/b",
    ] {
        assert_eq!(server.refused(call, everything.clone()).await.0, 403, "{call}");
    }
    server
        .ok(
            "create default/rolebindings",
            binding("b", "ClusterRole", "view", "friend"),
        )
        .await;
    let (code, message) = server.refused("update default/rolebindings/b", everything).await;
    assert_eq!(code, 403, "{message}");
    assert_eq!(
        server.ok("list default/roles", Value::Null).await["items"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn default_roles_come_back_and_stay_as_people_made_them() {
    let server = start().await;
    let list = server.ok("list clusterroles", Value::Null).await;
    assert!(
        [
            "admin",
            "cluster-admin",
            "edit",
            "system:discovery",
            "system:node",
            "view"
        ]
        .iter()
        .all(|name| names(&list).contains(name))
    );
    let at = server.objects.revision();
    server
        .objects
        .bootstrap_access_policy()
        .await
        .expect("nothing to do");
    assert_eq!(server.objects.revision(), at);

    server
        .ok("delete clusterroles/system:discovery", Value::Null)
        .await;
    server
        .ok(
            &format!("merge clusterrolebindings/cluster-admin?{MASTERS}"),
            json!({"subjects": [{"kind": "User", "name": "me"}]}),
        )
        .await;
    server
        .ok(
            &format!("merge clusterroles/system:basic-user?{MASTERS}"),
            json!({"rules": [{"verbs": ["get"], "apiGroups": ["x"], "resources": ["y"]}]}),
        )
        .await;
    server.ok(&format!("merge clusterroles/system:monitoring?{MASTERS}"),
        json!({"rules": null, "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}})).await;
    server
        .ok("delete clusterrolebindings/system:kube-dns", Value::Null)
        .await;
    server
        .ok(
            &format!("create clusterrolebindings?{MASTERS}"),
            binding("system:kube-dns", "ClusterRole", "view", "u"),
        )
        .await;
    server.objects.bootstrap_access_policy().await.expect("restored");

    server.ok("get clusterroles/system:discovery", Value::Null).await;
    let admins = server
        .ok("get clusterrolebindings/cluster-admin", Value::Null)
        .await;
    let names: Vec<&Value> = admins["subjects"]
        .as_array()
        .expect("subjects")
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["me", "system:masters"]);
    let basic = server.ok("get clusterroles/system:basic-user", Value::Null).await;
    assert_eq!(basic["rules"].as_array().map(Vec::len), Some(4), "{basic}");
    let protected = server.ok("get clusterroles/system:monitoring", Value::Null).await;
    assert_eq!(protected["rules"], Value::Null);
    let dns = server
        .ok("get clusterrolebindings/system:kube-dns", Value::Null)
        .await;
    assert_eq!(
        (&dns["roleRef"]["name"], &dns["subjects"][0]["kind"]),
        (&json!("system:kube-dns"), &json!("ServiceAccount"))
    );
}

#[tokio::test]
async fn writers_of_cluster_roles_do_not_lose_each_others_rules() {
    let server = Arc::new(start().await);
    let label = || json!({"rbac.authorization.k8s.io/aggregate-to-edit": "true"});
    let writes = (0..16).map(|at| {
        let server = server.clone();
        tokio::spawn(async move {
            let verb = format!("verb-{at}");
            server
                .ok(
                    &format!("create clusterroles?{MASTERS}"),
                    role(&verb, &verb, label()),
                )
                .await;
        })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.expect("written");
    }
    server
        .ok(
            &format!("create default/rolebindings?{MASTERS}"),
            binding("b", "ClusterRole", "admin", "u"),
        )
        .await;
    for at in 0..16 {
        assert!(may(&server, "u", &format!("verb-{at}")), "{at}");
    }
}
