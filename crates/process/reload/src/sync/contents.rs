//! What is at the URLs that keys hold: no clock, no disk, no network.
//!
//! ```text
//!   objects ─▶ wanted: key ─▶ URL ─▶ asked ─▶ answered: content, or why not (then the last content stays)
//! ```

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::sync::fetch::Fetched;
use crate::sync::object::{ObjectKind, ObjectVersion};

/// All that was fetched together; as much as the files of one revision may have.
const CONTENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many URLs are asked for: each may have a mebibyte, and takes a connection.
const URLS_MAX: usize = 1_000;

/// A key whose value is a URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UrlKey {
    kind: ObjectKind,
    namespace: String,
    name: String,
    key: String,
}

impl UrlKey {
    pub(crate) fn of(version: &ObjectVersion, key: &str) -> Self {
        Self {
            kind: version.kind,
            namespace: version.namespace.clone(),
            name: version.name.clone(),
            key: key.to_owned(),
        }
    }
}

impl fmt::Display for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
            key,
        } = self;
        write!(f, "key {key:?} of {namespace}/{kind}/{name}")
    }
}

/// What is asked for: the URL, as this version of the object has it. Another version is a reason to ask again.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// As the key has it.
    pub(crate) url: Bytes,
    pub(crate) resource_version: String,
}

impl fmt::Debug for Address {
    /// People put tokens into URLs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "URL at {:?}", self.resource_version)
    }
}

/// What there is for a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// What was fetched last, perhaps from a former address.
    Content(&'a Bytes),
    /// Nothing was ever fetched; why.
    Nothing(&'a str),
}

/// The answers.
#[derive(Debug, Default)]
pub(crate) struct UrlContents {
    known: BTreeMap<UrlKey, Known>,
}

#[derive(Debug)]
struct Known {
    address: Address,
    /// What came of asking for this address; nothing yet, at first.
    answer: Option<Result<(), String>>,
    content: Option<Bytes>,
}

impl UrlContents {
    /// From now on these are wanted. Returned are those that have to be asked for, because they are new or other than before;
    /// what nobody wants is forgotten.
    pub(crate) fn want(&mut self, wanted: BTreeMap<UrlKey, Address>) -> Vec<(UrlKey, Address)> {
        self.known.retain(|key, _| wanted.contains_key(key));
        let mut asks = Vec::new();
        for (number, (key, address)) in wanted.into_iter().enumerate() {
            let before = self.known.get(&key);
            if before.is_some_and(|known| known.address == address) {
                continue;
            }
            let too_many = || Err(format!("more than {URLS_MAX} keys hold URLs"));
            let known = Known {
                address: address.clone(),
                answer: (number >= URLS_MAX).then(too_many),
                content: before.and_then(|known| known.content.clone()),
            };
            if known.answer.is_none() {
                asks.push((key.clone(), address));
            }
            self.known.insert(key, known);
        }
        asks
    }

    /// Takes an answer; whether it is news. One to what is not asked for any more is none.
    pub(crate) fn answered(&mut self, fetched: Fetched) -> bool {
        let others = self.known.iter().filter(|(key, _)| **key != fetched.key);
        let held: usize = others
            .filter_map(|(_, known)| known.content.as_ref())
            .map(Bytes::len)
            .sum();
        let Some(known) = self.known.get_mut(&fetched.key) else {
            return false;
        };
        if known.address != fetched.address {
            return false;
        }
        let answer = match fetched.answer {
            Ok(content) if held + content.len() > CONTENT_BYTES_MAX => Err(format!(
                "all that was fetched has more than {CONTENT_BYTES_MAX} bytes together"
            )),
            Ok(content) => {
                known.content = Some(content);
                Ok(())
            }
            Err(why) => Err(why),
        };
        let is_news = known.answer.as_ref() != Some(&answer);
        known.answer = Some(answer);
        is_news
    }

    /// What was asked for and never answered.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &UrlKey> {
        let unanswered = |(key, known): (_, &Known)| known.answer.is_none().then_some(key);
        self.known.iter().filter_map(unanswered)
    }

    /// What there is for a key. Ask when nothing is [`unanswered`](Self::unanswered).
    pub(crate) fn find(&self, key: &UrlKey) -> Found<'_> {
        match self.known.get(key) {
            Some(Known {
                content: Some(content),
                ..
            }) => Found::Content(content),
            Some(Known {
                answer: Some(Err(why)),
                ..
            }) => Found::Nothing(why),
            _ => Found::Nothing("it was not asked for yet"),
        }
    }

    pub(crate) fn is_wanted(&self, key: &UrlKey) -> bool {
        self.known.contains_key(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> UrlKey {
        let version = ObjectVersion {
            kind: ObjectKind::ConfigMap,
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: String::new(),
            resource_version: String::new(),
        };
        UrlKey::of(&version, "a.url")
    }

    fn address(version: &str) -> Address {
        Address {
            url: Bytes::from_static(b"http://a/?token=hunter2"),
            resource_version: version.to_owned(),
        }
    }

    /// What is to be asked for when these objects at these versions are there, space separated.
    fn want(contents: &mut UrlContents, wanted: &[(&str, &str)]) -> String {
        let wanted = wanted.iter().map(|(name, version)| (key(name), address(version)));
        let asks = contents.want(wanted.collect());
        let asks = asks
            .iter()
            .map(|(key, address)| format!("{}@{}", key.name, address.resource_version));
        asks.collect::<Vec<_>>().join(" ")
    }

    fn answer(
        contents: &mut UrlContents,
        name: &str,
        version: &str,
        answer: Result<&'static str, &str>,
    ) -> bool {
        contents.answered(Fetched {
            key: key(name),
            address: address(version),
            answer: answer
                .map(|text| Bytes::from_static(text.as_bytes()))
                .map_err(str::to_owned),
        })
    }

    #[test]
    fn each_version_is_asked_for_once_and_the_last_content_stays() {
        let mut contents = UrlContents::default();
        assert_eq!(want(&mut contents, &[("a", "1"), ("b", "1")]), "a@1 b@1");
        assert_eq!(want(&mut contents, &[("a", "1"), ("b", "1")]), "");
        assert_eq!(contents.unanswered().count(), 2);
        assert!(answer(&mut contents, "a", "1", Ok("one")));
        assert!(answer(&mut contents, "b", "1", Err("500")));
        assert!(!answer(&mut contents, "b", "1", Err("500")), "is no news");
        assert_eq!(contents.unanswered().count(), 0);
        assert_eq!(
            contents.find(&key("a")),
            Found::Content(&Bytes::from_static(b"one"))
        );
        assert_eq!(contents.find(&key("b")), Found::Nothing("500"));
        assert_eq!(want(&mut contents, &[("a", "2")]), "a@2");
        assert_eq!(contents.unanswered().count(), 1);
        assert!(
            !answer(&mut contents, "a", "1", Ok("late")),
            "nobody asks for it any more"
        );
        assert!(
            !answer(&mut contents, "b", "1", Ok("late")),
            "nobody asks for it any more"
        );
        assert!(answer(&mut contents, "a", "2", Err("404")));
        assert_eq!(
            contents.find(&key("a")),
            Found::Content(&Bytes::from_static(b"one"))
        );
        assert!(answer(&mut contents, "a", "2", Ok("two")));
        assert_eq!(
            contents.find(&key("a")),
            Found::Content(&Bytes::from_static(b"two"))
        );
        assert_eq!(want(&mut contents, &[]), "");
        assert!(contents.is_empty());
        assert!(!format!("{:?}", address("1")).contains("hunter2"));
    }

    #[test]
    fn urls_and_what_they_hold_are_bounded() {
        let names: Vec<String> = (0..=URLS_MAX).map(|number| format!("{number:05}")).collect();
        let wanted: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        let mut contents = UrlContents::default();
        assert_eq!(want(&mut contents, &wanted).split(' ').count(), URLS_MAX);
        let last = key(&names[URLS_MAX]);
        assert_eq!(
            contents.find(&last),
            Found::Nothing("more than 1000 keys hold URLs")
        );
        let half = || Bytes::from(vec![0; CONTENT_BYTES_MAX / 2]);
        for (name, is_taken) in [
            (&names[0], true),
            (&names[1], true),
            (&names[2], false),
            (&names[0], true),
        ] {
            contents.answered(Fetched {
                key: key(name),
                address: address("1"),
                answer: Ok(half()),
            });
            let is_there = matches!(contents.find(&key(name)), Found::Content(_));
            assert_eq!(is_there, is_taken, "{name}");
        }
    }
}
