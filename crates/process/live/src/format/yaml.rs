//! YAML, with lines.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::syntax;
use crate::error::LoadError;
use crate::node::{Node, Value};

pub(super) fn parse(text: &str, source: &Arc<str>) -> Result<Option<Node>, LoadError> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let parsed: Result<Spanned<Tree>, _> = serde_saphyr::from_str_with_options(text, options);
    let tree = parsed.map_err(|error| {
        let line = error
            .location()
            .and_then(|location| u32::try_from(location.line()).ok());
        syntax(source, line, error.without_snippet().to_string())
    })?;
    let is_empty = matches!(tree.value, Tree::Scalar(Value::Null));
    Ok((!is_empty).then(|| node(tree, source)))
}

enum Tree {
    Scalar(Value),
    Sequence(Vec<Spanned<Tree>>),
    Mapping(BTreeMap<String, Spanned<Tree>>),
}

fn node(tree: Spanned<Tree>, source: &Arc<str>) -> Node {
    let line = u32::try_from(tree.referenced.line()).ok();
    let value = match tree.value {
        Tree::Scalar(value) => value,
        Tree::Sequence(items) => Value::Sequence(items.into_iter().map(|item| node(item, source)).collect()),
        Tree::Mapping(entries) => {
            let entries = entries.into_iter();
            Value::Mapping(entries.map(|(key, tree)| (key, node(tree, source))).collect())
        }
    };
    Node::new(value, source, line.filter(|line| *line > 0))
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Signed(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Unsigned(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Float(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::String(value.to_owned())))
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Bytes(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut sequence = Vec::new();
        while let Some(item) = items.next_element()? {
            sequence.push(item);
        }
        Ok(Tree::Sequence(sequence))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut mapping = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry::<String, _>()? {
            mapping.insert(key, value);
        }
        Ok(Tree::Mapping(mapping))
    }
}
