//! Gathered rules, default roles, and how they come back.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{role, rule, user, wanted};
use crate::authorization::rbac::{
    Binding, PolicyRule, Reconciled, Role, RoleIndex, outdated, policy, reconciled_binding, reconciled_role,
};

fn of<T: for<'de> serde::Deserialize<'de>>(value: Value) -> T {
    serde_json::from_value(value).expect("a role or a binding")
}

fn verbs(rules: &[PolicyRule]) -> Vec<&str> {
    rules.iter().map(|rule| rule.verbs[0].as_str()).collect()
}

/// A ClusterRole with one rule of this verb; `gathers` and `labels` are `KEY=VALUE`.
fn member(name: &str, verb: Option<&str>, labels: &[&str], gathers: &[&str]) -> Arc<Role> {
    let rules: Vec<Value> = verb
        .into_iter()
        .map(|verb| rule(&[verb], &[""], &["pods"], &[]))
        .collect();
    let mut one = role(name, json!(rules));
    let pairs = |pairs: &[&str]| -> Value {
        pairs
            .iter()
            .map(|pair| pair.split_once('=').expect("a pair"))
            .map(|(k, v)| (k.to_owned(), v.into()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    one["metadata"]["labels"] = pairs(labels);
    if !gathers.is_empty() {
        let selectors: Vec<Value> = gathers
            .iter()
            .map(|pair| json!({"matchLabels": pairs(&[pair])}))
            .collect();
        one["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
    }
    Arc::new(of(one))
}

#[test]
fn rules_are_gathered_by_label_along_chains() {
    let roles = [
        member("admin", None, &[], &["to=admin"]),
        member("edit", Some("stale"), &["to=admin"], &["to=edit", "to2=edit"]),
        member("z", Some("z"), &["to=edit"], &[]),
        member("y", Some("y"), &["to=edit", "to2=edit"], &[]),
        member("x", Some("x"), &["to=admin"], &[]),
        member("done", Some("x"), &[], &["to3=done"]),
        member("w", Some("x"), &["to3=done"], &[]),
    ];
    let outdated = outdated(&roles);
    let found: Vec<(&str, Vec<&str>)> = outdated
        .iter()
        .map(|(name, rules)| (name.as_str(), verbs(rules)))
        .collect();
    assert_eq!(found, [("admin", vec!["y", "z", "x"]), ("edit", vec!["y", "z"])]);
}

#[test]
fn roles_that_gather_each_other_come_to_rest() {
    let mut roles = vec![
        member("a", None, &["l=b"], &["l=a"]),
        member("b", None, &["l=a"], &["l=b", "l=c"]),
        member("c", Some("c"), &["l=c"], &[]),
    ];
    for (name, rules) in outdated(&roles) {
        let held = roles
            .iter_mut()
            .find(|role| role.metadata.name == name)
            .expect("known");
        Arc::make_mut(held).rules = rules;
    }
    assert!(outdated(&roles).is_empty());
    assert_eq!(verbs(&roles[0].rules), ["c"]);
    let selector = json!({"matchExpressions": [{"key": "l", "operator": "In", "values": ["c"]}, {"key": "m", "operator": "DoesNotExist"}]});
    let mut by_expression = role("d", Value::Null);
    by_expression["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    roles.push(Arc::new(of(by_expression)));
    assert_eq!(outdated(&roles)["d"].len(), 1);
}

#[test]
fn default_roles_mean_what_people_expect() {
    let index = RoleIndex::with_defaults();
    super::put(
        &index,
        &super::binding("n/v", "ClusterRole view", &["User viewer"]),
    );
    super::put(
        &index,
        &super::binding("n/e", "ClusterRole edit", &["User editor"]),
    );
    super::put(
        &index,
        &super::binding("n/a", "ClusterRole admin", &["User admin"]),
    );
    for (request, viewer, editor, admin) in [
        ("get - pods n/x", true, true, true),
        ("get - pods/log n/x", true, true, true),
        ("watch apps deployments n/", true, true, true),
        ("get - secrets n/x", false, true, true),
        ("create - pods n/", false, true, true),
        ("create - pods/exec n/x", false, true, true),
        ("create - serviceaccounts/token n/x", false, true, true),
        ("impersonate - serviceaccounts n/x", false, true, true),
        ("patch apps deployments/scale n/x", false, true, true),
        ("create batch jobs n/", false, true, true),
        ("update - pods/status n/x", false, false, false),
        ("get rbac.authorization.k8s.io roles n/x", false, false, true),
        (
            "create rbac.authorization.k8s.io rolebindings n/",
            false,
            false,
            true,
        ),
        (
            "create authorization.k8s.io localsubjectaccessreviews n/",
            false,
            false,
            true,
        ),
        (
            "escalate rbac.authorization.k8s.io roles n/x",
            false,
            false,
            false,
        ),
        ("get - nodes /x", false, false, false),
        ("get - pods other/x", false, false, false),
    ] {
        let found =
            ["viewer", "editor", "admin"].map(|name| index.allows(&user(name, &[]), &wanted(request)));
        assert_eq!(found, [viewer, editor, admin], "{request}");
    }
    let known = user("u", &["system:authenticated"]);
    let unknown = user("system:anonymous", &["system:unauthenticated"]);
    for (request, of_known, of_unknown) in [
        ("get /version", true, true),
        ("get /readyz", true, true),
        ("get /readyz/etcd", false, false),
        ("get /apis/apps/v1", true, false),
        ("get /openapi/v3/apis/apps/v1", true, false),
        ("get /metrics", false, false),
        (
            "create authorization.k8s.io selfsubjectrulesreviews /",
            true,
            false,
        ),
        ("create authorization.k8s.io subjectaccessreviews /", false, false),
    ] {
        let found = [
            index.allows(&known, &wanted(request)),
            index.allows(&unknown, &wanted(request)),
        ];
        assert_eq!(found, [of_known, of_unknown], "{request}");
    }
}

#[test]
fn what_default_roles_lack_is_added_and_nothing_taken() {
    let expected: Role = of(role("r", json!([rule(&["get", "list"], &[""], &["pods"], &[])])));
    let mut expected = expected;
    expected.metadata.labels.insert("l".into(), "default".into());
    expected
        .metadata
        .annotations
        .insert(policy::AUTO_UPDATE.into(), "true".into());
    assert_eq!(reconciled_role(&expected, &expected), None);

    let mut changed = expected.clone();
    changed.rules = of(json!([rule(&["get", "delete"], &[""], &["pods"], &[])]));
    changed.metadata.labels.insert("l".into(), "mine".into());
    changed.metadata.labels.insert("more".into(), "mine".into());
    let reconciled = reconciled_role(&changed, &expected).expect("a verb is missing");
    assert_eq!(verbs(&reconciled.rules), ["get", "list"]);
    assert_eq!(reconciled.rules[0], changed.rules[0]);
    assert_eq!(reconciled.metadata, changed.metadata);
    assert_eq!(reconciled_role(&reconciled, &expected), None);

    changed
        .metadata
        .annotations
        .insert(policy::AUTO_UPDATE.into(), "false".into());
    assert_eq!(reconciled_role(&changed, &expected), None);

    let gathers = policy::cluster_roles()
        .into_iter()
        .find(|role| role.metadata.name == "view")
        .expect("a default");
    let plain = Role {
        aggregation_rule: None,
        rules: expected.rules.clone(),
        ..gathers.clone()
    };
    let reconciled = reconciled_role(&plain, &gathers).expect("it gathers");
    assert_eq!(reconciled.aggregation_rule, gathers.aggregation_rule);
    assert_eq!(
        reconciled_role(
            &Role {
                aggregation_rule: gathers.aggregation_rule.clone(),
                ..expected.clone()
            },
            &expected
        ),
        Some(expected)
    );
}

#[test]
fn default_bindings_keep_their_role_and_get_their_subjects_back() {
    let expected = policy::cluster_role_bindings()
        .into_iter()
        .find(|one| one.metadata.name == "cluster-admin")
        .expect("a default");
    assert_eq!(reconciled_binding(&expected, &expected), Reconciled::Keep);
    let mut changed = expected.clone();
    changed.subjects = of::<Binding>(super::binding("x", "ClusterRole r", &["User me"])).subjects;
    let Reconciled::Change(reconciled) = reconciled_binding(&changed, &expected) else {
        panic!("a subject is missing");
    };
    let names: Vec<&str> = reconciled
        .subjects
        .iter()
        .map(|subject| subject.name.as_str())
        .collect();
    assert_eq!(names, ["me", "system:masters"]);
    changed.role_ref.name = "view".into();
    assert_eq!(reconciled_binding(&changed, &expected), Reconciled::Recreate);
    changed
        .metadata
        .annotations
        .insert(policy::AUTO_UPDATE.into(), "false".into());
    assert_eq!(reconciled_binding(&changed, &expected), Reconciled::Keep);
}
