//! Protobuf to canonical JSON.

use serde_json::{Map, Value};

use crate::{
    Cardinality, Field, Message, Omit, Type, WireError,
    conform::{fill_absent, is_hidden, zero},
    object,
    scalar::{
        base64, quantity,
        time::{self, Instant, Precision},
    },
    wire::{Content, DEPTH_MAX, Reader},
};

/// Decodes a message into canonical JSON, without `apiVersion` and `kind` (the envelope has them).
///
/// Unknown field numbers are skipped, as protobuf wants it.
///
/// # Errors
/// [`WireError`] for anything that is not such a message. No input panics or recurses without bound.
pub fn decode_protobuf(message: &'static Message, raw: &[u8]) -> Result<Value, WireError> {
    structure(message, raw, 0).map(Value::Object)
}

pub(crate) fn structure(
    message: &'static Message,
    raw: &[u8],
    depth: usize,
) -> Result<Map<String, Value>, WireError> {
    let mut map = Map::new();
    merge(&mut map, message, raw, depth)?;
    fill_absent(&mut map, message);
    Ok(map)
}

/// Adds what the bytes say to what is there: a message may arrive in pieces.
fn merge(
    map: &mut Map<String, Value>,
    message: &'static Message,
    raw: &[u8],
    depth: usize,
) -> Result<(), WireError> {
    if depth > DEPTH_MAX {
        return Err(WireError::TooDeep);
    }
    let mut reader = Reader::new(raw);
    while let Some((number, content)) = reader.next()? {
        let Some(field) = field_numbered(message, number) else {
            continue;
        };
        if let (Type::Message(nested), true) = (field.kind, field.inline) {
            merge(map, nested, bytes(message, field, content)?, depth + 1)?;
            continue;
        }
        match field.cardinality {
            Cardinality::Single => single(map, message, field, content, depth)?,
            Cardinality::List => {
                let element = element(message, field, content, depth)?;
                match map.get_mut(field.json) {
                    Some(Value::Array(list)) => list.push(element),
                    _ => drop(map.insert(field.json.to_owned(), Value::Array(vec![element]))),
                }
            }
            Cardinality::Map => {
                let (key, value) = entry(message, field, bytes(message, field, content)?, depth)?;
                match map.get_mut(field.json) {
                    Some(Value::Object(entries)) => drop(entries.insert(key, value)),
                    _ => {
                        let entries = Map::from_iter([(key, value)]);
                        map.insert(field.json.to_owned(), Value::Object(entries));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Most messages number their fields from one without gaps, so the first guess is usually right.
fn field_numbered(message: &'static Message, number: u32) -> Option<&'static Field> {
    let guess = message
        .fields
        .get(number as usize - 1)
        .filter(|field| field.number == number);
    guess.or_else(|| {
        let at = message
            .fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()?;
        Some(&message.fields[at])
    })
}

fn single(
    map: &mut Map<String, Value>,
    message: &'static Message,
    field: &'static Field,
    content: Content<'_>,
    depth: usize,
) -> Result<(), WireError> {
    if let (Type::Message(nested), Some(Value::Object(before))) = (field.kind, map.get_mut(field.json)) {
        return merge(before, nested, bytes(message, field, content)?, depth + 1);
    }
    let value = element(message, field, content, depth)?;
    if is_hidden(field, &value) {
        // An earlier value of the same field is overruled.
        map.remove(field.json);
    } else if !(value.is_null() && field.pointer && field.omit != Omit::Never) {
        map.insert(field.json.to_owned(), value);
    }
    Ok(())
}

fn element(
    message: &'static Message,
    field: &'static Field,
    content: Content<'_>,
    depth: usize,
) -> Result<Value, WireError> {
    let value = match field.kind {
        Type::Bool => Value::Bool(varint(message, field, content)? != 0),
        // As in Go, bits beyond the type's width are cut off.
        Type::Int32 => Value::from(varint(message, field, content)? as i32),
        Type::Int64 => Value::from(varint(message, field, content)? as i64),
        Type::String => Value::String(text(field, bytes(message, field, content)?)?.to_owned()),
        Type::Bytes => Value::String(base64::encode(bytes(message, field, content)?)),
        Type::Message(nested) => {
            Value::Object(structure(nested, bytes(message, field, content)?, depth + 1)?)
        }
        Type::Time => instant(
            message,
            field,
            bytes(message, field, content)?,
            Precision::Seconds,
        )?,
        Type::MicroTime => instant(message, field, bytes(message, field, content)?, Precision::Micros)?,
        Type::Quantity => canonical_quantity(message, field, bytes(message, field, content)?)?,
        Type::IntOrString => int_or_string(message, field, bytes(message, field, content)?)?,
        Type::FieldsV1 | Type::RawExtension => {
            embedded(message, field, bytes(message, field, content)?, depth)?
        }
        Type::Strings => strings(field, bytes(message, field, content)?)?,
    };
    Ok(value)
}

fn entry(
    message: &'static Message,
    field: &'static Field,
    raw: &[u8],
    depth: usize,
) -> Result<(String, Value), WireError> {
    let (mut key, mut value) = ("", None);
    let mut reader = Reader::new(raw);
    while let Some((number, content)) = reader.next()? {
        match number {
            1 => key = text(field, bytes(message, field, content)?)?,
            2 => value = Some(element(message, field, content, depth)?),
            _ => {}
        }
    }
    let value = match value {
        Some(value) => value,
        // A nil slice of bytes is not written; in a map it reads back as an empty one.
        None if matches!(field.kind, Type::Bytes) => Value::String(String::new()),
        None => zero(field.kind),
    };
    Ok((key.to_owned(), value))
}

fn varint(message: &'static Message, field: &'static Field, content: Content<'_>) -> Result<u64, WireError> {
    match content {
        Content::Varint(value) => Ok(value),
        other => Err(wrong_wire_type(message, field, other)),
    }
}

fn bytes<'a>(
    message: &'static Message,
    field: &'static Field,
    content: Content<'a>,
) -> Result<&'a [u8], WireError> {
    match content {
        Content::Bytes(bytes) => Ok(bytes),
        other => Err(wrong_wire_type(message, field, other)),
    }
}

fn wrong_wire_type(message: &'static Message, field: &'static Field, content: Content<'_>) -> WireError {
    WireError::WireType {
        message: message.name,
        field: field.json,
        wire_type: content.wire_type(),
    }
}

fn text<'a>(field: &'static Field, bytes: &'a [u8]) -> Result<&'a str, WireError> {
    std::str::from_utf8(bytes).map_err(|_| WireError::NotUtf8 { field: field.json })
}

/// `Timestamp { seconds = 1, nanos = 2 }`; no bytes are Go's zero time.
fn instant(
    message: &'static Message,
    field: &'static Field,
    raw: &[u8],
    precision: Precision,
) -> Result<Value, WireError> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanoseconds) = (0_i64, 0_i32);
    let mut reader = Reader::new(raw);
    while let Some((number, content)) = reader.next()? {
        match number {
            1 => seconds = varint(message, field, content)? as i64,
            2 => nanoseconds = varint(message, field, content)? as i32,
            _ => {}
        }
    }
    let nanoseconds = if precision == Precision::Micros {
        nanoseconds
    } else {
        0
    };
    let nanoseconds = u32::try_from(nanoseconds)
        .ok()
        .filter(|nanoseconds| *nanoseconds < 1_000_000_000)
        .ok_or_else(|| WireError::value(message, field, "nanoseconds out of range"))?;
    let instant = Instant { seconds, nanoseconds };
    if instant == time::ZERO {
        return Ok(Value::Null);
    }
    let text = time::format(instant, precision);
    text.map(Value::String)
        .ok_or_else(|| WireError::value(message, field, "year outside of range [0,9999]"))
}

fn canonical_quantity(
    message: &'static Message,
    field: &'static Field,
    raw: &[u8],
) -> Result<Value, WireError> {
    let mut written = "";
    let mut reader = Reader::new(raw);
    while let Some((number, content)) = reader.next()? {
        if number == 1 {
            written = text(field, bytes(message, field, content)?)?;
        }
    }
    let canonical = quantity::canonical(written).map_err(|error| WireError::value(message, field, error))?;
    Ok(Value::String(canonical.into_owned()))
}

/// `IntOrString { type = 1, intVal = 2, strVal = 3 }`, type 0 for a number and 1 for a text.
fn int_or_string(message: &'static Message, field: &'static Field, raw: &[u8]) -> Result<Value, WireError> {
    let (mut kind, mut number_value, mut text_value) = (0, 0_i32, "");
    let mut reader = Reader::new(raw);
    while let Some((number, content)) = reader.next()? {
        match number {
            1 => kind = varint(message, field, content)?,
            2 => number_value = varint(message, field, content)? as i32,
            3 => text_value = text(field, bytes(message, field, content)?)?,
            _ => {}
        }
    }
    match kind {
        0 => Ok(Value::from(number_value)),
        1 => Ok(Value::String(text_value.to_owned())),
        _ => Err(WireError::value(message, field, "impossible IntOrString.Type")),
    }
}

/// JSON text, or an object in an envelope of its own.
fn embedded(
    message: &'static Message,
    field: &'static Field,
    raw: &[u8],
    depth: usize,
) -> Result<Value, WireError> {
    let mut content_bytes: &[u8] = &[];
    let mut reader = Reader::new(raw);
    while let Some((number, content)) = reader.next()? {
        if number == 1 {
            content_bytes = bytes(message, field, content)?;
        }
    }
    if content_bytes.is_empty() {
        return Ok(Value::Null);
    }
    if content_bytes.starts_with(&crate::envelope::MAGIC) {
        return object::decode_nested(content_bytes, depth + 1).map(|(_, value)| value);
    }
    let (value, _) =
        crate::json::parse(content_bytes).map_err(|error| WireError::value(message, field, error))?;
    Ok(value)
}

fn strings(field: &'static Field, raw: &[u8]) -> Result<Value, WireError> {
    let mut list = Vec::new();
    let mut reader = Reader::new(raw);
    while let Some((number, content)) = reader.next()? {
        if let (1, Content::Bytes(item)) = (number, content) {
            list.push(Value::String(text(field, item)?.to_owned()));
        }
    }
    Ok(Value::Array(list))
}
