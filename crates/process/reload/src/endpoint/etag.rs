//! Revisions in headers and in the ids of events.

use std::fmt::Write;

use hotmap_projection::Revision;
use hyper::header::{HeaderMap, HeaderValue, IF_NONE_MATCH};

/// A revision as one word. Names that agents and kubelets give are such words; who else writes a volume may name its
/// revisions as they like, and no line break of theirs shall end a header or an event.
pub(crate) fn word(revision: &Revision) -> String {
    let mut word = String::with_capacity(revision.as_str().len());
    for byte in revision.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' | b':' | b'+' => {
                word.push(char::from(byte));
            }
            _ => write!(word, "%{byte:02X}").expect("a string takes it"),
        }
    }
    word
}

/// The `ETag` of a revision.
pub(crate) fn etag(revision: &Revision) -> HeaderValue {
    format!("\"{}\"", word(revision))
        .parse()
        .expect("a word is visible ASCII")
}

/// Which revisions the client has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known(Vec<String>);

impl Known {
    /// What `If-None-Match` says: tags, weak or strong, or `*` for whatever there is.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let lists = headers
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|list| list.to_str().ok());
        let tags = lists.flat_map(|list| list.split(','));
        let tag = |tag: &str| {
            let tag = tag.trim();
            tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"').to_owned()
        };
        Self(tags.map(tag).filter(|tag| !tag.is_empty()).collect())
    }

    pub(crate) fn has(&self, revision: &Revision) -> bool {
        let word = word(revision);
        self.0.iter().any(|tag| *tag == word || tag == "*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_words_and_stay_different() {
        for (revision, expected) in [
            (
                "..2026_01_31_09_05_07.1234567890",
                "..2026_01_31_09_05_07.1234567890",
            ),
            ("0123456789abcdef", "0123456789abcdef"),
            ("a\r\nb\"c", "a%0D%0Ab%22c"),
            ("a%0D", "a%250D"),
            ("ü", "%C3%BC"),
        ] {
            let revision = Revision::new(revision);
            assert_eq!(word(&revision), expected);
            assert_eq!(etag(&revision), format!("\"{expected}\""));
        }
    }

    #[test]
    fn what_the_client_has_is_read_as_clients_write_it() {
        let known = |lists: &[&str]| {
            let lists = lists.iter().map(|list| (IF_NONE_MATCH, list.parse().unwrap()));
            Known::of(&lists.collect())
        };
        let revision = Revision::new("..1");
        for (lists, expected) in [
            (&[][..], false),
            (&["\"..1\""], true),
            (&["W/\"..1\""], true),
            (&["..1"], true),
            (&["\"..0\" , \"..1\""], true),
            (&["\"..0\"", "\"..1\""], true),
            (&["*"], true),
            (&["\"..2\""], false),
            (&[""], false),
        ] {
            assert_eq!(known(lists).has(&revision), expected, "{lists:?}");
        }
    }
}
