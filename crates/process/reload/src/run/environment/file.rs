//! Files of `KEY=VALUE` lines.
//!
//! ```text
//!   # a comment, and empty lines        ignored; a `#` behind a value is part of it
//!   KEY=some words                      blanks around the value are cut
//!   export KEY=value                    the word is ignored
//!   KEY='as it is, $ and \ too'         may go on over several lines
//!   KEY="tab \t, line \n, \" and \\"    may go on over several lines; an unknown `\x` stays as it is
//! ```
//!
//! Nothing is expanded.

/// A line that says nothing; its content is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("line {0} is no KEY=VALUE")]
    NoSign(usize),
    #[error("the quote that begins in line {0} does not end")]
    OpenQuote(usize),
    #[error("there is something behind the closing quote of line {0}")]
    BehindQuote(usize),
}

/// A name and its value, as bytes.
pub(crate) type Variable = (Vec<u8>, Vec<u8>);

/// The variables of a file, in its order. Lines are counted from one.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Variable>, LineError> {
    let mut variables = Vec::new();
    let mut rest = text;
    let mut number = 1;
    while !rest.is_empty() {
        let line = &rest[..end_of_line(rest)];
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with(b"#") {
            rest = behind_line(rest);
            number += 1;
            continue;
        }
        let sign = line
            .iter()
            .position(|byte| *byte == b'=')
            .ok_or(LineError::NoSign(number))?;
        let name = line[..sign].trim_ascii();
        let name = name.strip_prefix(b"export ").unwrap_or(name).trim_ascii();
        if name.is_empty() {
            return Err(LineError::NoSign(number));
        }
        let value = &rest[sign + 1..];
        let blanks = value
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        let (value, behind) = match value.get(blanks) {
            Some(quote @ (b'\'' | b'"')) => {
                let (value, behind) =
                    quoted(&value[blanks + 1..], *quote).ok_or(LineError::OpenQuote(number))?;
                if !behind[..end_of_line(behind)].trim_ascii().is_empty() {
                    return Err(LineError::BehindQuote(number));
                }
                (value, behind)
            }
            _ => {
                let end = end_of_line(value);
                (value[..end].trim_ascii().to_vec(), &value[end..])
            }
        };
        variables.push((name.to_vec(), value));
        let next = behind_line(behind);
        number += rest[..rest.len() - next.len()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        rest = next;
    }
    Ok(variables)
}

fn end_of_line(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

fn behind_line(text: &[u8]) -> &[u8] {
    &text[(end_of_line(text) + 1).min(text.len())..]
}

/// What is within the quotes, and what is behind them.
fn quoted(text: &[u8], quote: u8) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((index, byte)) = bytes.next() {
        match *byte {
            byte if byte == quote => return Some((value, &text[index + 1..])),
            b'\\' if quote == b'"' => {
                let (_, escaped) = bytes.next()?;
                match escaped {
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'r' => value.push(b'\r'),
                    b'"' | b'\\' | b'$' | b'`' => value.push(*escaped),
                    other => value.extend([b'\\', *other]),
                }
            }
            byte => value.push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_names_and_values() {
        let table: [(&str, &[(&str, &str)]); 12] = [
            ("", &[]),
            ("A=1\nB=2", &[("A", "1"), ("B", "2")]),
            ("# A=1\n\n  # no\nB=2\n", &[("B", "2")]),
            ("A= some words \r\n", &[("A", "some words")]),
            ("A=x # y", &[("A", "x # y")]),
            ("export A=1\n  export  B=2", &[("A", "1"), ("B", "2")]),
            ("A=", &[("A", "")]),
            ("A=b=c", &[("A", "b=c")]),
            ("A=' $x \\n '", &[("A", " $x \\n ")]),
            (r#"A="a\tb\n\"\\\$\q""#, &[("A", "a\tb\n\"\\$\\q")]),
            ("A='one\ntwo'  \nB=3", &[("A", "one\ntwo"), ("B", "3")]),
            ("A=1\nA=2", &[("A", "1"), ("A", "2")]),
        ];
        for (text, expected) in table {
            let parsed = parse(text.as_bytes()).expect(text);
            let shown: Vec<_> = parsed
                .iter()
                .map(|(name, value)| (String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect();
            assert_eq!(shown, expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line() {
        for (text, error) in [
            ("A=1\nnonsense", LineError::NoSign(2)),
            ("=1", LineError::NoSign(1)),
            ("A='x\ny'\nB", LineError::NoSign(3)),
            ("\nA='x", LineError::OpenQuote(2)),
            ("A=\"x\\", LineError::OpenQuote(1)),
            ("A='x' y", LineError::BehindQuote(1)),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_quoted_comes_back(value in "[^']*") {
            let text = format!("A='{value}'");
            prop_assert_eq!(parse(text.as_bytes()), Ok(vec![(b"A".to_vec(), value.into_bytes())]));
        }
    }
}
