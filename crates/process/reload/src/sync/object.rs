//! Which objects there are, and what one of them holds.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hotmap_object::names;
use hotmap_volume::{Keys, PayloadPath};
use serde::{Deserialize, Serialize};

/// What can be synced. ConfigMaps come first wherever both are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ObjectKind {
    ConfigMap,
    Secret,
}

impl ObjectKind {
    /// The word of the command line and of messages.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap",
            Self::Secret => "secret",
        }
    }

    /// The plural of URLs and roles.
    pub(crate) const fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ObjectKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "configmap" | "configmaps" | "cm" => Ok(Self::ConfigMap),
            "secret" | "secrets" => Ok(Self::Secret),
            _ => Err(format!("{text:?} is neither configmap nor secret")),
        }
    }
}

/// An object as it is typed: `[NAMESPACE/]KIND/NAME[=SUBDIRECTORY]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedObject {
    pub(crate) kind: ObjectKind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    /// Its keys go into this directory beneath DIR.
    pub(crate) subdirectory: Option<String>,
}

impl FromStr for TypedObject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (object, subdirectory) = match text.split_once('=') {
            Some((object, subdirectory)) => {
                let path: PayloadPath = subdirectory
                    .parse()
                    .map_err(|error| format!("{text:?}: {error}"))?;
                (object, Some(path.as_str().to_owned()))
            }
            None => (text, None),
        };
        let parts: Vec<&str> = object.split('/').collect();
        let (namespace, kind, name) = match parts[..] {
            [kind, name] => (None, kind, name),
            [namespace, kind, name] => (Some(namespace), kind, name),
            _ => {
                return Err(format!(
                    "{text:?} is no object such as configmap/NAME, secret/NAME or NAMESPACE/configmap/NAME"
                ));
            }
        };
        let kind = kind.parse().map_err(|error| format!("{text:?}: {error}"))?;
        let broken = names::dns_1123_subdomain(name);
        if let Some(rule) = broken.first() {
            return Err(format!("{text:?}: {name:?} is no name: {rule}"));
        }
        if let Some(rule) = namespace.map(names::dns_1123_label).unwrap_or_default().first() {
            return Err(format!("{text:?}: the namespace is no name: {rule}"));
        }
        Ok(Self {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            subdirectory,
        })
    }
}

/// One version of one object, by what the API calls it: nothing of it says anything about a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectVersion {
    pub(crate) kind: ObjectKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
}

/// One object, decoded. Its values are never printed.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) version: ObjectVersion,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) keys: Keys,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({} keys)", self.version, self.keys.len())
    }
}

/// What is no ConfigMap or Secret. Says where, never what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("not the JSON of an object (line {line}, column {column})")]
    Json { line: usize, column: usize },
    #[error("the value of key {key:?} is not base64")]
    Base64 { key: String },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    metadata: Metadata,
    // An empty value may be written as null, as Go writes it.
    data: Option<BTreeMap<String, Option<String>>>,
    binary_data: Option<BTreeMap<String, Option<String>>>,
    /// Of a Secret in a manifest; an API server never shows it.
    string_data: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
}

impl Document {
    /// Reads the JSON of an object of this kind.
    pub(crate) fn parse(kind: ObjectKind, json: &[u8]) -> Result<Self, DocumentError> {
        let wire: Wire = serde_json::from_slice(json).map_err(|error| DocumentError::Json {
            line: error.line(),
            column: error.column(),
        })?;
        let mut keys = Keys::new();
        for (key, value) in wire.data.unwrap_or_default() {
            let value = value.unwrap_or_default();
            let bytes = match kind {
                ObjectKind::ConfigMap => Bytes::from(value),
                ObjectKind::Secret => decoded(&key, &value)?,
            };
            keys.insert(key, bytes);
        }
        match kind {
            ObjectKind::ConfigMap => {
                for (key, value) in wire.binary_data.unwrap_or_default() {
                    let bytes = decoded(&key, &value.unwrap_or_default())?;
                    keys.insert(key, bytes);
                }
            }
            ObjectKind::Secret => {
                for (key, value) in wire.string_data.unwrap_or_default() {
                    keys.insert(key, Bytes::from(value.unwrap_or_default()));
                }
            }
        }
        let metadata = wire.metadata;
        Ok(Self {
            version: ObjectVersion {
                kind,
                namespace: metadata.namespace,
                name: metadata.name,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
            },
            annotations: metadata.annotations.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            keys,
        })
    }
}

fn decoded(key: &str, value: &str) -> Result<Bytes, DocumentError> {
    // A manifest may fold base64 over several lines, as the API does not mind either.
    let text: String = value.split(['\n', '\r']).collect();
    STANDARD
        .decode(text)
        .map(Bytes::from)
        .map_err(|_| DocumentError::Base64 { key: key.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_typed_as_kubectl_types_them() {
        for (text, expected) in [
            ("configmap/app", Some((ObjectKind::ConfigMap, None, "app", None))),
            ("cm/app", Some((ObjectKind::ConfigMap, None, "app", None))),
            ("secret/tls", Some((ObjectKind::Secret, None, "tls", None))),
            (
                "shop/secret/tls",
                Some((ObjectKind::Secret, Some("shop"), "tls", None)),
            ),
            (
                "cm/site=conf.d",
                Some((ObjectKind::ConfigMap, None, "site", Some("conf.d"))),
            ),
            (
                "cm/site=a/b/",
                Some((ObjectKind::ConfigMap, None, "site", Some("a/b"))),
            ),
            ("cm/site=../x", None),
            ("cm/site=", None),
            ("app", None),
            ("pod/app", None),
            ("cm/App", None),
            ("a/b/cm/app", None),
            ("Shop/cm/app", None),
        ] {
            let parsed = text.parse::<TypedObject>();
            let parsed = parsed.ok();
            let shown = parsed.as_ref().map(|object| {
                let subdirectory = object.subdirectory.as_deref();
                (
                    object.kind,
                    object.namespace.as_deref(),
                    object.name.as_str(),
                    subdirectory,
                )
            });
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn values_are_decoded_as_the_kind_has_them() {
        for (kind, json, expected) in [
            (
                ObjectKind::ConfigMap,
                r#"{"metadata":{"name":"a"},"data":{"k":"v"},"binaryData":{"b":"AAE="}}"#,
                Ok(vec![("b", &[0, 1][..]), ("k", b"v")]),
            ),
            (
                ObjectKind::ConfigMap,
                r#"{"data":null,"metadata":{}}"#,
                Ok(vec![]),
            ),
            (
                ObjectKind::Secret,
                r#"{"data":{"k":"dg==","e":null},"stringData":{"k":"w"}}"#,
                Ok(vec![("e", b""), ("k", b"w")]),
            ),
            (
                ObjectKind::Secret,
                "{\"data\":{\"k\":\"aHVudGVy\\nMg==\\n\"}}",
                Ok(vec![("k", b"hunter2")]),
            ),
            (
                ObjectKind::Secret,
                r#"{"data":{"k":"hunter2"}}"#,
                Err(DocumentError::Base64 { key: "k".to_owned() }),
            ),
            (
                ObjectKind::Secret,
                r#"{"data":"hunter2"}"#,
                Err(DocumentError::Json { line: 1, column: 17 }),
            ),
        ] {
            let parsed = Document::parse(kind, json.as_bytes()).map(|document| document.keys);
            let expected = expected.map(|keys| {
                keys.into_iter()
                    .map(|(key, value)| (key.to_owned(), Bytes::copy_from_slice(value)))
                    .collect::<Keys>()
            });
            assert_eq!(parsed, expected, "{json}");
        }
    }
}
