//! Canonical JSON to protobuf, with the habits of upstream's generated code: fields in ascending order, everything that is
//! no pointer is written even if it is zero, map entries are sorted by key.

use serde_json::{Map, Value};

use crate::{
    Cardinality, Field, Message, Type, WireError,
    scalar::{
        base64,
        time::{self, Precision},
    },
    wire::Writer,
};

/// Encodes a canonical value (see [`conform`](crate::conform())) as upstream would, byte for byte. `apiVersion` and
/// `kind` are left to the envelope; fields that the message does not have are ignored.
///
/// # Errors
/// [`WireError::Value`] if the value is not in canonical form.
pub fn encode_protobuf(message: &'static Message, value: &Value) -> Result<Vec<u8>, WireError> {
    let mut writer = Writer::with_capacity(512);
    structure(&mut writer, message, value.as_object())?;
    Ok(writer.into_bytes())
}

fn structure(
    writer: &mut Writer,
    message: &'static Message,
    map: Option<&Map<String, Value>>,
) -> Result<(), WireError> {
    for field in message.fields {
        if let (Type::Message(nested), true) = (field.kind, field.inline) {
            writer.nested(field.number, |writer| structure(writer, nested, map))?;
            continue;
        }
        let value = map
            .and_then(|map| map.get(field.json))
            .filter(|value| !value.is_null());
        match (field.cardinality, value) {
            (Cardinality::Single, Some(value)) => element(writer, field.number, message, field, Some(value))?,
            (Cardinality::Single, None) if is_written_when_absent(field) => {
                element(writer, field.number, message, field, None)?;
            }
            (Cardinality::List, Some(Value::Array(list))) => {
                for item in list {
                    element(writer, field.number, message, field, Some(item))?;
                }
            }
            (Cardinality::Map, Some(Value::Object(entries))) => {
                // The map is a tree: its order is the order of keys by bytes, which is Go's.
                for (key, item) in entries {
                    writer.nested(field.number, |writer| {
                        writer.bytes_field(1, key.as_bytes());
                        element(writer, 2, message, field, Some(item))
                    })?;
                }
            }
            (_, None) => {}
            _ => return Err(not_canonical(message, field)),
        }
    }
    Ok(())
}

/// Pointers and slices are not written when nil.
fn is_written_when_absent(field: &Field) -> bool {
    !field.pointer && !matches!(field.kind, Type::Bytes | Type::Strings)
}

fn element(
    writer: &mut Writer,
    number: u32,
    message: &'static Message,
    field: &'static Field,
    value: Option<&Value>,
) -> Result<(), WireError> {
    let wrong = || not_canonical(message, field);
    let value = value.filter(|value| !value.is_null());
    let text = || value.map_or(Some(""), Value::as_str).ok_or_else(wrong);
    match field.kind {
        Type::Bool => {
            let set = value.map_or(Some(false), Value::as_bool).ok_or_else(wrong)?;
            writer.varint_field(number, u64::from(set));
        }
        Type::Int32 | Type::Int64 => {
            let signed = value.map_or(Some(0), Value::as_i64).ok_or_else(wrong)?;
            writer.signed_field(number, signed);
        }
        Type::String => writer.bytes_field(number, text()?.as_bytes()),
        Type::Bytes => {
            let bytes = base64::decode(text()?).map_err(|error| WireError::value(message, field, error))?;
            writer.bytes_field(number, &bytes);
        }
        Type::Message(nested) => {
            let map = value
                .map(|value| value.as_object().ok_or_else(wrong))
                .transpose()?;
            writer.nested(number, |writer| structure(writer, nested, map))?;
        }
        Type::Time => instant(writer, number, message, field, value, Precision::Seconds)?,
        Type::MicroTime => instant(writer, number, message, field, value, Precision::Micros)?,
        Type::Quantity => {
            let amount = value.map_or(Some("0"), Value::as_str).ok_or_else(wrong)?;
            writer.nested(number, |writer| {
                writer.bytes_field(1, amount.as_bytes());
                Ok(())
            })?;
        }
        Type::IntOrString => int_or_string(writer, number, value).ok_or_else(wrong)?,
        Type::FieldsV1 | Type::RawExtension => {
            writer.nested(number, |writer| {
                if let Some(value) = value {
                    writer.bytes_field(1, value.to_string().as_bytes());
                }
                Ok(())
            })?;
        }
        Type::Strings => {
            let list = value
                .map_or(Some(&[][..]), |value| value.as_array().map(Vec::as_slice))
                .ok_or_else(wrong)?;
            writer.nested(number, |writer| {
                for item in list {
                    writer.bytes_field(1, item.as_str().ok_or_else(wrong)?.as_bytes());
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn instant(
    writer: &mut Writer,
    number: u32,
    message: &'static Message,
    field: &'static Field,
    value: Option<&Value>,
    precision: Precision,
) -> Result<(), WireError> {
    let Some(value) = value else {
        writer.bytes_field(number, &[]);
        return Ok(());
    };
    let text = value.as_str().ok_or_else(|| not_canonical(message, field))?;
    let instant = time::parse(text, precision).map_err(|error| WireError::value(message, field, error))?;
    writer.nested(number, |writer| {
        writer.signed_field(1, instant.seconds);
        // Whole microseconds, as upstream cuts them.
        writer.varint_field(2, u64::from(instant.nanoseconds / 1_000 * 1_000));
        Ok(())
    })
}

fn int_or_string(writer: &mut Writer, number: u32, value: Option<&Value>) -> Option<()> {
    let (kind, integer, text) = match value {
        None => (0, 0, ""),
        Some(Value::String(text)) => (1, 0, text.as_str()),
        Some(other) => (0, other.as_i64()?, ""),
    };
    writer
        .nested(number, |writer| {
            writer.varint_field(1, kind);
            writer.signed_field(2, integer);
            writer.bytes_field(3, text.as_bytes());
            Some(()).ok_or(())
        })
        .ok()
}

fn not_canonical(message: &'static Message, field: &'static Field) -> WireError {
    WireError::value(message, field, "value is not in canonical form")
}
