//! JSON, with lines: serde_json hands out slices of the text, and where they are says on which line.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::{line_of, syntax};
use crate::error::LoadError;
use crate::node::{Node, Value};

pub(super) fn parse(text: &str, source: &Arc<str>) -> Result<Option<Node>, LoadError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        let line = u32::try_from(error.line()).ok();
        syntax(source, line, without_place(&error))
    })?;
    node(text, raw, source).map(Some)
}

fn node(text: &str, raw: &RawValue, source: &Arc<str>) -> Result<Node, LoadError> {
    let slice = raw.get();
    let offset = (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let line = line_of(text, offset);
    let failed = |error: serde_json::Error| {
        let line = line + u32::try_from(error.line().saturating_sub(1)).unwrap_or(0);
        syntax(source, Some(line), without_place(&error))
    };
    let value = match slice.as_bytes().first() {
        Some(b'{') => {
            let entries: BTreeMap<String, &RawValue> = serde_json::from_str(slice).map_err(failed)?;
            let nodes = entries
                .into_iter()
                .map(|(key, raw)| Ok((key, node(text, raw, source)?)));
            Value::Mapping(nodes.collect::<Result<_, LoadError>>()?)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(slice).map_err(failed)?;
            let nodes = items.into_iter().map(|raw| node(text, raw, source));
            Value::Sequence(nodes.collect::<Result<_, LoadError>>()?)
        }
        _ => scalar(serde_json::from_str(slice).map_err(failed)?),
    };
    Ok(Node::new(value, source, Some(line)))
}

pub(crate) fn scalar(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::String(value) => Value::String(value),
        serde_json::Value::Number(number) => number
            .as_u64()
            .map(Value::Unsigned)
            .or_else(|| number.as_i64().map(Value::Signed))
            .or_else(|| number.as_f64().map(Value::Float))
            .unwrap_or(Value::Null),
        _ => Value::Null,
    }
}

/// serde_json puts the place behind its words.
fn without_place(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let end = words.rfind(" at line ").unwrap_or(words.len());
    words[..end].to_owned()
}
