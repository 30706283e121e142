//! From the body of a request to a canonical object.
//!
//! Texts follow `apiserver/pkg/endpoints/handlers/{create,rest}.go`, Kubernetes 1.36.

use hotmap_object::{GroupVersionKind, Status};
use hotmap_schema::{Duplicate, Kind, TypeError, conform, decode_protobuf, envelope, json, kind, yaml};
use serde_json::Value;

use super::{metadata::Object, options::FieldValidation};
use crate::{http::negotiation::Media, request::ApiRequest};

/// Bytes of an unrecognized body that the answer shows.
const SUMMARY_BYTES: usize = 30;

/// A tree in canonical form, with what strict decoding has against it.
pub(super) struct Checked {
    pub(super) object: Object,
    pub(super) problems: Vec<String>,
}

/// Decodes the body as an object of this kind. Problems become warnings, or the request's end, or nothing.
///
/// # Errors
///
/// 415 for an unknown media type, 400 for anything that is no such object.
pub(super) fn decode(
    request: &ApiRequest,
    expected: &'static Kind,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Object, Status> {
    let media = Media::of_body(request.content_type.as_deref())?;
    let checked = match media {
        Media::Protobuf => protobuf(&request.body, expected)?,
        Media::Json | Media::Yaml => tree(&request.body, media, expected)?,
    };
    if checked.problems.is_empty() {
        return Ok(checked.object);
    }
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(checked.problems),
        FieldValidation::Strict => {
            let why = format!("strict decoding error: {}", checked.problems.join(", "));
            return Err(cannot_be_handled(&gvk(expected), expected, why));
        }
    }
    Ok(checked.object)
}

/// Brings a tree into canonical form, `kind` and `apiVersion` included.
///
/// # Errors
///
/// The first value of a wrong type.
pub(super) fn canonical(
    value: Value,
    expected: &'static Kind,
    duplicates: &[Duplicate],
) -> Result<Checked, TypeError> {
    let conformed = conform(value, expected.message)?;
    let mut problems: Vec<String> = conformed
        .unknown
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    problems.extend(duplicates.iter().map(Duplicate::to_string));
    let Value::Object(mut object) = conformed.value else {
        unreachable!("a message conforms to an object");
    };
    object.insert("kind".to_owned(), expected.kind.into());
    object.insert("apiVersion".to_owned(), expected.api_version().into());
    Ok(Checked { object, problems })
}

/// What a type error says to a client.
pub(super) fn type_error(error: &TypeError) -> String {
    match error.path.as_str() {
        "" => error.message.clone(),
        path => format!("{}: {path}", error.message),
    }
}

fn tree(body: &[u8], media: Media, expected: &'static Kind) -> Result<Checked, Status> {
    let parsed = match media {
        Media::Yaml => yaml::parse(body),
        Media::Json | Media::Protobuf => json::parse(body),
    };
    let (mut value, duplicates) = parsed.map_err(|error| {
        let why = match media {
            Media::Yaml => format!("couldn't get version/kind; yaml parse error: {error}"),
            Media::Json | Media::Protobuf => format!("couldn't get version/kind; json parse error: {error}"),
        };
        unrecognized(body, expected, &why)
    })?;
    let Some(object) = value.as_object_mut() else {
        let why = "couldn't get version/kind; json parse error: json: cannot unmarshal value into Go value of type struct \
                   { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        return Err(unrecognized(body, expected, why));
    };
    let sent = |key: &str| {
        object
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let api_version = sent("apiVersion").map_or_else(|| expected.api_version(), str::to_owned);
    let found = GroupVersionKind::parse(&api_version, sent("kind").unwrap_or(expected.kind));
    check_kind(&found, expected)?;
    // What was not sent is the URL's.
    object.insert("kind".to_owned(), expected.kind.into());
    object.insert("apiVersion".to_owned(), expected.api_version().into());
    canonical(value, expected, &duplicates)
        .map_err(|error| cannot_be_handled(&found, expected, type_error(&error)))
}

fn protobuf(body: &[u8], expected: &'static Kind) -> Result<Checked, Status> {
    let unknown = envelope::unwrap(body).map_err(|error| unrecognized(body, expected, &error.to_string()))?;
    let api_version = if unknown.api_version.is_empty() {
        expected.api_version()
    } else {
        unknown.api_version.to_owned()
    };
    let kind = if unknown.kind.is_empty() {
        expected.kind
    } else {
        unknown.kind
    };
    let found = GroupVersionKind::parse(&api_version, kind);
    check_kind(&found, expected)?;
    let decoded = decode_protobuf(expected.message, unknown.raw);
    let decoded = decoded.map_err(|error| cannot_be_handled(&found, expected, error.to_string()))?;
    let Value::Object(mut object) = decoded else {
        unreachable!("a message decodes to an object");
    };
    object.insert("kind".to_owned(), expected.kind.into());
    object.insert("apiVersion".to_owned(), expected.api_version().into());
    Ok(Checked {
        object,
        problems: Vec::new(),
    })
}

fn check_kind(found: &GroupVersionKind, expected: &'static Kind) -> Result<(), Status> {
    if found.kind == expected.kind && found.version == expected.version && found.group == expected.group {
        return Ok(());
    }
    let is_registered = kind(&found.group, &found.version, &found.kind).is_some();
    if !is_registered {
        let why = format!(
            "no kind {:?} is registered for version {:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            found.kind,
            found.api_version()
        );
        return Err(cannot_be_handled(found, expected, why));
    }
    if found.kind == expected.kind {
        return Err(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            found.api_version(),
            expected.api_version()
        )));
    }
    let why = format!(
        "converting (v1.{}) to (core.{}): unknown conversion",
        found.kind, expected.kind
    );
    Err(cannot_be_handled(found, expected, why))
}

fn cannot_be_handled(found: &GroupVersionKind, expected: &Kind, why: String) -> Status {
    Status::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {why}",
        found.kind, found.version, expected.kind
    ))
}

fn unrecognized(body: &[u8], expected: &Kind, why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        expected.kind,
        summary(body)
    ))
}

fn summary(body: &[u8]) -> String {
    let shown = &body[..body.len().min(SUMMARY_BYTES)];
    let cut = if body.len() > SUMMARY_BYTES { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{cut}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{cut}")
        }
    }
}

fn gvk(kind: &Kind) -> GroupVersionKind {
    GroupVersionKind::fixed(kind.group, kind.version, kind.kind)
}
