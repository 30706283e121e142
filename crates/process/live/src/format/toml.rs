//! TOML, with lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{line_of, syntax};
use crate::error::LoadError;
use crate::node::{Node, Value};

pub(super) fn parse(text: &str, source: &Arc<str>) -> Result<Node, LoadError> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        syntax(source, line, error.message())
    })?;
    let value = mapping(text, table.get_ref(), source)?;
    Ok(Node::new(value, source, None))
}

fn mapping(text: &str, table: &DeTable<'_>, source: &Arc<str>) -> Result<Value, LoadError> {
    let mut entries = BTreeMap::new();
    for (key, value) in table {
        let mut node = node(text, value, source)?;
        // A table begins where its first key is; what a reader looks for is its own.
        node.place.line = Some(line_of(text, key.span().start));
        entries.insert(key.get_ref().to_string(), node);
    }
    Ok(Value::Mapping(entries))
}

fn node(text: &str, value: &Spanned<DeValue<'_>>, source: &Arc<str>) -> Result<Node, LoadError> {
    let line = Some(line_of(text, value.span().start));
    let number = |message: &str| syntax(source, line, message);
    let value = match value.get_ref() {
        DeValue::String(value) => Value::String(value.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(value) => Value::String(value.to_string()),
        DeValue::Integer(value) => i64::from_str_radix(value.as_str(), value.radix())
            .map(Value::Signed)
            .or_else(|_| u64::from_str_radix(value.as_str(), value.radix()).map(Value::Unsigned))
            .map_err(|_| number("an integer beyond 64 bits"))?,
        DeValue::Float(value) => value
            .as_str()
            .parse()
            .map(Value::Float)
            .map_err(|_| number("not a number"))?,
        DeValue::Array(items) => {
            let nodes = items.iter().map(|item| node(text, item, source));
            Value::Sequence(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => mapping(text, table, source)?,
    };
    Ok(Node::new(value, source, line))
}
