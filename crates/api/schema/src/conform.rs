//! From any JSON tree to the canonical form of a message, in place.
//!
//! The rules are those of Go's `encoding/json` under the field tags upstream uses (and its fork `sigs.k8s.io/json`: names
//! match case-sensitively, integers stay integers).

use serde_json::{Map, Value};

use crate::{
    Cardinality, Field, Message, Omit, Type,
    path::At,
    scalar::{
        base64, quantity,
        time::{self, Precision},
    },
};

/// A value in canonical form.
#[derive(Debug)]
pub struct Conformed {
    /// What Go would print after decoding the document into its structure.
    pub value: Value,
    /// Paths of fields that the message does not have, as upstream prints them: `spec.containers[0].imagee`. At most 100.
    pub unknown: Vec<String>,
}

/// A value has the wrong type, or is a text of the wrong form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    /// Upstream's text.
    pub message: String,
    /// Where, in the style of the causes of a `Status`: `data[bootstrap.yml]`, `spec.containers[0].ports`. Empty for the
    /// document itself.
    pub path: String,
}

/// As many unknown fields are worth telling; upstream's strict decoder has the same limit.
const UNKNOWN_MAX: usize = 100;

/// Checks types, drops what the message does not know, and brings the rest into canonical form.
///
/// `null` is the zero value, as it is for Go: absent where the tags hide zeros, `null` or an empty structure where they
/// do not. Quantities and times get their one form.
///
/// # Errors
/// The first wrong value, fields in wire order. Nesting is limited by the parsers of this crate.
pub fn conform(value: Value, message: &'static Message) -> Result<Conformed, TypeError> {
    let mut walk = Walk { unknown: Vec::new() };
    let Value::Object(mut map) = value else {
        let text = format!(
            "json: cannot unmarshal {} into Go value of type {}",
            describe(&value),
            message.go_name()
        );
        return Err(TypeError {
            message: text,
            path: String::new(),
        });
    };
    walk.structure(&mut map, message, &At::ROOT)
        .map_err(|error| *error)?;
    Ok(Conformed {
        value: Value::Object(map),
        unknown: walk.unknown,
    })
}

/// What canonical JSON has for a field that is absent; `None` if nothing.
pub(crate) fn absent(field: &Field) -> Option<Value> {
    let is_nil = field.pointer || field.cardinality != Cardinality::Single;
    let is_structure = matches!(
        field.kind,
        Type::Message(_)
            | Type::Time
            | Type::MicroTime
            | Type::Quantity
            | Type::IntOrString
            | Type::RawExtension
    );
    match field.omit {
        Omit::Zero => return None,
        // For Go's `omitempty` a structure is never empty.
        Omit::Empty if is_nil || !is_structure => return None,
        Omit::Never if is_nil => return Some(Value::Null),
        Omit::Empty | Omit::Never => {}
    }
    Some(zero(field.kind))
}

/// The canonical form of a type's zero value.
pub(crate) fn zero(kind: Type) -> Value {
    match kind {
        Type::Bool => Value::Bool(false),
        Type::Int32 | Type::Int64 | Type::IntOrString => Value::from(0),
        Type::String => Value::String(String::new()),
        Type::Quantity => Value::String("0".to_owned()),
        Type::Message(message) => Value::Object(zero_structure(message)),
        Type::Bytes | Type::Time | Type::MicroTime | Type::FieldsV1 | Type::RawExtension | Type::Strings => {
            Value::Null
        }
    }
}

fn zero_structure(message: &'static Message) -> Map<String, Value> {
    let mut map = Map::new();
    fill_absent(&mut map, message);
    map
}

/// Writes what canonical JSON shows of fields that are not there.
pub(crate) fn fill_absent(map: &mut Map<String, Value>, message: &'static Message) {
    for field in message.fields {
        match field.kind {
            Type::Message(nested) if field.inline => fill_absent(map, nested),
            _ if may_fill(field) && !map.contains_key(field.json) => {
                if let Some(value) = absent(field) {
                    map.insert(field.json.to_owned(), value);
                }
            }
            _ => {}
        }
    }
}

/// Cheap enough to ask before every look-up.
fn may_fill(field: &Field) -> bool {
    field.omit == Omit::Never
        || (field.omit == Omit::Empty && !field.pointer && field.cardinality == Cardinality::Single)
}

/// A value that `omitempty` or `omitzero` hides.
pub(crate) fn is_hidden(field: &Field, value: &Value) -> bool {
    if field.omit == Omit::Never || (field.pointer && !value.is_null()) {
        return false;
    }
    match (field.cardinality, value) {
        (_, Value::Null) => absent(field).is_none(),
        (Cardinality::List, Value::Array(list)) => list.is_empty(),
        (Cardinality::Map, Value::Object(map)) => map.is_empty(),
        _ => match field.kind {
            Type::Message(message) => field.omit == Omit::Zero && *value == zero(Type::Message(message)),
            Type::Quantity => field.omit == Omit::Zero && value == "0",
            Type::IntOrString => field.omit == Omit::Zero && *value == 0,
            Type::Time | Type::MicroTime | Type::FieldsV1 | Type::RawExtension => false,
            Type::Bool => *value == false,
            Type::Int32 | Type::Int64 => *value == 0,
            Type::String | Type::Bytes => value == "",
            Type::Strings => value.as_array().is_some_and(Vec::is_empty),
        },
    }
}

type Step<T> = Result<T, Box<TypeError>>;

struct Walk {
    unknown: Vec<String>,
}

impl Walk {
    fn structure(
        &mut self,
        map: &mut Map<String, Value>,
        message: &'static Message,
        at: &At<'_>,
    ) -> Step<()> {
        let present = map.len();
        let mut known = 0;
        if message.type_meta {
            for name in ["apiVersion", "kind"] {
                known += usize::from(type_meta(map, name, message, at)?);
            }
        }
        known += self.fields(map, message, message.short_name(), at)?;
        if known < present {
            self.drop_unknown(map, message, at);
        }
        fill_absent(map, message);
        Ok(())
    }

    /// Brings every field of the message into form; returns how many were there.
    fn fields(
        &mut self,
        map: &mut Map<String, Value>,
        message: &'static Message,
        go_struct: &str,
        at: &At<'_>,
    ) -> Step<usize> {
        let mut known = 0;
        for field in message.fields {
            if let (Type::Message(nested), true) = (field.kind, field.inline) {
                known += self.fields(map, nested, go_struct, at)?;
                continue;
            }
            let Some(value) = map.get_mut(field.json) else {
                continue;
            };
            known += 1;
            if !value.is_null() {
                self.value(value, field, go_struct, &at.field(field.json))?;
            }
            let is_nil = value.is_null();
            if is_hidden(field, value) {
                map.remove(field.json);
            } else if is_nil && let Some(shown) = absent(field) {
                *value = shown;
            } else if is_nil {
                map.remove(field.json);
            }
        }
        Ok(known)
    }

    fn drop_unknown(&mut self, map: &mut Map<String, Value>, message: &'static Message, at: &At<'_>) {
        map.retain(|key, _| {
            let known =
                message.field(key).is_some() || (message.type_meta && (key == "apiVersion" || key == "kind"));
            if !known && self.unknown.len() < UNKNOWN_MAX {
                self.unknown.push(at.key(key).dotted());
            }
            known
        });
    }

    fn value(&mut self, value: &mut Value, field: &'static Field, go_struct: &str, at: &At<'_>) -> Step<()> {
        match (field.cardinality, &mut *value) {
            (Cardinality::Single, _) => self.element(value, field, go_struct, at),
            (Cardinality::List, Value::Array(list)) => {
                for (index, element) in list.iter_mut().enumerate() {
                    self.element(element, field, go_struct, &at.index(index))?;
                }
                Ok(())
            }
            (Cardinality::Map, Value::Object(map)) => {
                for (key, element) in map.iter_mut() {
                    self.element(element, field, go_struct, &at.key(key))?;
                }
                Ok(())
            }
            _ => Err(mismatch(&describe(value), &field.go_type_name(), go_struct, at)),
        }
    }

    fn element(
        &mut self,
        value: &mut Value,
        field: &'static Field,
        go_struct: &str,
        at: &At<'_>,
    ) -> Step<()> {
        if value.is_null() {
            *value = zero(field.kind);
            return Ok(());
        }
        match (field.kind, &mut *value) {
            (Type::Bool, Value::Bool(_)) | (Type::String, Value::String(_)) => Ok(()),
            (Type::Int32 | Type::Int64, Value::Number(_)) => integer(value, field, go_struct, at),
            (Type::IntOrString, Value::String(_)) => Ok(()),
            (Type::IntOrString, Value::Number(_)) => integer(value, field, go_struct, at),
            (Type::Message(message), Value::Object(map)) => self.structure(map, message, at),
            (Type::Bytes, Value::String(text)) => {
                let bytes = base64::decode(text).map_err(|error| malformed(error, at))?;
                *text = base64::encode(&bytes);
                Ok(())
            }
            (Type::Time, Value::String(_)) => instant(value, Precision::Seconds, at),
            (Type::MicroTime, Value::String(_)) => instant(value, Precision::Micros, at),
            (Type::Quantity, _) => canonical_quantity(value, at),
            (Type::FieldsV1 | Type::RawExtension, _) => Ok(()),
            (Type::Strings, Value::Array(list)) => strings(list, go_struct, at),
            (Type::Time | Type::MicroTime, _) => Err(mismatch(&describe(value), "string", go_struct, at)),
            (Type::IntOrString, _) => Err(mismatch(&describe(value), "int32", go_struct, at)),
            _ => Err(mismatch(&describe(value), field.go_element_name(), go_struct, at)),
        }
    }
}

/// Returns whether the name was there.
fn type_meta(map: &mut Map<String, Value>, name: &'static str, message: &Message, at: &At<'_>) -> Step<bool> {
    let hidden = match map.get(name) {
        None => return Ok(false),
        Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(other) => {
            return Err(mismatch(
                &describe(other),
                "string",
                message.short_name(),
                &at.field(name),
            ));
        }
    };
    if hidden {
        map.remove(name);
    }
    Ok(true)
}

fn integer(value: &mut Value, field: &Field, go_struct: &str, at: &At<'_>) -> Step<()> {
    let wide = value.as_i64();
    let fits = match field.kind {
        Type::Int64 => wide.is_some(),
        _ => wide.is_some_and(|wide| i32::try_from(wide).is_ok()),
    };
    if fits {
        return Ok(());
    }
    let go_type = if matches!(field.kind, Type::IntOrString) {
        "int32"
    } else {
        field.go_element_name()
    };
    Err(mismatch(&format!("number {value}"), go_type, go_struct, at))
}

fn instant(value: &mut Value, precision: Precision, at: &At<'_>) -> Step<()> {
    let Value::String(text) = value else { return Ok(()) };
    let parsed = time::parse(text, precision).map_err(|error| malformed(error, at))?;
    if parsed == time::ZERO {
        *value = Value::Null;
        return Ok(());
    }
    let canonical = time::format(parsed, precision)
        .ok_or_else(|| malformed("Time.MarshalJSON: year outside of range [0,9999]", at))?;
    *text = canonical;
    Ok(())
}

fn canonical_quantity(value: &mut Value, at: &At<'_>) -> Step<()> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let canonical = quantity::canonical(&text).map_err(|error| malformed(error, at))?;
    *value = Value::String(canonical.into_owned());
    Ok(())
}

fn strings(list: &mut [Value], go_struct: &str, at: &At<'_>) -> Step<()> {
    for (index, element) in list.iter_mut().enumerate() {
        match element {
            Value::String(_) => {}
            Value::Null => *element = Value::String(String::new()),
            other => return Err(mismatch(&describe(other), "string", go_struct, &at.index(index))),
        }
    }
    Ok(())
}

fn mismatch(found: &str, go_type: &str, go_struct: &str, at: &At<'_>) -> Box<TypeError> {
    let field = at.fields_only();
    let message =
        format!("json: cannot unmarshal {found} into Go struct field {go_struct}.{field} of type {go_type}");
    Box::new(TypeError {
        message,
        path: at.bracketed(),
    })
}

fn malformed(error: impl ToString, at: &At<'_>) -> Box<TypeError> {
    Box::new(TypeError {
        message: error.to_string(),
        path: at.bracketed(),
    })
}

/// Go's word for a JSON value.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
    .to_owned()
}
