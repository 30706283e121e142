//! Role-based access control: what roles and bindings allow.
//!
//! ```text
//!   user, groups ──▶ bindings of the cluster, bindings of the namespace ──▶ roles ──▶ rules ──▶ one that allows it?
//! ```
//!
//! Follows `plugin/pkg/auth/authorizer/rbac/rbac.go` and `pkg/registry/rbac/validation/rule.go`, Kubernetes 1.36. Rules
//! only add, so the first that allows decides; what no rule allows is refused.

mod aggregation;
mod covers;
mod escalation;
mod index;
pub(crate) mod policy;
mod reconcile;
mod role;
mod rule;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

pub(crate) use aggregation::outdated;
pub(crate) use escalation::Grant;
use index::Found;
pub(crate) use index::RoleIndex;
pub(crate) use reconcile::{Reconciled, reconciled_binding, reconciled_role};
use role::RoleRef;
pub(crate) use role::{Binding, GROUP, Metadata, Role};
pub(crate) use rule::PolicyRule;

use super::Attributes;
use crate::request::User;

/// What roles and bindings have to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// With the sentence that names the binding.
    Allowed(String),
    /// With a sentence about roles that are missing; empty if none is.
    NoOpinion(String),
}

impl RoleIndex {
    /// Whether a rule allows this.
    pub(crate) fn allows(&self, user: &User, wanted: &Attributes) -> bool {
        let allowing = |found: Found<'_>| match found {
            Found::Rule { rule, .. } if rule.allows(wanted) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        self.read(|state| state.visit(user, &wanted.namespace, allowing).is_break())
    }

    /// Whether a rule allows this, and why.
    pub(crate) fn explain(&self, user: &User, wanted: &Attributes) -> Verdict {
        self.read(|state| {
            let mut grant = None;
            let mut missing = Vec::new();
            let walk = state.visit(user, &wanted.namespace, |found| match found {
                Found::Rule { binding, rule } if rule.allows(wanted) => {
                    grant = Some(binding);
                    ControlFlow::Break(())
                }
                Found::Rule { .. } => ControlFlow::Continue(()),
                Found::Missing(role) => {
                    missing.push(role);
                    ControlFlow::Continue(())
                }
            });
            debug_assert_eq!(walk.is_break(), grant.is_some());
            match grant {
                Some(binding) => Verdict::Allowed(format!("RBAC: allowed by {}", binding.describe(user))),
                None => Verdict::NoOpinion(
                    sentence(&missing).map_or_else(String::new, |text| format!("RBAC: {text}")),
                ),
            }
        })
    }

    /// Every rule a user has in a namespace, and a sentence about roles that are missing.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Option<String>) {
        self.read(|state| {
            let mut rules = Vec::new();
            let mut missing = Vec::new();
            let walk = state.visit(user, namespace, |found| {
                match found {
                    Found::Rule { rule, .. } => rules.push(rule.clone()),
                    Found::Missing(role) => missing.push(role),
                }
                ControlFlow::Continue(())
            });
            debug_assert!(walk.is_continue());
            (rules, sentence(&missing))
        })
    }
}

/// Several errors in one, as upstream's aggregates are written.
fn sentence(missing: &[&RoleRef]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for role in missing {
        let text = role.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.len() {
        0 => None,
        1 => texts.pop(),
        _ => Some(format!("[{}]", texts.join(", "))),
    }
}
