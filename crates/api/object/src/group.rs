//! Names of types: group, version and kind, and the group and plural name that URLs and messages use.

use std::{borrow::Cow, fmt};

/// The type of an object, as `apiVersion` and `kind` spell it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Version within the group, such as `v1`.
    pub version: Cow<'static, str>,
    /// Kind in CamelCase, such as `ConfigMap`.
    pub kind: Cow<'static, str>,
}

impl GroupVersionKind {
    /// A type whose names are known at compile time.
    pub const fn fixed(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
        }
    }

    /// Splits `apiVersion` at its slash: `apps/v1` has a group, `v1` is the core group's.
    pub fn parse(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: Cow::Owned(group.to_owned()),
            version: Cow::Owned(version.to_owned()),
            kind: Cow::Owned(kind.to_owned()),
        }
    }

    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone().into_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A resource name in messages and permissions: `configmaps`, `deployments.apps`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Plural resource name in lower case.
    pub resource: Cow<'static, str>,
}

impl GroupResource {
    /// A resource whose names are known at compile time.
    pub const fn fixed(group: &'static str, resource: &'static str) -> Self {
        Self {
            group: Cow::Borrowed(group),
            resource: Cow::Borrowed(resource),
        }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group)
        }
    }
}
