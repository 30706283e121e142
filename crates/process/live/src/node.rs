//! A configuration before it has a type: what every format is parsed into, with the place of each value.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Place;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    String(String),
    /// From where there are no types (environment, properties, keys of a directory): it becomes what its field is.
    Text(String),
    Bytes(Vec<u8>),
    Sequence(Vec<Node>),
    Mapping(BTreeMap<String, Node>),
}

impl Node {
    pub(crate) fn new(value: Value, source: &Arc<str>, line: Option<u32>) -> Self {
        let source = source.clone();
        Self {
            value,
            place: Place { source, line },
        }
    }

    /// An empty mapping.
    pub(crate) fn empty(source: &Arc<str>) -> Self {
        Self::new(Value::Mapping(BTreeMap::new()), source, None)
    }

    /// Lays `over` on top: mappings are merged key by key, all else is replaced.
    pub(crate) fn merge(&mut self, over: Self) {
        match (&mut self.value, over.value) {
            (Value::Mapping(below), Value::Mapping(above)) => {
                for (key, node) in above {
                    match below.get_mut(&key) {
                        Some(old) => old.merge(node),
                        None => drop(below.insert(key, node)),
                    }
                }
            }
            (_, value) => {
                *self = Self {
                    value,
                    place: over.place,
                };
            }
        }
    }

    /// Sets what `path` names. What stands in the way is replaced.
    pub(crate) fn set(&mut self, path: &[&str], node: Self) {
        let Some((first, rest)) = path.split_first() else {
            *self = node;
            return;
        };
        if !matches!(self.value, Value::Mapping(_)) {
            *self = Self::empty(&node.place.source);
        }
        if let Value::Mapping(entries) = &mut self.value {
            entries
                .entry((*first).to_owned())
                .or_insert_with(|| Self::empty(&node.place.source))
                .set(rest, node);
        }
    }

    /// As [`set`](Self::set), for names that know neither case nor dashes: `LOG_LEVEL` is `logLevel`, `log-level` or
    /// `log_level`, whichever is there, else `log_level`.
    pub(crate) fn set_loosely(&mut self, path: &[&str], node: Self) {
        let mut found: Vec<String> = Vec::with_capacity(path.len());
        let mut here = Some(&*self);
        for name in path {
            let entries = match here.map(|node| &node.value) {
                Some(Value::Mapping(entries)) => Some(entries),
                _ => None,
            };
            let same = entries.and_then(|entries| entries.keys().find(|key| plain(key) == plain(name)));
            let key = same.cloned().unwrap_or_else(|| name.to_ascii_lowercase());
            here = entries.and_then(|entries| entries.get(&key));
            found.push(key);
        }
        let path: Vec<&str> = found.iter().map(String::as_str).collect();
        self.set(&path, node);
    }
}

fn plain(name: &str) -> String {
    let kept = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Node {
        Node::new(Value::Text(text.into()), &"test".into(), None)
    }

    fn at(node: &Node, path: &[&str]) -> String {
        match (&node.value, path) {
            (Value::Text(text), []) => text.clone(),
            (Value::Mapping(entries), [first, rest @ ..]) => {
                entries.get(*first).map_or("none".into(), |node| at(node, rest))
            }
            _ => "none".into(),
        }
    }

    #[test]
    fn mappings_are_merged_and_all_else_is_replaced() {
        let mut below = Node::empty(&"below".into());
        below.set(&["a", "b"], text("1"));
        below.set(&["a", "c"], text("1"));
        below.set(&["d"], text("1"));
        let mut above = Node::empty(&"above".into());
        above.set(&["a", "c"], text("2"));
        above.set(&["d", "e"], text("2"));
        below.merge(above);
        for (path, expected) in [
            (&["a", "b"][..], "1"),
            (&["a", "c"], "2"),
            (&["d", "e"], "2"),
            (&["d"], "none"),
        ] {
            assert_eq!(at(&below, path), expected, "{path:?}");
        }
    }

    #[test]
    fn names_of_variables_find_fields_of_any_spelling() {
        let mut node = Node::empty(&"test".into());
        node.set(&["logLevel"], text("1"));
        node.set(&["http-server", "max_conns"], text("1"));
        for (path, found) in [
            (&["LOG_LEVEL"][..], &["logLevel"][..]),
            (&["HTTP_SERVER", "MAX_CONNS"], &["http-server", "max_conns"]),
            (&["HTTP_SERVER", "NEW_ONE"], &["http-server", "new_one"]),
            (&["OTHER", "NEW_ONE"], &["other", "new_one"]),
        ] {
            node.set_loosely(path, text("2"));
            assert_eq!(at(&node, found), "2", "{path:?}");
        }
    }
}
