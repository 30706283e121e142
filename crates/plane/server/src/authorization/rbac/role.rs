//! Roles and bindings as decisions see them: narrow views of stored objects.

use std::{collections::BTreeMap, fmt};

use hotmap_object::Object;
use serde::{Deserialize, Serialize};

use super::rule::{PolicyRule, or_empty};
use crate::request::User;

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// A Role or a ClusterRole.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Role {
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) rules: Vec<PolicyRule>,
    pub(crate) aggregation_rule: Option<AggregationRule>,
}

/// A RoleBinding or a ClusterRoleBinding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Binding {
    pub(crate) metadata: Metadata,
    pub(crate) role_ref: RoleRef,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) subjects: Vec<Subject>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    /// Empty for ClusterRoles and ClusterRoleBindings.
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The role that a binding grants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RoleRef {
    pub(crate) api_group: String,
    /// `Role`, in the binding's namespace, or `ClusterRole`.
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// Who a binding is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Subject {
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) api_group: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
}

/// Which other ClusterRoles' rules a ClusterRole gathers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AggregationRule {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) cluster_role_selectors: Vec<LabelSelector>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LabelSelector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Requirement {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<String>,
}

/// A name under which subjects are found: service accounts are users.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    User(String),
    Group(String),
}

/// Reads a stored object of one of the four kinds.
pub(super) fn read<T: for<'de> Deserialize<'de>>(object: &Object) -> Option<T> {
    serde_json::from_slice(object.json())
        .inspect_err(|error| {
            let name = &*object.index().name;
            tracing::error!(%error, name, "a stored role or binding cannot be read and grants nothing");
        })
        .ok()
}

impl Subject {
    /// `None` for subjects that nobody can be, such as a service account of no namespace.
    pub(super) fn holder(&self, binding_namespace: &str) -> Option<Holder> {
        match self.kind.as_str() {
            "User" => Some(Holder::User(self.name.clone())),
            "Group" => Some(Holder::Group(self.name.clone())),
            "ServiceAccount" => {
                let namespace = match self.namespace.as_str() {
                    "" => binding_namespace,
                    namespace => namespace,
                };
                let name = format!("system:serviceaccount:{namespace}:{}", self.name);
                (!namespace.is_empty()).then_some(Holder::User(name))
            }
            _ => None,
        }
    }
}

impl Binding {
    /// What granted something to a user, as upstream says it: its names are the wrong way round there too.
    pub(super) fn describe(&self, user: &User) -> String {
        let namespace = &self.metadata.namespace;
        let is_user = |subject: &&Subject| match subject.holder(namespace) {
            Some(Holder::User(name)) => name == user.name,
            Some(Holder::Group(group)) => user.is_in(&group),
            None => false,
        };
        let subject = self
            .subjects
            .iter()
            .find(is_user)
            .map_or_else(String::new, |subject| {
                let name = match (subject.kind.as_str(), subject.namespace.as_str()) {
                    ("ServiceAccount", "") => format!("{}/{namespace}", subject.name),
                    ("ServiceAccount", of) => format!("{}/{of}", subject.name),
                    _ => subject.name.clone(),
                };
                format!("{} {name:?}", subject.kind)
            });
        let (kind, name) = match namespace.as_str() {
            "" => ("ClusterRoleBinding", self.metadata.name.clone()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.metadata.name)),
        };
        let role = &self.role_ref;
        format!("{kind} {name:?} of {} {:?} to {subject}", role.kind, role.name)
    }
}

/// The sentence about a role that does not exist.
impl fmt::Display for RoleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.as_str() {
            "Role" | "ClusterRole" => {
                let kind = self.kind.to_ascii_lowercase();
                write!(f, "{kind}.{GROUP} {:?} not found", self.name)
            }
            other => write!(f, "unsupported role reference kind: {other:?}"),
        }
    }
}
