//! Who may write which roles and bindings (`pkg/registry/rbac/*/policybased/storage.go`, Kubernetes 1.36).

use hotmap_kinds::find;
use serde_json::{Value, json};

use super::{binding, index, map, place, role, rule, user};
use crate::authorization::rbac::{GROUP, Grant, RoleIndex};

/// carol may read pods in `ns`; erin may escalate and bind what is named `open`; root may do everything, by a role;
/// lost has a role that is gone.
fn cluster() -> RoleIndex {
    let read = rule(&["get", "list"], &[""], &["pods", "pods/log"], &[]);
    index(&[
        role("readers", json!([read])),
        role(
            "everything",
            json!([rule(&["*"], &["*"], &["*"], &[]), {"verbs": ["*"], "nonResourceURLs": ["*"]}]),
        ),
        role("ns/readers", json!([read])),
        role(
            "escalators",
            json!([
                rule(&["escalate"], &[GROUP], &["roles"], &["open"]),
                rule(&["bind"], &[GROUP], &["clusterroles"], &["everything", "gone"]),
            ]),
        ),
        binding("ns/carol", "ClusterRole readers", &["User carol"]),
        binding("ns/erin", "ClusterRole escalators", &["User erin"]),
        binding("root", "ClusterRole everything", &["User root"]),
        binding("lost", "ClusterRole gone", &["User lost"]),
    ])
}

fn check(who: &str, new: Value, old: Option<Value>) -> Result<(), (u16, String)> {
    let (plural, key) = place(&new);
    let (namespace, name) = key.split_once('/').unwrap_or(("", &key));
    let groups: &[&str] = if who == "master" {
        &["system:masters"]
    } else {
        &["a", "b"]
    };
    let old = old.map(map);
    let grant = Grant {
        user: &user(who, groups),
        resource: find(GROUP, "v1", plural).expect("served"),
        namespace,
        name: if old.is_some() { name } else { "" },
        new: &map(new.clone()),
        old: old.as_ref(),
    };
    grant
        .check(&cluster())
        .map_err(|status| (status.code, status.message))
}

#[test]
fn roles_hold_no_more_than_their_writer_has() {
    let get = json!([rule(&["get"], &[""], &["pods"], &[])]);
    let named = json!([rule(&["get"], &[""], &["pods/log"], &["a"])]);
    let more = json!([
        rule(&["get", "delete", "list"], &[""], &["pods"], &[]),
        rule(&["update"], &[""], &["pods"], &[])
    ]);
    let lacks = r#"is attempting to grant RBAC permissions not currently held:"#;
    for (who, new, refused) in [
        ("carol", role("ns/new", get.clone()), None),
        ("carol", role("ns/new", named), None),
        ("carol", role("ns/new", Value::Null), None),
        (
            "carol",
            role("ns/new", more.clone()),
            Some(format!(
                "roles.rbac.authorization.k8s.io \"new\" is forbidden: user \"carol\" (groups=[\"a\" \"b\"]) {lacks}\n{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"update\"]}}"
            )),
        ),
        (
            "carol",
            role("other/new", get.clone()),
            Some(format!(
                "roles.rbac.authorization.k8s.io \"new\" is forbidden: user \"carol\" (groups=[\"a\" \"b\"]) {lacks}\n{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}}"
            )),
        ),
        // What somebody has in one namespace is not theirs to give everywhere.
        (
            "carol",
            role("new", get.clone()),
            Some(format!(
                "clusterroles.rbac.authorization.k8s.io \"new\" is forbidden: user \"carol\" (groups=[\"a\" \"b\"]) {lacks}\n{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}}"
            )),
        ),
        (
            "lost",
            role("ns/new", get.clone()),
            Some(format!(
                "roles.rbac.authorization.k8s.io \"new\" is forbidden: user \"lost\" (groups=[\"a\" \"b\"]) {lacks}\n{{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}}; resolution errors: [clusterrole.rbac.authorization.k8s.io \"gone\" not found]"
            )),
        ),
        ("root", role("new", more.clone()), None),
        ("master", role("new", more.clone()), None),
    ] {
        let refused = refused.map(|text| (403, text));
        assert_eq!(check(who, new.clone(), None).err(), refused, "{who}: {new}");
    }
    // The verb `escalate` is asked for by name, which a create does not have.
    let open = role("ns/open", more);
    let shut = role("ns/shut", get);
    assert_eq!(check("erin", open.clone(), Some(shut.clone())), Ok(()));
    assert_eq!(
        check("erin", shut, Some(open.clone())).map_err(|(code, _)| code),
        Err(403)
    );
    assert_eq!(check("erin", open, None).map_err(|(code, _)| code), Err(403));
}

#[test]
fn bindings_grant_no_more_than_their_writer_has() {
    for (who, new, refused) in [
        (
            "carol",
            binding("ns/new", "ClusterRole readers", &["User x"]),
            None,
        ),
        ("carol", binding("ns/new", "Role readers", &["User x"]), None),
        (
            "carol",
            binding("new", "ClusterRole readers", &["User x"]),
            Some(403),
        ),
        (
            "carol",
            binding("ns/new", "ClusterRole everything", &["User x"]),
            Some(403),
        ),
        ("carol", binding("ns/new", "Role gone", &["User x"]), Some(404)),
        (
            "erin",
            binding("ns/new", "ClusterRole everything", &["User x"]),
            None,
        ),
        ("erin", binding("ns/new", "ClusterRole gone", &["User x"]), None),
        (
            "erin",
            binding("new", "ClusterRole everything", &["User x"]),
            Some(403),
        ),
        (
            "root",
            binding("new", "ClusterRole everything", &["User x"]),
            None,
        ),
        ("master", binding("new", "ClusterRole gone", &["User x"]), None),
    ] {
        assert_eq!(
            check(who, new.clone(), None).err().map(|(code, _)| code),
            refused,
            "{who}: {new}"
        );
    }
    let missing = check("carol", binding("ns/new", "Role gone", &[]), None).expect_err("no such role");
    assert_eq!(missing.1, r#"roles.rbac.authorization.k8s.io "gone" not found"#);
    // The role of a binding counts when the subjects change, too.
    let old = binding("ns/b", "ClusterRole everything", &[]);
    let new = binding("ns/b", "ClusterRole everything", &["User carol"]);
    assert_eq!(check("carol", new, Some(old)).map_err(|(code, _)| code), Err(403));
}

#[test]
fn gathering_needs_everything_and_ownership_nothing() {
    let gathering = |place: &str| {
        let mut role = role(place, Value::Null);
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
        role
    };
    let refused = check("carol", gathering("new"), None).expect_err("not everything");
    assert_eq!(
        refused,
        (403, r#"clusterroles.rbac.authorization.k8s.io "new" is forbidden: must have cluster-admin privileges to use the aggregationRule"#.to_owned())
    );
    assert_eq!(check("root", gathering("new"), None), Ok(()));
    let plain = role("old", Value::Null);
    assert_eq!(
        check("carol", plain, Some(gathering("old"))).map_err(|(code, _)| code),
        Err(403)
    );
    let old = role("ns/r", json!([rule(&["*"], &["*"], &["*"], &[])]));
    let mut new = old.clone();
    new["metadata"]["ownerReferences"] = json!([]);
    new["metadata"]["finalizers"] = json!(["x"]);
    assert_eq!(check("nobody", new.clone(), Some(old.clone())), Ok(()));
    new["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(
        check("nobody", new, Some(old)).map_err(|(code, _)| code),
        Err(403)
    );
}
