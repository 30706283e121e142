//! RoleBinding and ClusterRoleBinding: who has a role.
//!
//! Rules follow `pkg/apis/rbac/v1/defaults.go` and `pkg/apis/rbac/validation/validation.go`, columns
//! `pkg/printers/internalversion/printers.go`, Kubernetes 1.36.

use hotmap_object::{FieldError, names};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::{Fields, list_mut, map_mut, set_default},
    rules::{Errors, broken, child, index, subdomain},
    table,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The rules of RoleBindings.
pub(crate) struct RoleBinding;

/// The rules of ClusterRoleBindings.
pub(crate) struct ClusterRoleBinding;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Role", "string", "Kind and name of the role that is granted."),
    table::AGE,
    table::wide("Users", "string", "Users that have the role."),
    table::wide("Groups", "string", "Groups whose members have the role."),
    table::wide(
        "ServiceAccounts",
        "string",
        "Service accounts that have the role.",
    ),
];

impl Strategy for RoleBinding {
    fn default(&self, object: &mut Map<String, Value>) {
        default_groups(object);
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        binding(object, true)
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        binding_update(new, old, true)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        cells(object, now)
    }
}

impl Strategy for ClusterRoleBinding {
    fn default(&self, object: &mut Map<String, Value>) {
        default_groups(object);
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        binding(object, false)
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        binding_update(new, old, false)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        cells(object, now)
    }
}

fn default_groups(object: &mut Map<String, Value>) {
    if let Some(role) = map_mut(object, "roleRef") {
        set_default(role, "apiGroup", GROUP);
    }
    for subject in list_mut(object, "subjects") {
        if matches!(subject.text("kind"), "User" | "Group")
            && let Some(subject) = subject.as_object_mut()
        {
            set_default(subject, "apiGroup", GROUP);
        }
    }
}

fn binding(object: &Map<String, Value>, is_namespaced: bool) -> Errors {
    let mut errors = Errors::new();
    let role = object.map("roleRef");
    if role.text("apiGroup") != GROUP {
        let sent = role.text("apiGroup");
        errors.push(FieldError::not_supported("roleRef.apiGroup", sent, &[GROUP]));
    }
    let kinds: &[&str] = if is_namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&role.text("kind")) {
        errors.push(FieldError::not_supported(
            "roleRef.kind",
            role.text("kind"),
            kinds,
        ));
    }
    match role.text("name") {
        "" => errors.push(FieldError::required("roleRef.name", "")),
        name => broken(&mut errors, "roleRef.name", name, names::path_segment(name)),
    }
    for (at, one) in object.list("subjects").iter().enumerate() {
        subject(&mut errors, &index("subjects", at), one, is_namespaced);
    }
    errors
}

fn binding_update(new: &Map<String, Value>, old: &Map<String, Value>, is_namespaced: bool) -> Errors {
    let mut errors = binding(new, is_namespaced);
    if new.map("roleRef") != old.map("roleRef") {
        let sent = Value::from(new.map("roleRef").clone());
        errors.push(FieldError::invalid("roleRef", sent, "cannot change roleRef"));
    }
    errors
}

fn subject(errors: &mut Errors, path: &str, subject: &Value, is_namespaced: bool) {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    if name.is_empty() {
        errors.push(FieldError::required(child(path, "name"), ""));
    }
    let supported = match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                broken(errors, &child(path, "name"), name, subdomain(name));
            }
            ""
        }
        "User" | "Group" => GROUP,
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(child(path, "kind"), other, &kinds));
            return;
        }
    };
    if group != supported {
        errors.push(FieldError::not_supported(
            child(path, "apiGroup"),
            group,
            &[supported],
        ));
    }
    if supported.is_empty() && !is_namespaced && subject.text("namespace").is_empty() {
        errors.push(FieldError::required(child(path, "namespace"), ""));
    }
}

fn cells(object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
    let role = object.map("roleRef");
    let subjects = |kind: &str| -> Value {
        let of_kind = object
            .list("subjects")
            .iter()
            .filter(|one| one.text("kind") == kind);
        let names: Vec<String> = of_kind
            .map(|one| match kind {
                "ServiceAccount" => format!("{}/{}", one.text("namespace"), one.text("name")),
                _ => one.text("name").to_owned(),
            })
            .collect();
        names.join(", ").into()
    };
    vec![
        table::name(object),
        format!("{}/{}", role.text("kind"), role.text("name")).into(),
        table::age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    fn with(role: Value, subjects: Value) -> Map<String, Value> {
        let mut object = map(json!({"roleRef": role, "subjects": subjects}));
        default_groups(&mut object);
        object
    }

    #[test]
    fn groups_are_filled_in_where_they_can_only_be_one() {
        let object = with(
            json!({"kind": "Role", "name": "r"}),
            json!([{"kind": "User", "name": "a"}, {"kind": "Group", "name": "b", "apiGroup": ""}, {"kind": "ServiceAccount", "name": "c"}, {"kind": "Other", "name": "d"}]),
        );
        assert_eq!(object["roleRef"]["apiGroup"], GROUP);
        let groups: Vec<&str> = object
            .list("subjects")
            .iter()
            .map(|one| one.text("apiGroup"))
            .collect();
        assert_eq!(groups, [GROUP, GROUP, "", ""]);
    }

    #[test]
    fn roles_and_subjects_are_of_the_known_kinds() {
        let role = json!({"kind": "ClusterRole", "name": "r"});
        let account = json!([{"kind": "ServiceAccount", "name": "a"}]);
        let table = [
            (
                role.clone(),
                account.clone(),
                vec![],
                vec!["subjects[0].namespace: Required value"],
            ),
            (
                json!({"kind": "Role", "name": "r"}),
                json!([]),
                vec![],
                vec!["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""],
            ),
            (
                json!({"kind": "ClusterRole", "name": "a/b", "apiGroup": "x"}),
                json!([]),
                vec![
                    "roleRef.apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
                    "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
                ],
                vec![
                    "roleRef.apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
                    "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
                ],
            ),
            (
                role,
                json!([{"kind": "User", "name": "", "apiGroup": "x"}, {"kind": "Robot", "name": "a"}]),
                vec![
                    "subjects[0].name: Required value",
                    "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
                    "subjects[1].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                ],
                vec![
                    "subjects[0].name: Required value",
                    "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"rbac.authorization.k8s.io\"",
                    "subjects[1].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                ],
            ),
        ];
        for (role, subjects, namespaced, cluster) in table {
            let object = with(role, subjects);
            assert_eq!(texts(&RoleBinding.validate(&object)), namespaced, "{object:?}");
            assert_eq!(
                texts(&ClusterRoleBinding.validate(&object)),
                cluster,
                "{object:?}"
            );
        }
    }

    #[test]
    fn the_role_of_a_binding_stays() {
        let old = with(json!({"kind": "Role", "name": "a"}), json!([]));
        let new = with(json!({"kind": "Role", "name": "b"}), json!([]));
        assert_eq!(texts(&RoleBinding.validate_update(&old, &old, "")), [""; 0]);
        let errors = texts(&RoleBinding.validate_update(&new, &old, ""));
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors[0].starts_with("roleRef: Invalid value: {")
                && errors[0].ends_with(": cannot change roleRef")
        );
    }

    #[test]
    fn the_wide_row_names_the_subjects() {
        let mut object = with(
            json!({"kind": "ClusterRole", "name": "view"}),
            json!([{"kind": "User", "name": "a"}, {"kind": "User", "name": "b"}, {"kind": "ServiceAccount", "name": "c", "namespace": "n"}]),
        );
        object.insert(
            "metadata".into(),
            json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}),
        );
        let now = "2026-01-01T00:00:05Z".parse().expect("a time");
        let cells = RoleBinding.cells(&object, now);
        assert_eq!(
            cells,
            [
                json!("x"),
                json!("ClusterRole/view"),
                json!("5s"),
                json!("a, b"),
                json!(""),
                json!("n/c")
            ]
        );
    }
}
