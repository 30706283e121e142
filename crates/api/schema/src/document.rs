//! From text to a tree: what JSON and YAML have in common.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::path::At;

/// A key that stands twice in one mapping; the later value won, as it does in Go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// Path as upstream prints it: `data.k`, `spec.containers[0].name`.
    pub path: String,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate field {:?}", self.path)
    }
}

/// The text is no document.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Not JSON, or nested more than 127 levels deep.
    #[error("{0}")]
    Json(serde_json::Error),
    /// Not YAML, or beyond the limits.
    #[error("{0}")]
    Yaml(String),
    /// There is more than one YAML document where one is expected.
    #[error("expected one document, found {0}")]
    ManyDocuments(usize),
}

/// As many duplicates are worth telling; upstream's strict decoder has the same limit.
const DUPLICATES_MAX: usize = 100;

/// Builds a [`Value`] and notes duplicate keys on the way.
pub(crate) struct Tree<'a> {
    pub(crate) at: &'a At<'a>,
    pub(crate) duplicates: &'a mut Vec<Duplicate>,
    /// YAML's `1.0` is the integer 1, because upstream's YAML passes through Go's float printing; JSON's is not.
    pub(crate) whole_floats_are_integers: bool,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        /// Beyond 2⁵³ a float does not say which integer it is.
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        if self.whole_floats_are_integers && value.fract() == 0.0 && value.abs() <= EXACT_MAX {
            return Ok(Value::Number((value as i64).into()));
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let at = self.at.index(list.len());
            let seed = Tree {
                at: &at,
                duplicates: &mut *self.duplicates,
                ..self
            };
            match elements.next_element_seed(seed)? {
                Some(element) => list.push(element),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let at = self.at.key(&key);
            if self.duplicates.len() < DUPLICATES_MAX && map.contains_key(&key) {
                self.duplicates.push(Duplicate { path: at.dotted() });
            }
            let seed = Tree {
                at: &at,
                duplicates: &mut *self.duplicates,
                ..self
            };
            let value = entries.next_value_seed(seed)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
