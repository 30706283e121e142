//! What a default role or binding lacks where it is already there.
//!
//! Follows `component-helpers/auth/rbac/reconciliation`, Kubernetes 1.36, in its mode that only adds: what people have
//! added stays, what they have taken away comes back, and an object whose annotation says `false` is left alone.

use std::collections::BTreeMap;

use super::{
    covers::uncovered,
    policy::AUTO_UPDATE,
    role::{AggregationRule, Binding, Metadata, Role},
};

/// The role as it should be; `None` if it is, or is not to be touched.
pub(crate) fn reconciled_role(existing: &Role, expected: &Role) -> Option<Role> {
    let mut role = Role {
        metadata: metadata(&existing.metadata, &expected.metadata)?,
        ..existing.clone()
    };
    role.rules.extend(uncovered(&existing.rules, &expected.rules));
    match &expected.aggregation_rule {
        None => role.aggregation_rule = None,
        Some(expected) => {
            let held = role.aggregation_rule.get_or_insert_with(AggregationRule::default);
            for selector in &expected.cluster_role_selectors {
                if !held.cluster_role_selectors.contains(selector) {
                    held.cluster_role_selectors.push(selector.clone());
                }
            }
        }
    }
    (role != *existing).then_some(role)
}

/// What is to become of a default binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// It is as it should be, or not to be touched.
    Keep,
    Change(Binding),
    /// It grants another role, and that never changes: it goes and begins anew.
    Recreate,
}

/// What is to become of a binding.
pub(crate) fn reconciled_binding(existing: &Binding, expected: &Binding) -> Reconciled {
    let Some(metadata) = metadata(&existing.metadata, &expected.metadata) else {
        return Reconciled::Keep;
    };
    if existing.role_ref != expected.role_ref {
        return Reconciled::Recreate;
    }
    let mut binding = Binding {
        metadata,
        ..existing.clone()
    };
    for subject in &expected.subjects {
        if !binding.subjects.contains(subject) {
            binding.subjects.push(subject.clone());
        }
    }
    if binding == *existing {
        Reconciled::Keep
    } else {
        Reconciled::Change(binding)
    }
}

/// Labels and annotations with what is expected of them; `None` if the object is protected.
fn metadata(existing: &Metadata, expected: &Metadata) -> Option<Metadata> {
    if existing
        .annotations
        .get(AUTO_UPDATE)
        .is_some_and(|value| value == "false")
    {
        return None;
    }
    // What is there wins.
    let merged = |existing: &BTreeMap<String, String>, expected: &BTreeMap<String, String>| {
        let mut merged = expected.clone();
        merged.extend(existing.clone());
        merged
    };
    Some(Metadata {
        labels: merged(&existing.labels, &expected.labels),
        annotations: merged(&existing.annotations, &expected.annotations),
        ..existing.clone()
    })
}
