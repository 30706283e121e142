//! One stored object as everybody shares it: canonical JSON bytes and the few parsed facts that requests ask for.
//!
//! ```text
//! {"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7",…},"data":{…}}
//!                                                  └── spliced in once the store has answered
//! ```

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::Revision;

const METADATA_OPENING: &[u8] = b"\"metadata\":{";

/// An object that is encoded but has no revision yet.
#[derive(Debug, Clone)]
pub struct Draft {
    json: Vec<u8>,
    /// Offset right behind the brace that opens `metadata`.
    splice_at: usize,
    metadata_is_empty: bool,
    index: ObjectIndex,
}

/// One revision of one object. Shared behind an `Arc`; never changed.
#[derive(Debug, Clone)]
pub struct Object {
    revision: Revision,
    json: Bytes,
    index: ObjectIndex,
}

/// What requests ask of an object without parsing it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectIndex {
    /// `metadata.namespace`; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Selectable fields of the kind, `metadata.name` and `metadata.namespace` apart, sorted by path.
    pub fields: Box<[(&'static str, Box<str>)]>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_deleting: bool,
}

impl ObjectIndex {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(held, _)| (**held).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// The value of a selectable field.
    pub fn field(&self, path: &str) -> Option<&str> {
        match path {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            path => self
                .fields
                .iter()
                .find(|(held, _)| *held == path)
                .map(|(_, value)| &**value),
        }
    }
}

impl Draft {
    /// Encodes an object. `fields` are the kind's selectable fields besides name and namespace.
    ///
    /// A `metadata.resourceVersion` in `value` is left out: only the store gives one.
    pub fn new(value: &Map<String, Value>, fields: Vec<(&'static str, String)>) -> Self {
        let mut json = Vec::with_capacity(512);
        json.push(b'{');
        for key in ["kind", "apiVersion"] {
            if let Some(held) = value.get(key) {
                write_member(&mut json, key, held);
            }
        }
        let empty = Map::new();
        let metadata = value.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        separate(&mut json);
        json.extend_from_slice(METADATA_OPENING);
        let splice_at = json.len();
        for (key, held) in metadata.iter().filter(|(key, _)| *key != "resourceVersion") {
            write_member(&mut json, key, held);
        }
        let metadata_is_empty = json.len() == splice_at;
        json.push(b'}');
        for (key, held) in value
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion" | "metadata"))
        {
            write_member(&mut json, key, held);
        }
        json.push(b'}');
        Self {
            json,
            splice_at,
            metadata_is_empty,
            index: index(metadata, fields),
        }
    }

    /// The parsed facts.
    pub fn index(&self) -> &ObjectIndex {
        &self.index
    }

    /// The object as of `revision`.
    pub fn at(self, revision: Revision) -> Object {
        let member = self.revision_member(revision);
        let mut json = Vec::with_capacity(self.json.len() + member.len());
        json.extend_from_slice(&self.json[..self.splice_at]);
        json.extend_from_slice(member.as_bytes());
        json.extend_from_slice(&self.json[self.splice_at..]);
        Object {
            revision,
            json: json.into(),
            index: self.index,
        }
    }

    /// Whether this is what `object` holds, byte for byte, the revision apart.
    pub fn is(&self, object: &Object) -> bool {
        let member = self.revision_member(object.revision);
        let (head, tail) = self.json.split_at(self.splice_at);
        let rest = object.json.strip_prefix(head);
        rest.and_then(|rest| rest.strip_prefix(member.as_bytes())) == Some(tail)
    }

    fn revision_member(&self, revision: Revision) -> String {
        let comma = if self.metadata_is_empty { "" } else { "," };
        format!("\"resourceVersion\":\"{revision}\"{comma}")
    }

    /// The JSON without a `resourceVersion`: what a dry run answers.
    pub fn into_json(self) -> Bytes {
        self.json.into()
    }
}

impl Object {
    /// The revision of the write that made this state.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Canonical JSON: `kind`, `apiVersion` and `metadata` first, `resourceVersion` included.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The parsed facts.
    pub fn index(&self) -> &ObjectIndex {
        &self.index
    }

    /// The object parsed; costs a walk over the bytes.
    pub fn value(&self) -> Map<String, Value> {
        serde_json::from_slice(&self.json).expect("a Draft encodes valid JSON")
    }

    /// The last state as of the revision that deleted it, as watchers of a deletion see it.
    pub fn at_deletion(&self, revision: Revision) -> Object {
        let mut value = self.value();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let mut object = Draft::new(&value, Vec::new()).at(revision);
        object.index = self.index.clone();
        object
    }
}

fn index(metadata: &Map<String, Value>, mut fields: Vec<(&'static str, String)>) -> ObjectIndex {
    let text = |key: &str| {
        metadata
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .into()
    };
    let labels = metadata.get("labels").and_then(Value::as_object);
    let labels = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
    fields.sort_unstable();
    ObjectIndex {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
        labels: labels.collect(),
        fields: fields
            .into_iter()
            .map(|(path, value)| (path, value.into_boxed_str()))
            .collect(),
        is_deleting: metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null()),
    }
}

fn write_member(json: &mut Vec<u8>, key: &str, value: &Value) {
    separate(json);
    serde_json::to_writer(&mut *json, key).expect("writing to memory does not fail");
    json.push(b':');
    serde_json::to_writer(&mut *json, value).expect("writing to memory does not fail");
}

fn separate(json: &mut Vec<u8>) {
    if !json.ends_with(b"{") {
        json.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn the_head_comes_first_and_the_revision_is_spliced_in() {
        let draft = Draft::new(
            &map(
                json!({"data": {"b": "2", "a": "1"}, "kind": "ConfigMap", "apiVersion": "v1",
                        "metadata": {"name": "x", "resourceVersion": "3", "labels": {"l": "1"}}}),
            ),
            vec![],
        );
        let object = draft.at(Revision(42));
        assert_eq!(
            std::str::from_utf8(object.json()).expect("text"),
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"42","labels":{"l":"1"},"name":"x"},"data":{"a":"1","b":"2"}}"#
        );
        assert_eq!(object.index().label("l"), Some("1"));
        assert_eq!(object.index().field("metadata.name"), Some("x"));
        assert!(!object.index().is_deleting);
    }

    #[test]
    fn empty_metadata_still_gets_its_revision() {
        let object = Draft::new(&map(json!({"kind": "X"})), vec![]).at(Revision(1));
        assert_eq!(
            &object.json()[..],
            br#"{"kind":"X","metadata":{"resourceVersion":"1"}}"#
        );
    }

    #[test]
    fn a_draft_is_what_is_held_when_every_byte_but_the_revision_agrees() {
        let draft = |value| Draft::new(&map(value), vec![]);
        let held = json!({"kind": "X", "metadata": {"name": "a"}, "data": {"k": "1"}});
        let object = draft(held.clone()).at(Revision(7));
        assert!(draft(held).is(&object));
        for other in [
            json!({"kind": "X", "metadata": {"name": "a"}, "data": {"k": "2"}}),
            json!({"kind": "X", "metadata": {"name": "a"}, "data": {"k": "12"}}),
            json!({"kind": "X", "metadata": {"name": "b"}, "data": {"k": "1"}}),
            json!({"kind": "X", "metadata": {}, "data": {"k": "1"}}),
            json!({"kind": "X"}),
        ] {
            assert!(!draft(other.clone()).is(&object), "{other}");
        }
    }

    #[test]
    fn a_deleted_object_keeps_its_facts_and_takes_the_new_revision() {
        let draft = Draft::new(
            &map(json!({"metadata": {"name": "a"}})),
            vec![("status.phase", "Running".into())],
        );
        let deleted = draft.at(Revision(1)).at_deletion(Revision(9));
        assert_eq!(deleted.value()["metadata"]["resourceVersion"], "9");
        assert_eq!(deleted.index().field("status.phase"), Some("Running"));
    }
}
