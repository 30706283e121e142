//! Which object is asked about: `configmap/NAME`.

use hotmap_object::names;
use serde::Serialize;

/// The two kinds that are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ObjectKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// One ConfigMap or Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Its kind.
    pub kind: ObjectKind,
    /// The namespace it lives in.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why a text names no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It has not the shape.
    #[error("{0:?} is not KIND/NAME, such as configmap/app or secret/db")]
    Shape(String),
    /// Another kind.
    #[error("{0:?} is not a kind that is delivered: configmap (cm) or secret")]
    Kind(String),
    /// A name that no object can have.
    #[error("{name:?} cannot be the name of a {what}: {}", .broken.join("; "))]
    Name {
        /// The name.
        name: String,
        /// Object or namespace.
        what: &'static str,
        /// The rules it breaks.
        broken: Vec<String>,
    },
}

impl ObjectKind {
    /// Plural, as in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    /// Singular in lower case.
    pub fn singular(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }

    /// As `kind` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

impl Target {
    /// Reads `KIND/NAME`; the kind in any spelling that kubectl takes.
    ///
    /// # Errors
    /// [`TargetError`]
    pub fn parse(given: &str, namespace: &str) -> Result<Self, TargetError> {
        let (kind, name) = given
            .split_once('/')
            .filter(|(kind, name)| !kind.is_empty() && !name.is_empty())
            .ok_or_else(|| TargetError::Shape(given.to_owned()))?;
        let kind = match kind.to_lowercase().as_str() {
            "configmap" | "configmaps" | "cm" => ObjectKind::ConfigMap,
            "secret" | "secrets" => ObjectKind::Secret,
            _ => return Err(TargetError::Kind(kind.to_owned())),
        };
        for (name, what, broken) in [
            (name, kind.singular(), names::dns_1123_subdomain(name)),
            (namespace, "namespace", names::dns_1123_label(namespace)),
        ] {
            if !broken.is_empty() {
                let name = name.to_owned();
                return Err(TargetError::Name { name, what, broken });
            }
        }
        Ok(Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind.singular(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_for_kubectl() {
        for (given, found) in [
            ("configmap/app", Some("configmap/app")),
            ("cm/app.v1", Some("configmap/app.v1")),
            ("Secrets/db", Some("secret/db")),
            ("pod/web", None),
            ("configmap", None),
            ("configmap/", None),
            ("configmap/A_b", None),
            ("configmap/a/b", None),
        ] {
            let target = Target::parse(given, "default")
                .ok()
                .map(|target| target.to_string());
            assert_eq!(target.as_deref(), found, "{given}");
        }
        assert!(Target::parse("cm/a", "A").is_err());
    }
}
