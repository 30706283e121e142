//! From nodes to a type. An error knows the field and the place, and no value: what is configured may be secret.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::error::{LoadError, Place};
use crate::node::{Node, Value};

pub(crate) fn from_node<T: DeserializeOwned>(node: &Node) -> Result<T, LoadError> {
    T::deserialize(Source(node)).map_err(|error| LoadError::Type {
        field: if error.field.is_empty() {
            "the whole".to_owned()
        } else {
            error.field
        },
        place: error
            .place
            .filter(|place| place.line.is_some() || !place.source.is_empty()),
        message: error.message,
    })
}

/// Of which field it is, is added from the inside outwards.
#[derive(Debug)]
pub(crate) struct TypeError {
    message: String,
    field: String,
    place: Option<Place>,
}

impl TypeError {
    fn new(message: String) -> Self {
        Self {
            message,
            field: String::new(),
            place: None,
        }
    }

    fn within(mut self, segment: &str, place: &Place) -> Self {
        let joint = if self.field.is_empty() || self.field.starts_with('[') {
            ""
        } else {
            "."
        };
        self.field = format!("{segment}{joint}{}", self.field);
        self.place.get_or_insert_with(|| place.clone());
        self
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TypeError {}

impl de::Error for TypeError {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {}", kind(found)))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("expected one of {}", expected.join(", ")))
    }
}

fn kind(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "nothing",
        Unexpected::Seq => "a list",
        Unexpected::Map => "a mapping",
        _ => "something else",
    }
}

/// Text becomes what the field is.
fn parsed<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T, TypeError> {
    let found = "text that is none";
    text.trim()
        .parse()
        .map_err(|_| TypeError::new(format!("expected {expected}, found {found}")))
}

macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty, $words:literal;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
            match &self.0.value {
                Value::Text(text) => visitor.$visit(parsed::<$number>(text, $words)?),
                _ => self.deserialize_any(visitor),
            }
        })*
    };
}

/// Lends nothing: what is made of it lives longer.
#[derive(Clone, Copy)]
struct Source<'a>(&'a Node);

impl<'de> Deserializer<'de> for Source<'_> {
    type Error = TypeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Signed(value) => visitor.visit_i64(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(value) | Value::Text(value) => visitor.visit_str(value),
            Value::Bytes(value) => visitor.visit_bytes(value),
            Value::Sequence(items) => visitor.visit_seq(Items {
                items: items.iter(),
                index: 0,
            }),
            Value::Mapping(entries) => visitor.visit_map(Entries {
                entries: entries.iter(),
                next: None,
            }),
        }
    }

    numbers! {
        deserialize_i8 visit_i8 i8, "an integer of 8 bits";
        deserialize_i16 visit_i16 i16, "an integer of 16 bits";
        deserialize_i32 visit_i32 i32, "an integer of 32 bits";
        deserialize_i64 visit_i64 i64, "an integer";
        deserialize_i128 visit_i128 i128, "an integer";
        deserialize_u8 visit_u8 u8, "an integer from 0 to 255";
        deserialize_u16 visit_u16 u16, "an integer from 0 to 65535";
        deserialize_u32 visit_u32 u32, "an integer of 32 bits, not negative";
        deserialize_u64 visit_u64 u64, "an integer, not negative";
        deserialize_u128 visit_u128 u128, "an integer, not negative";
        deserialize_f32 visit_f32 f32, "a number";
        deserialize_f64 visit_f64 f64, "a number";
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        let Value::Text(text) = &self.0.value else {
            return self.deserialize_any(visitor);
        };
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => visitor.visit_bool(true),
            "false" | "no" | "off" | "0" => visitor.visit_bool(false),
            _ => Err(TypeError::new("expected true or false".to_owned())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        match &self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        visitor.visit_newtype_struct(self)
    }

    /// Text is a list divided by commas, and no text an empty one.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        let Value::Text(text) = &self.0.value else {
            return self.deserialize_any(visitor);
        };
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let nodes: Vec<Node> = parts
            .map(|part| Node {
                value: Value::Text(part.to_owned()),
                place: self.0.place.clone(),
            })
            .collect();
        visitor.visit_seq(OwnItems {
            items: nodes.into_iter(),
            index: 0,
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TypeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        match &self.0.value {
            Value::String(text) | Value::Text(text) => visitor.visit_bytes(text.as_bytes()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        self.deserialize_byte_buf(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        match &self.0.value {
            Value::String(name) => visitor.visit_enum(Variant { name, content: None }),
            // What comes from variables is often written in another case.
            Value::Text(name) => {
                let name = name.trim();
                let same = variants.iter().find(|variant| variant.eq_ignore_ascii_case(name));
                let name = same.copied().unwrap_or(name);
                visitor.visit_enum(Variant { name, content: None })
            }
            Value::Mapping(entries) if entries.len() == 1 => {
                let (name, node) = entries.first_key_value().expect("there is one");
                visitor
                    .visit_enum(Variant {
                        name,
                        content: Some(node),
                    })
                    .map_err(|error| error.within(name, &node.place))
            }
            _ => Err(TypeError::new(format!("expected one of {}", variants.join(", ")))),
        }
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    forward_to_deserialize_any! {
        char str string unit unit_struct map struct identifier ignored_any
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = TypeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TypeError> {
        let Some(node) = self.items.next() else {
            return Ok(None);
        };
        let segment = format!("[{}]", self.index);
        self.index += 1;
        let value = seed.deserialize(Source(node));
        value
            .map(Some)
            .map_err(|error| error.within(&segment, &node.place))
    }
}

/// Nodes that were made on the way.
struct OwnItems {
    items: std::vec::IntoIter<Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for OwnItems {
    type Error = TypeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TypeError> {
        let Some(node) = self.items.next() else {
            return Ok(None);
        };
        let segment = format!("[{}]", self.index);
        self.index += 1;
        let value = seed.deserialize(Source(&node));
        value
            .map(Some)
            .map_err(|error| error.within(&segment, &node.place))
    }
}

struct Entries<'a> {
    entries: std::collections::btree_map::Iter<'a, String, Node>,
    next: Option<(&'a str, &'a Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = TypeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TypeError> {
        let Some((key, node)) = self.entries.next() else {
            return Ok(None);
        };
        self.next = Some((key, node));
        let key = seed.deserialize(Key(key));
        // A field that the type does not know: the place is that of its value.
        key.map(Some).map_err(|mut error| {
            error.place.get_or_insert_with(|| node.place.clone());
            error
        })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, TypeError> {
        let (key, node) = self.next.take().expect("serde asks for a key before its value");
        seed.deserialize(Source(node))
            .map_err(|error| error.within(key, &node.place))
    }
}

/// A key of a mapping: a name, or what else a map's keys are.
struct Key<'a>(&'a str);

macro_rules! keys {
    ($($method:ident $visit:ident $number:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
            visitor.$visit(parsed::<$number>(self.0, "a number as key")?)
        })*
    };
}

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = TypeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        visitor.visit_str(self.0)
    }

    keys! {
        deserialize_bool visit_bool bool;
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        visitor.visit_enum(Variant {
            name: self.0,
            content: None,
        })
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

/// One of an enum: a name, or a name and what it holds.
struct Variant<'a> {
    name: &'a str,
    content: Option<&'a Node>,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = TypeError;
    type Variant = Content<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Content<'a>), TypeError> {
        let name: StrDeserializer<'_, TypeError> = de::IntoDeserializer::into_deserializer(self.name);
        Ok((seed.deserialize(name)?, Content(self.content)))
    }
}

struct Content<'a>(Option<&'a Node>);

impl<'a> Content<'a> {
    fn node(self) -> Result<Source<'a>, TypeError> {
        let nothing = || TypeError::new("expected a mapping with what this kind needs".to_owned());
        self.0.map(Source).ok_or_else(nothing)
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = TypeError;

    fn unit_variant(self) -> Result<(), TypeError> {
        match self.0.map(|node| &node.value) {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(TypeError::new("expected its name alone".to_owned())),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, TypeError> {
        seed.deserialize(self.node()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TypeError> {
        self.node()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        self.node()?.deserialize_any(visitor)
    }
}

#[cfg(test)]
mod tests;
