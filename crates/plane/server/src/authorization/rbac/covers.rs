//! Whether some rules grant all that others do.
//!
//! Follows `component-helpers/auth/rbac/validation/policy_comparator.go` and
//! `pkg/registry/rbac/validation/policy_compact.go`, Kubernetes 1.36: rules are broken down until each piece is covered
//! by one rule as a whole or not at all.

use std::collections::BTreeMap;

use super::rule::{PolicyRule, covers_path};

const ALL: &str = "*";

/// The pieces of `wanted` that no rule of `held` covers; empty if all are covered.
pub(crate) fn uncovered(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let pieces = wanted.iter().flat_map(pieces);
    pieces
        .filter(|piece| !held.iter().any(|rule| covers(rule, piece)))
        .collect()
}

/// One verb on one resource of one group, with one name at most; or one verb on one path.
fn pieces(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| vec![text.clone()];
    let mut pieces = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let piece = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    pieces.push(piece);
                    continue;
                }
                pieces.extend(rule.resource_names.iter().map(|name| PolicyRule {
                    resource_names: one(name),
                    ..piece.clone()
                }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        pieces.extend(rule.verbs.iter().map(|verb| PolicyRule {
            verbs: one(verb),
            non_resource_urls: one(url),
            ..PolicyRule::default()
        }));
    }
    pieces
}

fn covers(rule: &PolicyRule, piece: &PolicyRule) -> bool {
    let holds = |held: &[String], wanted: &[String]| {
        held.iter().any(|one| one == ALL) || wanted.iter().all(|one| held.contains(one))
    };
    holds(&rule.verbs, &piece.verbs)
        && holds(&rule.api_groups, &piece.api_groups)
        && piece
            .resources
            .iter()
            .all(|one| covers_resource(&rule.resources, one))
        && (rule.resource_names.is_empty()
            || !piece.resource_names.is_empty()
                && piece
                    .resource_names
                    .iter()
                    .all(|one| rule.resource_names.contains(one)))
        && piece
            .non_resource_urls
            .iter()
            .all(|path| rule.non_resource_urls.iter().any(|held| covers_path(held, path)))
}

fn covers_resource(held: &[String], resource: &str) -> bool {
    let subresource = resource.split_once('/').map(|(_, rest)| rest);
    held.iter().any(|one| {
        one == ALL || one == resource || subresource.is_some() && one.strip_prefix("*/") == subresource
    })
}

/// The same pieces with the verbs of one resource together, as people read them.
pub(super) fn compacted(pieces: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut together: BTreeMap<PolicyRule, Vec<String>> = BTreeMap::new();
    let mut compacted = Vec::new();
    for mut piece in pieces {
        if !piece.non_resource_urls.is_empty() {
            compacted.push(piece);
            continue;
        }
        let verbs = std::mem::take(&mut piece.verbs);
        together.entry(piece).or_default().extend(verbs);
    }
    compacted.extend(
        together
            .into_iter()
            .map(|(rule, verbs)| PolicyRule { verbs, ..rule }),
    );
    compacted
}
