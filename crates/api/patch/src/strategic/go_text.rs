//! Values and types in Go's words, for the error texts that clients know.

use std::fmt;

use serde_json::{Map, Value};

/// Prints a value the way Go's `%v` does: `map[a:1 b:[x y]]`.
pub(super) fn go_text<T: GoText + ?Sized>(value: &T) -> impl fmt::Display + '_ {
    Printed(value)
}

pub(super) trait GoText {
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

struct Printed<'a, T: ?Sized>(&'a T);

impl<T: GoText + ?Sized> fmt::Display for Printed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.print(f)
    }
}

impl GoText for Value {
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("<nil>"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::String(value) => f.write_str(value),
            Self::Array(items) => items[..].print(f),
            Self::Object(members) => members.print(f),
        }
    }
}

impl GoText for Map<String, Value> {
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("map[")?;
        for (index, (key, value)) in self.iter().enumerate() {
            write!(f, "{}{key}:{}", if index == 0 { "" } else { " " }, go_text(value))?;
        }
        f.write_str("]")
    }
}

impl GoText for [Value] {
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, value) in self.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { " " }, go_text(value))?;
        }
        f.write_str("]")
    }
}

/// Go's name of the list type that JSON decodes into.
pub(super) const GO_LIST: &str = "[]interface {}";
/// Go's name of the object type that JSON decodes into.
pub(super) const GO_OBJECT: &str = "map[string]interface {}";

/// Go's name of the type a JSON value decodes into.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => GO_LIST,
        Value::Object(_) => GO_OBJECT,
    }
}
