//! Label selectors in their text form: `app=web,tier in (a,b),!legacy`.
//!
//! Grammar and texts follow `apimachinery/pkg/labels/selector.go`, Kubernetes 1.36.

use std::str::FromStr;

use crate::names;

/// A conjunction of requirements on labels; the empty one selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelSelector(Vec<Requirement>);

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    Exists,
    DoesNotExist,
    In(Vec<String>),
    /// Also matches objects without the key.
    NotIn(Vec<String>),
    GreaterThan(i64),
    LessThan(i64),
}

/// A label selector that cannot be read; the text is what clients are shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabelSelectorError(String);

impl LabelSelector {
    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object with these labels is selected. `value_of` looks one label up.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.matches(value_of(&requirement.key)))
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Operator::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Operator::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Operator::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;

    fn from_str(raw: &str) -> Result<Self, Self::Err> {
        let tokens = tokens(raw);
        let mut parser = Parser {
            tokens: &tokens,
            at: 0,
        };
        let requirements = parser.requirements()?;
        Ok(Self(requirements))
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Symbol(&'static str),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Symbol(symbol) => symbol,
        }
    }
}

fn tokens(raw: &str) -> Vec<Token> {
    const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", "<", ">"];
    let mut tokens = Vec::new();
    let mut rest = raw;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if rest.is_empty() {
            return tokens;
        }
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
        } else {
            let end = rest.find(|c| " \t\r\n=!(),<>".contains(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl<'a> Parser<'a> {
    fn requirements(&mut self) -> Result<Vec<Requirement>, LabelSelectorError> {
        let mut requirements = Vec::new();
        if self.peek().is_none() {
            return Ok(requirements);
        }
        loop {
            requirements.push(self.requirement()?);
            match self.next() {
                None => return Ok(requirements),
                Some(Token::Symbol(",")) if self.peek().is_some() => {}
                Some(Token::Symbol(",")) => return Err(unexpected("", "identifier after ','")),
                Some(other) => return Err(unexpected(other.text(), "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, LabelSelectorError> {
        let absent = self.take_symbol("!");
        let key = match self.next() {
            Some(Token::Word(word)) => word.clone(),
            other => {
                return Err(unexpected(
                    other.map_or("", Token::text),
                    "!, identifier, or 'end of string'",
                ));
            }
        };
        check_key(&key)?;
        if absent {
            return Ok(Requirement {
                key,
                operator: Operator::DoesNotExist,
            });
        }
        let operator = match self.peek() {
            None | Some(Token::Symbol(",")) => Operator::Exists,
            Some(_) => self.operator()?,
        };
        Ok(Requirement { key, operator })
    }

    fn operator(&mut self) -> Result<Operator, LabelSelectorError> {
        let symbol = self.next().map_or("", Token::text).to_owned();
        match symbol.as_str() {
            "=" | "==" => Ok(Operator::In(vec![self.exact_value()?])),
            "!=" => Ok(Operator::NotIn(vec![self.exact_value()?])),
            "in" => Ok(Operator::In(self.value_set()?)),
            "notin" => Ok(Operator::NotIn(self.value_set()?)),
            ">" | "gt" => Ok(Operator::GreaterThan(self.bound()?)),
            "<" | "lt" => Ok(Operator::LessThan(self.bound()?)),
            other => Err(unexpected(other, "in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn exact_value(&mut self) -> Result<String, LabelSelectorError> {
        match self.peek() {
            None | Some(Token::Symbol(",")) => Ok(String::new()),
            Some(Token::Word(word)) => {
                let value = word.clone();
                self.at += 1;
                check_value(&value)?;
                Ok(value)
            }
            Some(Token::Symbol(other)) => Err(unexpected(other, "identifier")),
        }
    }

    fn bound(&mut self) -> Result<i64, LabelSelectorError> {
        let value = self.exact_value()?;
        value.parse().map_err(|_| {
            parse_error(&format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ))
        })
    }

    fn value_set(&mut self) -> Result<Vec<String>, LabelSelectorError> {
        if !self.take_symbol("(") {
            return Err(unexpected(self.peek().map_or("", Token::text), "'('"));
        }
        let mut values = vec![String::new()];
        loop {
            match self.next() {
                Some(Token::Symbol(")")) => break,
                Some(Token::Symbol(",")) => values.push(String::new()),
                Some(Token::Word(word)) if values.last().is_some_and(String::is_empty) => {
                    check_value(word)?;
                    values.pop();
                    values.push(word.clone());
                }
                other => {
                    return Err(unexpected(
                        other.map_or("", Token::text),
                        "',', ')' or identifier",
                    ));
                }
            }
        }
        Ok(values)
    }

    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&'a Token> {
        let token = self.tokens.get(self.at);
        self.at += 1;
        token
    }

    fn take_symbol(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Symbol(symbol)) if *symbol == wanted);
        self.at += usize::from(found);
        found
    }
}

fn check_key(key: &str) -> Result<(), LabelSelectorError> {
    match names::qualified_name(key).as_slice() {
        [] => Ok(()),
        broken => Err(parse_error(&format!(
            "key: Invalid value: {key:?}: {}",
            broken.join("; ")
        ))),
    }
}

fn check_value(value: &str) -> Result<(), LabelSelectorError> {
    match names::label_value(value).as_slice() {
        [] => Ok(()),
        broken => Err(parse_error(&format!(
            "values[0]: Invalid value: {value:?}: {}",
            broken.join("; ")
        ))),
    }
}

fn unexpected(found: &str, expected: &str) -> LabelSelectorError {
    parse_error(&format!("found '{found}', expected: {expected}"))
}

fn parse_error(text: &str) -> LabelSelectorError {
    LabelSelectorError(format!("unable to parse requirement: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select() {
        let labels = |key: &str| match key {
            "app" => Some("web"),
            "n" => Some("5"),
            "empty" => Some(""),
            _ => None,
        };
        let table = [
            ("", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("app=web", true),
            ("app==web", true),
            ("app = db", false),
            ("app!=db", true),
            ("other!=x", true),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("other notin (web)", true),
            ("n>4", true),
            ("n<5", false),
            ("empty=", true),
            ("app=", false),
            ("app=web,!other,n>1", true),
            ("app in (,web)", true),
        ];
        for (raw, selected) in table {
            let selector: LabelSelector = raw.parse().expect(raw);
            assert_eq!(selector.matches(labels), selected, "{raw:?}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_sentence() {
        let table = [
            (
                "app x",
                "unable to parse requirement: found 'x', expected: in, notin, =, ==, !=, gt, lt",
            ),
            (
                "app in web",
                "unable to parse requirement: found 'web', expected: '('",
            ),
            (
                "a=b c",
                "unable to parse requirement: found 'c', expected: ',' or 'end of string'",
            ),
        ];
        for (raw, text) in table {
            assert_eq!(raw.parse::<LabelSelector>().expect_err(raw).to_string(), text);
        }
        for raw in ["=x", "a in (", "a,", "a=-", "n>x", "a in (x y)"] {
            assert!(raw.parse::<LabelSelector>().is_err(), "{raw:?}");
        }
    }
}
