//! Nobody grants what they do not have.
//!
//! Follows `pkg/registry/rbac/escalation_check.go`, `pkg/registry/rbac/*/policybased/storage.go` and
//! `pkg/registry/rbac/validation/rule.go`, Kubernetes 1.36.

use std::collections::BTreeSet;

use hotmap_kinds::Resource;
use hotmap_object::{GroupResource, Status};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    RoleIndex,
    covers::{compacted, uncovered},
    role::{Binding, GROUP, Role, RoleRef},
    rule::{PolicyRule, quoted},
};
use crate::{authorization::Attributes, request::User};

/// A write of a role or a binding that somebody asks for.
pub(crate) struct Grant<'a> {
    pub(crate) user: &'a User,
    pub(crate) resource: &'static Resource,
    /// As in the URL.
    pub(crate) namespace: &'a str,
    /// As in the URL: empty on create.
    pub(crate) name: &'a str,
    pub(crate) new: &'a Map<String, Value>,
    /// What is there now; `None` on create.
    pub(crate) old: Option<&'a Map<String, Value>>,
}

impl Grant<'_> {
    /// Lets everything pass that is no role and no binding.
    ///
    /// # Errors
    ///
    /// 403 that names what the user lacks; 404 for a binding to a role that does not exist, by somebody without the
    /// right to bind it.
    pub(crate) fn check(&self, index: &RoleIndex) -> Result<(), Status> {
        let is_role = match (self.resource.group, self.resource.plural) {
            (GROUP, "roles" | "clusterroles") => true,
            (GROUP, "rolebindings" | "clusterrolebindings") => false,
            _ => return Ok(()),
        };
        if self.user.is_in("system:masters")
            || self.old.is_some_and(|old| changes_only_ownership(self.new, old))
        {
            return Ok(());
        }
        if is_role {
            self.check_role(index)
        } else {
            self.check_binding(index)
        }
    }

    fn check_role(&self, index: &RoleIndex) -> Result<(), Status> {
        if self.may(index, "escalate", self.resource.plural, self.name) {
            return Ok(());
        }
        let role: Role = view(self.new);
        self.covered(index, &role.rules)?;
        let aggregates = |role: &Role| {
            let rule = role.aggregation_rule.as_ref();
            rule.is_some_and(|rule| !rule.cluster_role_selectors.is_empty())
        };
        // An aggregation can gather anything: who sets or changes one has to have everything.
        if (aggregates(&role) || self.old.is_some_and(|old| aggregates(&view(old))))
            && self.covered(index, &everything()).is_err()
        {
            return Err(self.forbidden("must have cluster-admin privileges to use the aggregationRule"));
        }
        Ok(())
    }

    fn check_binding(&self, index: &RoleIndex) -> Result<(), Status> {
        let binding: Binding = view(self.new);
        let role = binding.role_ref;
        let plural = match role.kind.as_str() {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            // Validation refuses it.
            _ => return Ok(()),
        };
        if self.may(index, "bind", plural, &role.name) {
            return Ok(());
        }
        let rules = self.rules_of(index, &role, plural)?;
        self.covered(index, &rules)
    }

    fn rules_of(&self, index: &RoleIndex, role: &RoleRef, plural: &str) -> Result<Vec<PolicyRule>, Status> {
        let found = index.read(|state| {
            let role = state.granted(role, self.namespace)?;
            Some(role.rules.clone())
        });
        found.ok_or_else(|| {
            let resource = GroupResource {
                group: GROUP.into(),
                resource: plural.to_owned().into(),
            };
            Status::not_found(&resource, &role.name)
        })
    }

    fn may(&self, index: &RoleIndex, verb: &str, plural: &str, name: &str) -> bool {
        let wanted = Attributes {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: plural.to_owned(),
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        index.allows(self.user, &wanted)
    }

    fn covered(&self, index: &RoleIndex, wanted: &[PolicyRule]) -> Result<(), Status> {
        let (held, errors) = index.rules_of(self.user, self.namespace);
        let missing = uncovered(&held, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let lines: BTreeSet<String> = compacted(missing).iter().map(PolicyRule::to_string).collect();
        let lines: Vec<String> = lines.into_iter().collect();
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.name,
            quoted(&self.user.groups),
            lines.join("\n")
        );
        if let Some(errors) = errors {
            why.push_str(&format!("; resolution errors: [{errors}]"));
        }
        Err(self.forbidden(&why))
    }

    fn forbidden(&self, why: &str) -> Status {
        let name = self
            .new
            .get("metadata")
            .map_or("", |metadata| metadata["name"].as_str().unwrap_or_default());
        Status::forbidden(&self.resource.group_resource(), name, why)
    }
}

fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = PolicyRule {
        verbs: all(),
        api_groups: all(),
        resources: all(),
        ..PolicyRule::default()
    };
    let paths = PolicyRule {
        verbs: all(),
        non_resource_urls: all(),
        ..PolicyRule::default()
    };
    [resources, paths]
}

/// The schema has checked the object: what cannot be read is a field that no rule is about.
fn view<T: for<'de> Deserialize<'de> + Default>(object: &Map<String, Value>) -> T {
    T::deserialize(object).unwrap_or_default()
}

/// Whether only owners and finalizers change, which garbage collection does for everybody.
fn changes_only_ownership(new: &Map<String, Value>, old: &Map<String, Value>) -> bool {
    let rest = |object: &Map<String, Value>| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in [
                "ownerReferences",
                "finalizers",
                "managedFields",
                "selfLink",
                "resourceVersion",
            ] {
                metadata.remove(field);
            }
        }
        object
    };
    rest(new) == rest(old)
}
