//! Files of environment variables: `NAME=value`, as `docker run --env-file` and shells read them, without expansion.

use std::sync::Arc;

use super::syntax;
use crate::error::LoadError;

/// Lines with their numbers, names and values.
pub(super) fn parse(text: &str, source: &Arc<str>) -> Result<Vec<(u32, String, String)>, LoadError> {
    let mut variables = Vec::new();
    for (number, line) in (1_u32..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            return Err(syntax(source, Some(number), "a line without `=`"));
        };
        let name = name.trim();
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
        if name.is_empty() || !name.chars().all(is_letter) {
            return Err(syntax(source, Some(number), "not a name before `=`"));
        }
        let value = value_of(value.trim())
            .ok_or_else(|| syntax(source, Some(number), "a quote that does not end on its line"))?;
        variables.push((number, name.to_owned(), value));
    }
    Ok(variables)
}

/// Without quotes; a comment may follow after a space. `None`: a quote is open at the end.
fn value_of(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix('\'') {
        return rest.split_once('\'').map(|(value, _)| value.to_owned());
    }
    let Some(rest) = text.strip_prefix('"') else {
        let value = text.split_once(" #").map_or(text, |(value, _)| value);
        return Some(value.trim_end().to_owned());
    };
    let mut value = String::with_capacity(rest.len());
    let mut letters = rest.chars();
    loop {
        match letters.next()? {
            '"' => return Some(value),
            '\\' => value.push(match letters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            letter => value.push(letter),
        }
    }
}
