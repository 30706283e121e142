//! A line as words.

/// A command line that cannot be split into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// There is no program.
    #[error("it names no program")]
    Empty,
    /// A quote has no end.
    #[error("the quote {0} does not end")]
    Open(char),
    /// A backslash is the last character.
    #[error("a backslash at the end quotes nothing")]
    Backslash,
}

pub(super) fn split(line: &str) -> Result<Vec<String>, WordsError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            blank if blank.is_whitespace() => words.extend(word.take()),
            '\'' => quoted(&mut characters, '\'', word.get_or_insert_default())?,
            '"' => quoted(&mut characters, '"', word.get_or_insert_default())?,
            '\\' => word
                .get_or_insert_default()
                .push(characters.next().ok_or(WordsError::Backslash)?),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(WordsError::Empty),
    }
}

fn quoted(characters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), WordsError> {
    while let Some(character) = characters.next() {
        match character {
            end if end == quote => return Ok(()),
            '\\' if quote == '"' => match characters.next() {
                Some(escaped @ ('"' | '\\')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => return Err(WordsError::Open(quote)),
            },
            plain => word.push(plain),
        }
    }
    Err(WordsError::Open(quote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_does_without_expanding_anything() {
        for (line, words) in [
            ("nginx -t", Ok(vec!["nginx", "-t"])),
            ("  a   b\t", Ok(vec!["a", "b"])),
            ("sh -c 'a \"b\" $C'", Ok(vec!["sh", "-c", "a \"b\" $C"])),
            (r#"a "b \" \\ \n" c"#, Ok(vec!["a", r#"b " \ \n"#, "c"])),
            (r"a\ b c\'d", Ok(vec!["a b", "c'd"])),
            ("a '' b", Ok(vec!["a", "", "b"])),
            ("a'b'\"c\"", Ok(vec!["abc"])),
            ("", Err(WordsError::Empty)),
            (" ", Err(WordsError::Empty)),
            ("'' a", Err(WordsError::Empty)),
            ("a 'b", Err(WordsError::Open('\''))),
            ("a \"b\\", Err(WordsError::Open('"'))),
            ("a \\", Err(WordsError::Backslash)),
        ] {
            let words = words.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(split(line), words, "{line}");
        }
    }
}
