//! One rule of a role, and what it allows.
//!
//! Follows `pkg/apis/rbac/v1/evaluation_helpers.go`, Kubernetes 1.36.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::authorization::Attributes;

/// Stands for everything in verbs, groups, resources and paths.
const ALL: &str = "*";

/// Verbs on resources of groups, perhaps of some names only; or verbs on paths.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicyRule {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) verbs: Vec<String>,
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    /// `pods`, `pods/log`, `*/scale` or `*`.
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    /// Empty: of every name, and of none, as a list asks for.
    #[serde(deserialize_with = "or_empty", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    /// `/metrics`, or everything below with a star at the end.
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "or_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) non_resource_urls: Vec<String>,
}

/// Go writes a list without items as null.
pub(super) fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl PolicyRule {
    /// Whether the rule alone is enough for this.
    pub(crate) fn allows(&self, wanted: &Attributes) -> bool {
        let has_verb = matches(&self.verbs, &wanted.verb);
        match &wanted.path {
            Some(path) => has_verb && self.non_resource_urls.iter().any(|url| covers_path(url, path)),
            None => {
                has_verb
                    && matches(&self.api_groups, &wanted.group)
                    && self
                        .resources
                        .iter()
                        .any(|one| is_resource(one, &wanted.resource, &wanted.subresource))
                    && (self.resource_names.is_empty() || self.resource_names.contains(&wanted.name))
            }
        }
    }
}

fn matches(held: &[String], wanted: &str) -> bool {
    held.iter().any(|one| one == ALL || one == wanted)
}

fn is_resource(held: &str, resource: &str, subresource: &str) -> bool {
    if held == ALL {
        return true;
    }
    if subresource.is_empty() {
        return held == resource;
    }
    let rest = held.strip_prefix(resource).or_else(|| held.strip_prefix(ALL));
    rest.and_then(|rest| rest.strip_prefix('/')) == Some(subresource)
}

/// Whether a path of a rule stands for another path, or for all that another path with a star stands for.
pub(super) fn covers_path(held: &str, path: &str) -> bool {
    held == path || held.ends_with('*') && path.starts_with(held.trim_end_matches('*'))
}

/// Short, as in upstream's errors: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown = parts.into_iter().filter(|(_, values)| !values.is_empty());
        let shown: Vec<String> = shown
            .map(|(name, values)| format!("{name}:{}", quoted(values)))
            .collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

/// A list as Go's `%q` writes it.
pub(super) fn quoted(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", values.join(" "))
}
