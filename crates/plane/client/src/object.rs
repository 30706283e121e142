//! Objects as the server sent them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hotmap_trace::TraceContext;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::ClientError;

/// One object: its JSON, and of its metadata what a client needs to tell objects and their versions apart.
/// Cloning is cheap.
#[derive(Clone, PartialEq, Eq)]
pub struct RawObject {
    json: Bytes,
    meta: std::sync::Arc<Meta>,
    committed_unix_nano: Option<u64>,
    trace: Option<TraceContext>,
}

#[derive(Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    metadata: Option<Meta>,
}

impl RawObject {
    /// Reads the metadata out of a JSON object.
    ///
    /// # Errors
    /// [`ClientError::Decode`] when it is no JSON object, or its metadata is malformed.
    pub fn from_json(json: Bytes) -> Result<Self, ClientError> {
        let envelope: Envelope =
            serde_json::from_slice(&json).map_err(|error| ClientError::decode("object", &error))?;
        Ok(Self {
            json,
            meta: envelope.metadata.unwrap_or_default().into(),
            committed_unix_nano: None,
            trace: None,
        })
    }

    /// An own copy of a part of a larger document, so that keeping one object does not keep the whole list.
    pub(crate) fn copied_from(part: &RawValue) -> Result<Self, ClientError> {
        Self::from_json(Bytes::copy_from_slice(part.get().as_bytes()))
    }

    pub(crate) fn committed_at(mut self, unix_nano: Option<u64>) -> Self {
        self.committed_unix_nano = unix_nano;
        self
    }

    pub(crate) fn traced(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace;
        self
    }

    /// The request that made the change which brought this object, where somebody traces it and the server tells.
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// When the change that brought this object was committed, by the clock of the server; `None` where nobody told.
    pub fn committed(&self) -> Option<SystemTime> {
        self.committed_unix_nano
            .map(|nanos| UNIX_EPOCH + Duration::from_nanos(nanos))
    }

    /// Empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.meta.namespace
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.meta.name
    }

    /// The uid: an object re-created under its name has another one.
    pub fn uid(&self) -> &str {
        &self.meta.uid
    }

    /// The version, an opaque text.
    pub fn resource_version(&self) -> &str {
        &self.meta.resource_version
    }

    /// The JSON as the server sent it. Items of a list may lack `kind` and `apiVersion`.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The object as a type of the caller's.
    ///
    /// # Errors
    /// [`ClientError::Decode`] when the types do not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.json).map_err(|error| ClientError::decode("object", &error))
    }
}

/// Identity and size only: it may be a Secret.
impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, name) = (self.namespace(), self.name());
        write!(
            f,
            "{namespace}/{name}@{} ({} bytes)",
            self.resource_version(),
            self.json.len()
        )
    }
}

/// A list, or one page of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectList {
    /// The revision the whole list is of; a watch from here misses nothing.
    pub resource_version: String,
    /// Where the next page starts; empty on the last one.
    pub continue_token: String,
    /// The objects, in the server's order.
    pub items: Vec<RawObject>,
}

impl ObjectList {
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, ClientError> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(default)]
            metadata: PageMeta,
            #[serde(borrow, default)]
            items: Option<Vec<&'a RawValue>>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct PageMeta {
            resource_version: String,
            r#continue: String,
        }
        let page: Page<'_> =
            serde_json::from_slice(json).map_err(|error| ClientError::decode("list", &error))?;
        let items = page
            .items
            .unwrap_or_default()
            .into_iter()
            .map(RawObject::copied_from);
        Ok(Self {
            resource_version: page.metadata.resource_version,
            continue_token: page.metadata.r#continue,
            items: items.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_leniently_and_content_never_shown() {
        for (json, shown) in [
            (
                r#"{"metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"7"}}"#,
                "n/a@7 (73 bytes)",
            ),
            (r#"{"metadata":null,"data":{"k":"hunter2"}}"#, "/@ (40 bytes)"),
            (r#"{"kind":"Status"}"#, "/@ (17 bytes)"),
        ] {
            assert_eq!(format!("{:?}", RawObject::from_json(json.into()).unwrap()), shown);
        }
        let error = RawObject::from_json(r#"{"metadata":"hunter2"}"#.into()).expect_err("no metadata");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn a_list_has_its_revision_items_and_the_next_page() {
        let list = ObjectList::from_json(
            br#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":"c"},
                "items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#,
        )
        .unwrap();
        assert_eq!(
            (list.resource_version.as_str(), list.continue_token.as_str()),
            ("9", "c")
        );
        assert_eq!(
            list.items.iter().map(RawObject::name).collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert!(
            ObjectList::from_json(br#"{"items":null}"#)
                .unwrap()
                .items
                .is_empty()
        );
    }
}
