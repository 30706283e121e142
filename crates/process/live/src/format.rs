//! The formats of files.

mod env;
mod json;
mod properties;
#[cfg(feature = "toml")]
mod toml;
#[cfg(feature = "yaml")]
mod yaml;

use std::path::Path;
use std::sync::Arc;

use crate::error::{LoadError, Place};
use crate::node::Node;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// YAML 1.2, one document (feature `yaml`). Extensions `yaml`, `yml`.
    Yaml,
    /// TOML 1.0 (feature `toml`). Extension `toml`.
    Toml,
    /// JSON. Extension `json`.
    Json,
    /// `key=value` as Java reads it; dots in keys lead inwards. Extension `properties`.
    Properties,
    /// `NAME=value` as shells read it, without expansion; `__` in names leads inwards. Extension `env`.
    Env,
}

impl Format {
    /// The format that a file's name says; `None` if it says none.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        let path = path.as_ref();
        let name = path.file_name()?;
        Some(match path.extension().unwrap_or(name).to_str()? {
            "yaml" | "yml" => Self::Yaml,
            "toml" => Self::Toml,
            "json" => Self::Json,
            "properties" => Self::Properties,
            "env" | ".env" => Self::Env,
            _ => return None,
        })
    }

    /// Whether this build can read it.
    pub(crate) fn is_built_in(self) -> bool {
        match self {
            Self::Yaml => cfg!(feature = "yaml"),
            Self::Toml => cfg!(feature = "toml"),
            Self::Json | Self::Properties | Self::Env => true,
        }
    }

    /// Parses a file and lays it over `onto`. An empty file changes nothing.
    pub(crate) fn parse_onto(self, text: &str, source: &Arc<str>, onto: &mut Node) -> Result<(), LoadError> {
        let parsed = match self {
            #[cfg(feature = "yaml")]
            Self::Yaml => yaml::parse(text, source)?,
            #[cfg(feature = "toml")]
            Self::Toml => Some(toml::parse(text, source)?),
            Self::Json => json::parse(text, source)?,
            Self::Properties => Some(properties::parse(text, source)?),
            Self::Env => {
                for (line, name, value) in env::parse(text, source)? {
                    let path: Vec<&str> = name.split("__").collect();
                    onto.set_loosely(&path, text_node(value, source, Some(line)));
                }
                None
            }
            #[cfg(not(all(feature = "yaml", feature = "toml")))]
            _ => {
                let message = "this program is built without the format that its name says".to_owned();
                return Err(syntax(source, None, message));
            }
        };
        if let Some(node) = parsed {
            onto.merge(node);
        }
        Ok(())
    }
}

pub(crate) use json::scalar;

fn text_node(text: String, source: &Arc<str>, line: Option<u32>) -> Node {
    Node::new(crate::node::Value::Text(text), source, line)
}

fn syntax(source: &Arc<str>, line: Option<u32>, message: impl Into<String>) -> LoadError {
    let source = source.clone();
    LoadError::Syntax {
        place: Place { source, line },
        message: message.into(),
    }
}

/// The line of a byte, counted from 1.
fn line_of(text: &str, byte: usize) -> u32 {
    let before = text.as_bytes().iter().take(byte);
    let ends = before.filter(|byte| **byte == b'\n').count();
    u32::try_from(ends).map_or(u32::MAX, |line| line.saturating_add(1))
}

#[cfg(test)]
mod tests;
