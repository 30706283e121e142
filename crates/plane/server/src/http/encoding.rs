//! Small documents (errors, reviews) in the media type agreed on, and request bodies read as trees.

use bytes::Bytes;
use hotmap_object::{GroupVersionKind, Status};
use hotmap_schema::{decode_object, encode_object, json, kind, yaml};
use serde_json::Value;

use super::negotiation::Media;

/// A document in the media type agreed on.
///
/// # Errors
///
/// 500 if its kind has no table.
pub(crate) fn encode(value: &Value, gvk: &GroupVersionKind, media: Media) -> Result<Bytes, Status> {
    match media {
        Media::Json => Ok(value.to_string().into()),
        Media::Yaml => serde_saphyr::to_string(value)
            .map(Bytes::from)
            .map_err(Status::internal),
        Media::Protobuf => {
            let table = kind(&gvk.group, &gvk.version, &gvk.kind)
                .ok_or_else(|| Status::internal(format!("there is no table for {}", gvk.kind)))?;
            encode_object(table, value)
                .map(Bytes::from)
                .map_err(Status::internal)
        }
    }
}

/// A body as a tree.
///
/// # Errors
///
/// 400 if it cannot be read, 415 for other media types.
pub(crate) fn decode(body: &[u8], content_type: Option<&str>) -> Result<Value, Status> {
    let media = Media::of_body(content_type)?;
    let decoded = match media {
        Media::Json => json::parse(body)
            .map(|(value, _)| value)
            .map_err(|error| error.to_string()),
        Media::Yaml => yaml::parse(body)
            .map(|(value, _)| value)
            .map_err(|error| error.to_string()),
        Media::Protobuf => decode_object(body)
            .map(|(_, value)| value)
            .map_err(|error| error.to_string()),
    };
    decoded.map_err(|error| Status::bad_request(format!("the object provided is unrecognized: {error}")))
}
