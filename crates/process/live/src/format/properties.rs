//! Properties as Java reads them (`java.util.Properties.load`, Java 21): comments, continued lines, escapes.

use std::sync::Arc;

use super::{syntax, text_node};
use crate::error::LoadError;
use crate::node::Node;

pub(super) fn parse(text: &str, source: &Arc<str>) -> Result<Node, LoadError> {
    let mut node = Node::empty(source);
    let mut lines = (1_u32..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let mut logical = line.trim_start().to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while is_continued(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start());
        }
        let (key, value) = divide(&logical);
        let unescaped =
            |part| unescape(part).ok_or_else(|| syntax(source, Some(number), "a broken \\u escape"));
        let (key, value) = (unescaped(key)?, unescaped(value)?);
        let path: Vec<&str> = key.split('.').collect();
        node.set(&path, text_node(value, source, Some(number)));
    }
    Ok(node)
}

/// Whether a line ends with an odd number of backslashes.
fn is_continued(line: &str) -> bool {
    let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    backslashes % 2 == 1
}

/// Key and value: divided by the first `=`, `:` or white space that is not escaped, and white space around it.
fn divide(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line
        .char_indices()
        .find(|(_, letter)| {
            let ends = !is_escaped && (matches!(letter, '=' | ':') || letter.is_whitespace());
            is_escaped = !is_escaped && *letter == '\\';
            ends
        })
        .map_or(line.len(), |(place, _)| place);
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (&line[..end], rest.trim_start())
}

/// `None`: `\u` without four hex digits, or half of a pair.
fn unescape(text: &str) -> Option<String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut letters = text.chars();
    let mut buffer = [0; 2];
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\\' => match letters.next() {
                Some('u') => {
                    let digits: String = letters.by_ref().take(4).collect();
                    let is_whole = digits.len() == 4;
                    units.push(u16::from_str_radix(&digits, 16).ok().filter(|_| is_whole)?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            letter => letter,
        };
        units.extend_from_slice(letter.encode_utf16(&mut buffer));
    }
    String::from_utf16(&units).ok()
}
