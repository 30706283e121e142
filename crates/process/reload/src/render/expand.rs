//! References to the environment in a template.

/// Which references are expanded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Syntax {
    /// `$(NAME)` and `${NAME}`; `$$(NAME)` and `$${NAME}` stand for themselves, without the first `$`.
    #[default]
    Both,
    /// `$(NAME)` alone, as prometheus-config-reloader: `${NAME}` means something else in the file.
    Parentheses,
}

/// What becomes of a reference to a variable that is not set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Undefined {
    /// The template is refused.
    #[default]
    Error,
    /// The reference stays in the file as it is.
    Keep,
}

/// A variable that is not set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UndefinedReference {
    pub(super) name: String,
    /// Counted from one.
    pub(super) line: usize,
}

/// The template with its references expanded. What is no reference stays as it is: `$1`, `${1}`, `$host`.
pub(super) fn expand<'a>(
    template: &[u8],
    syntax: Syntax,
    undefined: Undefined,
    lookup: impl Fn(&str) -> Option<&'a str>,
) -> Result<Vec<u8>, UndefinedReference> {
    let mut expanded = Vec::with_capacity(template.len());
    let mut at = 0;
    while let Some(offset) = template[at..].iter().position(|byte| *byte == b'$') {
        let dollar = at + offset;
        expanded.extend_from_slice(&template[at..dollar]);
        if syntax == Syntax::Both
            && let Some((_, length)) = reference(&template[dollar + 1..], syntax)
        {
            // `$$(NAME)`: the first `$` quotes the second.
            expanded.extend_from_slice(&template[dollar + 1..dollar + 1 + length]);
            at = dollar + 1 + length;
            continue;
        }
        let Some((name, length)) = reference(&template[dollar..], syntax) else {
            expanded.push(b'$');
            at = dollar + 1;
            continue;
        };
        match lookup(name) {
            Some(value) => expanded.extend_from_slice(value.as_bytes()),
            None if undefined == Undefined::Keep => {
                expanded.extend_from_slice(&template[dollar..dollar + length]);
            }
            None => {
                let line = 1 + template[..dollar].iter().filter(|byte| **byte == b'\n').count();
                return Err(UndefinedReference {
                    name: name.to_owned(),
                    line,
                });
            }
        }
        at = dollar + length;
    }
    expanded.extend_from_slice(&template[at..]);
    Ok(expanded)
}

/// The name and the length of a reference that stands at the beginning of `text`.
fn reference(text: &[u8], syntax: Syntax) -> Option<(&str, usize)> {
    let close = match text.get(..2)? {
        b"$(" => b')',
        b"${" if syntax == Syntax::Both => b'}',
        _ => return None,
    };
    let length = text[2..].iter().position(|byte| *byte == close)?;
    let name = std::str::from_utf8(&text[2..2 + length]).ok()?;
    let is_name = |(index, byte): (usize, u8)| {
        byte == b'_' || byte.is_ascii_alphabetic() || (index > 0 && byte.is_ascii_digit())
    };
    (!name.is_empty() && name.bytes().enumerate().all(is_name)).then_some((name, length + 3))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(template: &str, syntax: Syntax, undefined: Undefined) -> Result<String, (String, usize)> {
        let lookup = |name: &str| match name {
            "A" => Some("a$(A)"),
            "POD_NAME" => Some("web-0"),
            "EMPTY" => Some(""),
            _ => None,
        };
        expand(template.as_bytes(), syntax, undefined, lookup)
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .map_err(|undefined| (undefined.name, undefined.line))
    }

    #[test]
    fn references_are_expanded_once_and_everything_else_stays() {
        for (template, expanded) in [
            ("x: $(A)", Ok("x: a$(A)")),
            ("${POD_NAME}-$(POD_NAME)", Ok("web-0-web-0")),
            ("[$(EMPTY)]", Ok("[]")),
            (
                "$1 ${1} $host $ $$ $() ${} $(a b) $(A",
                Ok("$1 ${1} $host $ $$ $() ${} $(a b) $(A"),
            ),
            ("$$(A) $${A} $$$(A)", Ok("$(A) ${A} $$(A)")),
            ("a\nb $(NOT_SET)", Err(("NOT_SET", 2))),
            ("${NOT_SET}", Err(("NOT_SET", 1))),
            ("$(((A)", Ok("$(((A)")),
        ] {
            let expected = expanded
                .map(str::to_owned)
                .map_err(|(name, line): (&str, usize)| (name.to_owned(), line));
            assert_eq!(
                run(template, Syntax::Both, Undefined::Error),
                expected,
                "{template}"
            );
        }
    }

    #[test]
    fn with_parentheses_alone_braces_mean_nothing() {
        for (template, expanded) in [
            ("${A} $(POD_NAME)", "${A} web-0"),
            ("$$(POD_NAME)", "$web-0"),
            ("${NOT_SET}", "${NOT_SET}"),
        ] {
            assert_eq!(
                run(template, Syntax::Parentheses, Undefined::Error),
                Ok(expanded.to_owned())
            );
        }
    }

    #[test]
    fn what_is_not_set_may_be_kept() {
        assert_eq!(
            run("$(NO) $(EMPTY)${NO}", Syntax::Both, Undefined::Keep),
            Ok("$(NO) ${NO}".to_owned())
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_bytes_without_a_dollar_stay(
            template in proptest::collection::vec(prop_oneof![Just(b'$'), Just(b'('), Just(b'}'), any::<u8>()], 0..64),
        ) {
            let expanded = expand(&template, Syntax::Both, Undefined::Keep, |_| None).unwrap();
            if !template.contains(&b'$') {
                prop_assert_eq!(expanded, template);
            }
        }
    }
}
