//! What upstream decides, as tables (`plugin/pkg/auth/authorizer/rbac/rbac_test.go`,
//! `pkg/registry/rbac/validation/rule_test.go`, Kubernetes 1.36).

use serde_json::{Value, json};

use super::{binding, delete, index, put, role, rule, user, wanted};
use crate::authorization::rbac::{PolicyRule, Verdict};

#[test]
fn a_rule_allows_what_all_its_parts_name() {
    let all = rule(&["*"], &["*"], &["*"], &[]);
    let pods = rule(&["get", "list"], &[""], &["pods"], &[]);
    let log = rule(&["get"], &[""], &["pods/log"], &[]);
    let scales = rule(&["*"], &["apps", "batch"], &["*/scale"], &[]);
    let named = rule(&["get", "update"], &[""], &["configmaps"], &["a", "b"]);
    let paths = json!({"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*", "/x*"]});
    let all_paths = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    let extras = rule(
        &["impersonate"],
        &["authentication.k8s.io"],
        &["userextras/example.com/team"],
        &[],
    );
    let table: &[(&Value, &str, bool)] = &[
        (&all, "delete - secrets ns/x", true),
        (&all, "create apps deployments/scale ns/x", true),
        (&all, "get /metrics", false),
        (&pods, "get - pods ns/x", true),
        (&pods, "list - pods ns/", true),
        (&pods, "watch - pods ns/", false),
        (&pods, "get apps pods ns/x", false),
        (&pods, "get - pod ns/x", false),
        (&pods, "get - pods/log ns/x", false),
        (&pods, "get - pods/status ns/x", false),
        (&log, "get - pods/log ns/x", true),
        (&log, "get - pods ns/x", false),
        (&scales, "update apps deployments/scale ns/x", true),
        (&scales, "patch batch anything/scale ns/x", true),
        (&scales, "update apps deployments ns/x", false),
        (&scales, "update apps deployments/status ns/x", false),
        (&scales, "update - replicationcontrollers/scale ns/x", false),
        (&named, "get - configmaps ns/a", true),
        (&named, "update - configmaps ns/b", true),
        (&named, "get - configmaps ns/c", false),
        // A list names nothing, unless a field selector does; a create has no name yet.
        (&named, "list - configmaps ns/", false),
        (&named, "get - configmaps ns/", false),
        (&paths, "get /metrics", true),
        (&paths, "get /metrics/", false),
        (&paths, "get /logs/", true),
        (&paths, "get /logs/a/b", true),
        (&paths, "get /logs", false),
        (&paths, "get /xyz", true),
        (&paths, "post /metrics", false),
        (&paths, "get - pods ns/x", false),
        (&all_paths, "delete /anything", true),
        (
            &extras,
            "impersonate authentication.k8s.io userextras/example.com/team /a",
            true,
        ),
        (
            &extras,
            "impersonate authentication.k8s.io userextras/example.com /a",
            false,
        ),
    ];
    for (rule, request, allowed) in table {
        let rule: PolicyRule = serde_json::from_value((*rule).clone()).expect("a rule");
        assert_eq!(rule.allows(&wanted(request)), *allowed, "{rule}: {request}");
    }
}

#[test]
fn bindings_give_roles_where_they_are() {
    let read = rule(&["get"], &[""], &["pods"], &[]);
    let index = index(&[
        role("readers", json!([read])),
        role("n1/readers", json!([rule(&["get"], &[""], &["secrets"], &[])])),
        binding(
            "everywhere",
            "ClusterRole readers",
            &["User root", "Group ops", "ServiceAccount n1/robot"],
        ),
        binding("homeless", "ClusterRole readers", &["ServiceAccount stray"]),
        binding(
            "n1/here",
            "ClusterRole readers",
            &["User bob", "ServiceAccount local"],
        ),
        binding(
            "n1/own",
            "Role readers",
            &["Group devs", "ServiceAccount n2/guest"],
        ),
        binding("n1/odd", "ClusterRole readers", &["Robot bob2"]),
    ]);
    let robot = "system:serviceaccount:n1:robot";
    for (name, groups, request, allowed) in [
        ("root", &[][..], "get - pods n1/x", true),
        ("root", &[], "get - pods /", true),
        ("x", &["a", "ops"], "get - pods n9/x", true),
        ("ops", &[], "get - pods n9/x", false),
        (robot, &[], "get - pods n2/x", true),
        ("system:serviceaccount:n1:robot2", &[], "get - pods n2/x", false),
        ("system:serviceaccount::stray", &[], "get - pods n1/x", false),
        ("bob", &[], "get - pods n1/x", true),
        ("bob", &[], "get - pods n2/x", false),
        ("bob", &[], "get - pods /", false),
        // An account without a namespace is one of the binding's.
        ("system:serviceaccount:n1:local", &[], "get - pods n1/x", true),
        ("system:serviceaccount:n2:local", &[], "get - pods n1/x", false),
        // A Role of the same name as a ClusterRole is another role.
        ("x", &["devs"], "get - secrets n1/x", true),
        ("x", &["devs"], "get - pods n1/x", false),
        ("x", &["devs"], "get - secrets n2/x", false),
        ("system:serviceaccount:n2:guest", &[], "get - secrets n1/x", true),
        ("bob2", &[], "get - pods n1/x", false),
    ] {
        let (who, what) = (user(name, groups), wanted(request));
        assert_eq!(index.allows(&who, &what), allowed, "{name} {groups:?}: {request}");
        let is_explained = matches!(index.explain(&who, &what), Verdict::Allowed(_));
        assert_eq!(is_explained, allowed, "{name} {groups:?}: {request}");
    }
}

#[test]
fn reasons_are_upstreams() {
    let index = index(&[
        role("readers", json!([rule(&["get"], &[""], &["pods"], &[])])),
        binding("all", "ClusterRole readers", &["User x", "Group ops"]),
        binding("n1/here", "ClusterRole readers", &["ServiceAccount robot"]),
        binding("lost", "ClusterRole gone", &["User lost", "User twice"]),
        binding("n1/lost", "Role gone", &["User lost"]),
        binding("n1/lost2", "ClusterRole gone", &["User twice"]),
    ]);
    let robot = "system:serviceaccount:n1:robot";
    for (name, groups, sentence) in [
        (
            "y",
            &["ops"][..],
            Ok(r#"RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "readers" to Group "ops""#),
        ),
        (
            robot,
            &[],
            Ok(
                r#"RBAC: allowed by RoleBinding "here/n1" of ClusterRole "readers" to ServiceAccount "robot/n1""#,
            ),
        ),
        ("nobody", &[], Err("")),
        (
            "lost",
            &[],
            Err(
                r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "gone" not found]"#,
            ),
        ),
        (
            "twice",
            &[],
            Err(r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#),
        ),
    ] {
        let wanted = match sentence {
            Ok(text) => Verdict::Allowed(text.to_owned()),
            Err(text) => Verdict::NoOpinion(text.to_owned()),
        };
        let found = index.explain(&user(name, groups), &super::wanted("get - pods n1/x"));
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn every_change_counts_from_then_on() {
    let everywhere = binding("b", "ClusterRole r", &["User u"]);
    let here = binding("n/b", "Role r", &["User u", "User u"]);
    let cluster = role("r", json!([rule(&["get"], &[""], &["pods"], &[])]));
    let local = role("n/r", json!([rule(&["get"], &[""], &["secrets"], &[])]));
    let index = index(&[]);
    let may = |pods: bool, secrets: bool| {
        for (request, allowed) in [("get - pods n/x", pods), ("get - secrets n/x", secrets)] {
            assert_eq!(
                index.allows(&user("u", &[]), &wanted(request)),
                allowed,
                "{request}"
            );
        }
    };
    put(&index, &everywhere);
    may(false, false);
    put(&index, &cluster);
    may(true, false);
    put(&index, &here);
    put(&index, &local);
    may(true, true);
    // Rules go without the role, subjects without the binding.
    put(&index, &role("r", Value::Null));
    may(false, true);
    put(&index, &cluster);
    put(&index, &binding("b", "ClusterRole r", &["User other"]));
    may(false, true);
    delete(&index, &here);
    may(false, false);
    put(&index, &here);
    delete(&index, &local);
    may(false, false);
}

#[test]
fn rules_are_listed_once_for_each_binding() {
    let index = index(&[
        role("r", json!([rule(&["get"], &[""], &["pods"], &[])])),
        binding("b", "ClusterRole r", &["User u", "Group g", "Group h"]),
        binding("lost", "ClusterRole gone", &["User u"]),
        binding("n/b", "ClusterRole r", &["Group h"]),
    ]);
    let (rules, error) = index.rules_of(&user("u", &["g", "h"]), "n");
    assert_eq!(rules.len(), 2, "{rules:?}");
    assert_eq!(
        error.as_deref(),
        Some(r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#)
    );
}
