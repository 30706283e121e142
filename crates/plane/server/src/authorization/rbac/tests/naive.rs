//! The index against an evaluation that knows neither indexes nor views: it walks every stored document, and lists the
//! patterns that would allow a request instead of matching patterns.

use proptest::{prelude::*, sample::subsequence};
use serde_json::{Value, json};

use super::{binding, delete, place, put, role};
use crate::{
    authorization::{
        Attributes,
        rbac::{PolicyRule, RoleIndex, Verdict, covers::uncovered},
    },
    request::User,
};

const VERBS: &[&str] = &["get", "list", "*"];
const GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &["pods", "pods/log", "*/log", "deployments", "*"];
const NAMES: &[&str] = &["x", "y"];
const PATHS: &[&str] = &["/a", "/a/*", "/a*", "/b", "*"];
const SUBJECTS: &[&str] = &[
    "User u",
    "User v",
    "Group g",
    "Group h",
    "ServiceAccount s",
    "ServiceAccount n1/s",
    "User system:serviceaccount:n2:s",
];
const ROLES: &[&str] = &["r", "s", "n1/r", "n2/r"];
const BINDINGS: &[&str] = &["a", "b", "n1/a", "n1/b", "n2/a"];

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn allowed(objects: &[Value], user: &User, wanted: &Attributes) -> bool {
    let find = |kind: &str, namespace: &Value, name: &Value| {
        objects.iter().find(|one| {
            one["kind"] == kind
                && one["metadata"]["namespace"] == *namespace
                && one["metadata"]["name"] == *name
        })
    };
    objects.iter().any(|binding| {
        let namespace = &binding["metadata"]["namespace"];
        let is_in_force = match binding["kind"].as_str() {
            Some("ClusterRoleBinding") => true,
            Some("RoleBinding") => !wanted.namespace.is_empty() && *namespace == wanted.namespace.as_str(),
            _ => false,
        };
        let is_meant = binding["subjects"].as_array().into_iter().flatten().any(|one| {
            let name = one["name"].as_str().expect("a name");
            match one["kind"].as_str() {
                Some("User") => user.name == name,
                Some("Group") => user.groups.iter().any(|group| group == name),
                _ => {
                    let own = one["namespace"].as_str().or(namespace.as_str());
                    own.is_some_and(|own| user.name == format!("system:serviceaccount:{own}:{name}"))
                }
            }
        });
        let of = match binding["roleRef"]["kind"].as_str() {
            Some("Role") => namespace,
            _ => &Value::Null,
        };
        let kind = binding["roleRef"]["kind"].as_str().unwrap_or_default();
        let role = find(kind, of, &binding["roleRef"]["name"]);
        let rules = role
            .and_then(|role| role["rules"].as_array())
            .into_iter()
            .flatten();
        is_in_force && is_meant && rules.into_iter().any(|rule| rule_allows(rule, wanted))
    })
}

fn rule_allows(rule: &Value, wanted: &Attributes) -> bool {
    let names_one_of =
        |list: &Value, patterns: &[String]| texts(list).any(|held| patterns.iter().any(|one| one == held));
    let or_all = |text: &str| vec!["*".to_owned(), text.to_owned()];
    if !names_one_of(&rule["verbs"], &or_all(&wanted.verb)) {
        return false;
    }
    if let Some(path) = &wanted.path {
        let mut patterns = vec![path.clone()];
        patterns.extend((0..=path.len()).map(|end| format!("{}*", &path[..end])));
        return names_one_of(&rule["nonResourceURLs"], &patterns);
    }
    let resources = match wanted.subresource.as_str() {
        "" => or_all(&wanted.resource),
        sub => vec![
            "*".to_owned(),
            format!("{}/{sub}", wanted.resource),
            format!("*/{sub}"),
        ],
    };
    let names: Vec<&str> = texts(&rule["resourceNames"]).collect();
    names_one_of(&rule["apiGroups"], &or_all(&wanted.group))
        && names_one_of(&rule["resources"], &resources)
        && (names.is_empty() || names.contains(&wanted.name.as_str()))
}

fn some(of: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(of, 0..=most)
}

fn any_rule() -> impl Strategy<Value = Value> {
    let on_resources = (some(VERBS, 2), some(GROUPS, 2), some(RESOURCES, 2), some(NAMES, 2)).prop_map(
        |(verbs, groups, resources, names)| {
            json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
        },
    );
    let on_paths = (some(VERBS, 2), some(PATHS, 2))
        .prop_map(|(verbs, paths)| json!({"verbs": verbs, "nonResourceURLs": paths}));
    prop_oneof![3 => on_resources, 1 => on_paths]
}

/// An object, and whether it is put or goes.
fn any_change() -> impl Strategy<Value = (Value, bool)> {
    let roles = (
        prop::sample::select(ROLES),
        prop::collection::vec(any_rule(), 0..3),
    )
        .prop_map(|(place, rules)| role(place, json!(rules)));
    let bindings = (
        prop::sample::select(BINDINGS),
        prop::sample::select(&["ClusterRole r", "ClusterRole s", "Role r"][..]),
        some(SUBJECTS, 3),
    )
        .prop_map(|(place, role, subjects)| binding(place, role, &subjects));
    (prop_oneof![roles, bindings], prop::bool::weighted(0.8))
}

fn any_user() -> impl Strategy<Value = User> {
    let names = &[
        "u",
        "v",
        "w",
        "system:serviceaccount:n1:s",
        "system:serviceaccount:n2:s",
    ][..];
    (prop::sample::select(names), some(&["g", "h", "i"], 3))
        .prop_map(|(name, groups)| super::user(name, &groups))
}

fn any_request() -> impl Strategy<Value = Attributes> {
    let text = |of: &'static [&'static str]| prop::sample::select(of).prop_map(str::to_owned);
    let on_resources = (
        text(&["get", "list", "watch"]),
        text(&["", "apps"]),
        text(&["pods", "deployments"]),
        text(&["", "log", "scale"]),
        text(&["", "n1", "n2"]),
        text(&["", "x", "z"]),
    )
        .prop_map(
            |(verb, group, resource, subresource, namespace, name)| Attributes {
                verb,
                group,
                resource,
                subresource,
                namespace,
                name,
                ..Attributes::default()
            },
        );
    let on_paths = (text(&["get", "post"]), text(&["/a", "/a/b", "/ab", "/b", "/"]))
        .prop_map(|(verb, path)| Attributes::of_path(&verb, &path));
    prop_oneof![4 => on_resources, 1 => on_paths]
}

proptest! {
    #[test]
    fn the_index_decides_as_a_walk_over_everything_does(
        changes in prop::collection::vec(any_change(), 0..24),
        user in any_user(),
        requests in prop::collection::vec(any_request(), 1..24),
    ) {
        let index = RoleIndex::default();
        let mut objects: Vec<Value> = Vec::new();
        for (object, is_put) in changes {
            objects.retain(|held| place(held) != place(&object));
            if is_put {
                put(&index, &object);
                objects.push(object);
            } else {
                delete(&index, &object);
            }
        }
        for wanted in requests {
            let expected = allowed(&objects, &user, &wanted);
            prop_assert_eq!(index.allows(&user, &wanted), expected, "{:?} {:?}", user, wanted);
            let is_explained = matches!(index.explain(&user, &wanted), Verdict::Allowed(_));
            prop_assert_eq!(is_explained, expected);
            let (rules, _) = index.rules_of(&user, &wanted.namespace);
            prop_assert_eq!(rules.iter().any(|rule| rule.allows(&wanted)), expected);
        }
    }

    #[test]
    fn who_covers_rules_may_all_that_they_allow(
        held in prop::collection::vec(any_rule(), 0..4),
        granted in prop::collection::vec(any_rule(), 0..3),
        requests in prop::collection::vec(any_request(), 1..24),
    ) {
        let rules = |rules: &[Value]| -> Vec<PolicyRule> {
            rules.iter().map(|rule| serde_json::from_value(rule.clone()).expect("a rule")).collect()
        };
        let (held, granted) = (rules(&held), rules(&granted));
        let missing = uncovered(&held, &granted);
        for wanted in requests {
            let may = |rules: &[PolicyRule]| rules.iter().any(|rule| rule.allows(&wanted));
            // What is left over explains every right that the granted rules have and the held ones do not.
            prop_assert!(!may(&granted) || may(&held) || may(&missing), "{:?}", wanted);
        }
        prop_assert_eq!(uncovered(&granted, &granted), Vec::new());
    }
}
