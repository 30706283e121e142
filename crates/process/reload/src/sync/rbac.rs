//! `--print-rbac`: the rights that a call needs, and nothing more.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::sync::merge::{Selection, Who};
use crate::sync::object::ObjectKind;

/// A service account, and for each namespace a Role and its binding, as YAML for `kubectl apply -f -`. Labels in all namespaces
/// need a ClusterRole.
pub(crate) fn manifests(selections: &[Selection], account: &str, account_namespace: &str) -> String {
    let mut text = String::new();
    header(
        &mut text,
        "v1",
        "ServiceAccount",
        account,
        Some(account_namespace),
        true,
    );
    let mut namespaces: BTreeMap<Option<&str>, Vec<&Selection>> = BTreeMap::new();
    for selection in selections {
        namespaces
            .entry(selection.namespace.as_deref())
            .or_default()
            .push(selection);
    }
    for (namespace, selections) in namespaces {
        let (role, binding) = match namespace {
            Some(_) => ("Role", "RoleBinding"),
            None => ("ClusterRole", "ClusterRoleBinding"),
        };
        const GROUP: &str = "rbac.authorization.k8s.io/v1";
        header(&mut text, GROUP, role, account, namespace, false);
        text.push_str("rules:\n");
        for kind in [ObjectKind::ConfigMap, ObjectKind::Secret] {
            rule(&mut text, kind, &selections);
        }
        header(&mut text, GROUP, binding, account, namespace, false);
        let subject = format!("- {{kind: ServiceAccount, name: {account}, namespace: {account_namespace}}}");
        push(
            &mut text,
            format_args!("roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role}, name: {account}}}"),
        );
        push(&mut text, format_args!("subjects:\n{subject}"));
    }
    text
}

fn header(text: &mut String, version: &str, kind: &str, name: &str, namespace: Option<&str>, is_first: bool) {
    if !is_first {
        text.push_str("---\n");
    }
    let metadata = match namespace {
        Some(namespace) => format!("{{name: {name}, namespace: {namespace}}}"),
        None => format!("{{name: {name}}}"),
    };
    push(
        text,
        format_args!("apiVersion: {version}\nkind: {kind}\nmetadata: {metadata}"),
    );
}

/// A list or watch of one name is decided as one of that object: with names alone the rule names all there is to see.
/// A selection by label sees every object of its kind there, which is why it has a line of its own.
fn rule(text: &mut String, kind: ObjectKind, selections: &[&Selection]) {
    let of_kind = || selections.iter().filter(|selection| selection.kind == kind);
    let mut names: Vec<&str> = of_kind()
        .filter_map(|selection| match &selection.who {
            Who::Named(name) => Some(name.as_str()),
            Who::Labelled(_) => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let resource = kind.resource();
    if of_kind().any(|selection| matches!(selection.who, Who::Labelled(_))) {
        push(
            text,
            format_args!(
                "# Labels cannot be named in a rule: this is the right to read all {resource} here."
            ),
        );
        push(
            text,
            format_args!("- apiGroups: ['']\n  resources: [{resource}]\n  verbs: [list, watch]"),
        );
    } else if !names.is_empty() {
        let names = names.join(", ");
        push(
            text,
            format_args!(
                "- apiGroups: ['']\n  resources: [{resource}]\n  resourceNames: [{names}]\n  verbs: [list, watch]"
            ),
        );
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes all that is written");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(kind: ObjectKind, namespace: Option<&str>, who: Who) -> Selection {
        Selection {
            kind,
            namespace: namespace.map(str::to_owned),
            who,
            subdirectory: None,
        }
    }

    #[test]
    fn a_role_names_the_objects_and_nothing_else() {
        let named = |kind, name: &str| selection(kind, Some("shop"), Who::Named(name.to_owned()));
        let selections = [
            named(ObjectKind::ConfigMap, "site"),
            named(ObjectKind::ConfigMap, "app"),
            named(ObjectKind::Secret, "tls"),
        ];
        let expected = "\
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web, namespace: shop}
rules:
- apiGroups: ['']
  resources: [configmaps]
  resourceNames: [app, site]
  verbs: [list, watch]
- apiGroups: ['']
  resources: [secrets]
  resourceNames: [tls]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects:
- {kind: ServiceAccount, name: web, namespace: shop}
";
        assert_eq!(manifests(&selections, "web", "shop"), expected);
    }

    #[test]
    fn labels_in_all_namespaces_need_a_cluster_role() {
        let labelled = selection(ObjectKind::ConfigMap, None, Who::Labelled("app=x".to_owned()));
        let text = manifests(&[labelled], "web", "shop");
        for line in [
            "kind: ClusterRole",
            "kind: ClusterRoleBinding",
            "metadata: {name: web}",
            "  verbs: [list, watch]",
        ] {
            assert!(
                text.lines().any(|shown| shown == line),
                "{line}\nis not in\n{text}"
            );
        }
        assert!(
            !text.contains("secrets") && !text.contains("resourceNames"),
            "{text}"
        );
    }
}
