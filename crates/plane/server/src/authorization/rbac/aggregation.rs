//! ClusterRoles that gather the rules of others by label.
//!
//! Follows `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`, Kubernetes 1.36; here all
//! aggregated roles are worked out together, so that a role that gathers from a gathering role is right at once.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::{
    role::{AggregationRule, LabelSelector, Requirement, Role},
    rule::PolicyRule,
};

/// The aggregated roles whose rules are not what they gather, by name, with the rules they should have.
pub(crate) fn outdated(roles: &[Arc<Role>]) -> BTreeMap<String, Vec<PolicyRule>> {
    let by_name: BTreeMap<&str, &Role> = roles
        .iter()
        .map(|role| (role.metadata.name.as_str(), &**role))
        .collect();
    let gathering: Vec<(&str, &AggregationRule)> = by_name
        .iter()
        .filter_map(|(name, role)| Some((*name, role.aggregation_rule.as_ref()?)))
        .collect();
    let mut rules: BTreeMap<&str, Vec<PolicyRule>> = by_name
        .iter()
        .map(|(name, role)| (*name, role.rules.clone()))
        .collect();
    // One round for each role in the longest chain, and one that finds nothing to do. Roles that gather each other in
    // a circle hold each other's rules and come to rest too.
    for _ in 0..=gathering.len() {
        let mut is_at_rest = true;
        for (name, aggregation) in &gathering {
            let gathered = gathered(name, aggregation, &by_name, &rules);
            let held = rules.get_mut(name).expect("every role has its rules");
            if *held != gathered {
                *held = gathered;
                is_at_rest = false;
            }
        }
        if is_at_rest {
            break;
        }
    }
    gathering
        .into_iter()
        .filter_map(|(name, _)| Some((name.to_owned(), rules.remove(name)?)))
        .filter(|(name, rules)| by_name[name.as_str()].rules != *rules)
        .collect()
}

fn gathered(
    name: &str,
    aggregation: &AggregationRule,
    roles: &BTreeMap<&str, &Role>,
    rules: &BTreeMap<&str, Vec<PolicyRule>>,
) -> Vec<PolicyRule> {
    let mut gathered = Vec::new();
    let mut seen = HashSet::new();
    for selector in &aggregation.cluster_role_selectors {
        let selected = roles
            .iter()
            .filter(|(one, role)| **one != name && selector.selects(&role.metadata.labels));
        for rule in selected.flat_map(|(one, _)| &rules[one]) {
            if seen.insert(rule) {
                gathered.push(rule.clone());
            }
        }
    }
    gathered
}

impl LabelSelector {
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|one| one.holds(labels))
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            // Validation lets no other in.
            _ => false,
        }
    }
}
