//! Whole objects: envelope and message together, with `apiVersion` and `kind` where JSON has them.

use serde_json::Value;

use crate::{Kind, WireError, decode, encode_protobuf, envelope, tables};

/// Decodes an object in its envelope into canonical JSON with `apiVersion` and `kind`.
///
/// # Errors
/// [`WireError::UnknownKind`] if no table has the kind that the envelope names, others as for
/// [`decode_protobuf`](crate::decode_protobuf).
pub fn decode_object(bytes: &[u8]) -> Result<(&'static Kind, Value), WireError> {
    decode_nested(bytes, 0)
}

/// Encodes a canonical object of this kind, with its envelope.
///
/// # Errors
/// As [`encode_protobuf`].
pub fn encode_object(kind: &Kind, value: &Value) -> Result<Vec<u8>, WireError> {
    let raw = encode_protobuf(kind.message, value)?;
    Ok(envelope::wrap(&kind.api_version(), kind.kind, &raw))
}

pub(crate) fn decode_nested(bytes: &[u8], depth: usize) -> Result<(&'static Kind, Value), WireError> {
    let unknown = envelope::unwrap(bytes)?;
    let (group, version) = unknown
        .api_version
        .split_once('/')
        .unwrap_or(("", unknown.api_version));
    let kind = tables::kind(group, version, unknown.kind).ok_or_else(|| WireError::UnknownKind {
        api_version: unknown.api_version.to_owned(),
        kind: unknown.kind.to_owned(),
    })?;
    let mut map = decode::structure(kind.message, unknown.raw, depth)?;
    if kind.message.type_meta {
        map.insert(
            "apiVersion".to_owned(),
            Value::String(unknown.api_version.to_owned()),
        );
        map.insert("kind".to_owned(), Value::String(unknown.kind.to_owned()));
    }
    Ok((kind, Value::Object(map)))
}
