//! The flags of configmap-reload and of prometheus-config-reloader, said in ours: called without a command and with
//! their flags, the slim binary does what they do, so that changing the image is all of a migration.

mod configmap_reload;
mod prometheus_config_reloader;

use std::ffi::{OsStr, OsString};

/// A call in another program's flags, said in ours.
#[derive(Debug, PartialEq, Eq)]
pub struct Translation {
    /// The call in our flags, the name of the program first.
    pub arguments: Vec<OsString>,
    /// What is not done here, as sentences for the log.
    pub notes: Vec<String>,
}

/// A flag of another program that cannot be had here.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DialectError {
    /// A flag that neither program nor we have, beside flags of that program.
    #[error("{program} has no flag --{flag}")]
    Unknown {
        /// Whose flags the others are.
        program: &'static str,
        /// The flag without dashes.
        flag: String,
    },
    /// A flag without its value.
    #[error("--{0} needs a value")]
    NoValue(String),
    /// A value that means nothing.
    #[error("--{flag} {value}: {message}")]
    Value {
        /// The flag without dashes.
        flag: &'static str,
        /// What was typed.
        value: String,
        /// What is expected.
        message: &'static str,
    },
    /// What the program can do and we do not.
    #[error("--{flag} is not supported: {message}")]
    Unsupported {
        /// The flag without dashes.
        flag: &'static str,
        /// Why, and what to do.
        message: &'static str,
    },
    /// An argument that is no flag.
    #[error("{0:?} is neither a flag nor the value of one")]
    Stray(OsString),
}

/// One flag of another program.
#[derive(Debug)]
struct Flag {
    name: String,
    value: OsString,
}

impl Flag {
    fn text(&self) -> String {
        self.value.to_string_lossy().into_owned()
    }
}

/// Says a call in our flags if it is another program's: no command, and a flag that only that program has. `None` if it
/// is ours.
///
/// # Errors
/// [`DialectError`]: a flag of that program which cannot be had here.
pub fn translate(arguments: &[OsString]) -> Result<Option<Translation>, DialectError> {
    let Some((program, rest)) = arguments.split_first() else {
        return Ok(None);
    };
    let is_of = |names: &[&str]| {
        let leading = rest
            .iter()
            .take_while(|argument| argument.as_encoded_bytes().starts_with(b"-"));
        let mut leading_names = leading
            .filter_map(|argument| split(argument))
            .map(|(name, _)| name);
        // A flag and its value may be two arguments; the first argument is a flag in any case.
        leading_names.any(|name| names.contains(&name.as_str()))
    };
    let translated = if is_of(prometheus_config_reloader::NAMES) {
        prometheus_config_reloader::translate(flags(rest)?)?
    } else if is_of(configmap_reload::NAMES) {
        configmap_reload::translate(flags(rest)?)?
    } else {
        return Ok(None);
    };
    Ok(Some(Translation {
        arguments: std::iter::once(program.clone())
            .chain(translated.arguments)
            .collect(),
        notes: translated.notes,
    }))
}

/// The name and the value behind `=` of a flag with one or two dashes.
fn split(argument: &OsStr) -> Option<(String, Option<OsString>)> {
    let text = argument.to_str()?;
    let flag = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    Some(match flag.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.into())),
        None => (flag.to_owned(), None),
    })
}

fn flags(arguments: &[OsString]) -> Result<Vec<Flag>, DialectError> {
    let mut flags = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, value) = split(argument).ok_or_else(|| DialectError::Stray(argument.clone()))?;
        let value = match value {
            Some(value) => value,
            None => arguments
                .next()
                .cloned()
                .ok_or_else(|| DialectError::NoValue(name.clone()))?,
        };
        flags.push(Flag { name, value });
    }
    Ok(flags)
}

/// A call that is being put together.
#[derive(Debug, Default)]
struct Call {
    arguments: Vec<OsString>,
    notes: Vec<String>,
}

impl Call {
    fn flag(&mut self, name: &str, value: impl Into<OsString>) {
        self.arguments.push(name.into());
        self.arguments.push(value.into());
    }
}

#[cfg(test)]
mod tests;
