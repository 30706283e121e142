//! What is known of one object, what news makes of it, and when it is to be asked for. No clock, no I/O.
//!
//! News comes from two sides: a watch tells, and reads are answered. Whether an object is there cannot be put in order
//! by revision, so each read takes a ticket when it is sent: its answer counts only if nothing was learned since from
//! the watch, or from a read that was sent later.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{ChangeDetection, Held};
use crate::environment::{Known, Wording};

/// Of one object: who refers to it, and what is known.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) pods: BTreeSet<String>,
    known: Known,
    /// Reads sent so far.
    asked: Ticket,
    /// Reads up to this one count no longer.
    settled: Ticket,
    /// When the newest answer came; `None` before the first, and after a read that failed.
    answered_at: Option<Instant>,
    /// A pod came that refers to it: what is held is too old, whatever its age.
    is_invalid: bool,
}

/// The number of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Ticket(u64);

/// What somebody says of an object.
#[derive(Debug, Clone)]
pub(super) enum News {
    Present(Arc<Held>),
    Missing,
}

/// Which state a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// What is durable now.
    Newest,
    /// What the server has at hand.
    Any,
}

impl Entry {
    pub(super) fn new() -> Self {
        Self {
            pods: BTreeSet::new(),
            known: Known::Unknown,
            asked: Ticket::default(),
            settled: Ticket::default(),
            answered_at: None,
            is_invalid: false,
        }
    }

    pub(super) fn known(&self) -> &Known {
        &self.known
    }

    /// Whether the API has said yet what is there.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self.known, Known::Unknown)
    }

    /// Whether what is held never changes under this uid.
    pub(super) fn is_immutable(&self) -> bool {
        matches!(&self.known, Known::Present(held) if held.is_immutable())
    }

    /// One more pod refers to it; true if it did not before.
    pub(super) fn refer(&mut self, pod_uid: &str) -> bool {
        let is_new = self.pods.insert(pod_uid.to_owned());
        self.is_invalid |= is_new;
        is_new
    }

    /// What is held shall not be trusted: the pod was edited.
    pub(super) fn invalidate(&mut self) {
        self.is_invalid = true;
    }

    /// Whether a look has to read, and what, with what is held being fresh for `ttl`. With watches it never has to.
    pub(super) fn due(&self, detection: ChangeDetection, ttl: Duration, now: Instant) -> Option<Read> {
        match detection {
            ChangeDetection::Watch => None,
            ChangeDetection::Get => Some(Read::Newest),
            ChangeDetection::Cache => match (&self.known, self.answered_at) {
                (Known::Present(_), Some(at)) if !self.is_invalid => {
                    (now.duration_since(at) >= ttl).then_some(Read::Any)
                }
                _ => Some(Read::Newest),
            },
        }
    }

    /// A read is sent.
    pub(super) fn ask(&mut self) -> Ticket {
        self.asked.0 += 1;
        self.asked
    }

    /// A read is answered; true if that is something new.
    pub(super) fn answered(&mut self, ticket: Ticket, news: News, wording: Wording, now: Instant) -> bool {
        if ticket <= self.settled {
            return false;
        }
        self.settled = ticket;
        self.answered_at = Some(now);
        self.is_invalid = false;
        self.take(news, wording)
    }

    /// A read has failed: what is held stands, and the next look tries again.
    pub(super) fn failed(&mut self, ticket: Ticket) {
        if ticket > self.settled {
            self.answered_at = None;
        }
    }

    /// The watch tells something; true if that is something new.
    pub(super) fn told(&mut self, news: News, wording: Wording) -> bool {
        self.settled = self.asked;
        self.take(news, wording)
    }

    /// Whether an answer shows a change that nobody has told of since it was asked for.
    pub(super) fn is_contradicted(&self, ticket: Ticket, news: &News) -> bool {
        ticket > self.settled && self.is_known() && self.is_news(news)
    }

    /// Whether nothing was learned since this read was sent.
    pub(super) fn is_unsettled(&self, ticket: Ticket) -> bool {
        ticket > self.settled
    }

    fn take(&mut self, news: News, wording: Wording) -> bool {
        let is_news = self.is_news(&news);
        if is_news {
            self.known = match news {
                News::Present(held) => Known::Present(held),
                News::Missing => Known::Missing(wording),
            };
        }
        is_news
    }

    fn is_news(&self, news: &News) -> bool {
        match (news, &self.known) {
            (_, Known::Unknown) => true,
            (News::Present(new), Known::Present(held)) => !new.is_same_as(held) && !new.is_older_than(held),
            (News::Missing, Known::Missing(_)) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{objects::Heard, references::ObjectKind};

    /// `uid@revision`, or `-` for not there.
    fn news(text: &str) -> News {
        let Some((uid, revision)) = text.split_once('@') else {
            return News::Missing;
        };
        let json = format!(r#"{{"metadata": {{"uid": "{uid}", "resourceVersion": "{revision}"}}}}"#);
        News::Present(Arc::new(
            Held::parse(ObjectKind::ConfigMap, json.as_bytes(), Heard::now(None)).expect("a ConfigMap"),
        ))
    }

    fn shown(entry: &Entry) -> String {
        match entry.known() {
            Known::Present(held) => format!("{held:?}")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
            Known::Missing(_) => "-".to_owned(),
            Known::Unknown => "?".to_owned(),
        }
    }

    #[test]
    fn news_is_taken_in_the_order_in_which_it_is_true() {
        // `ask 1` sends read 1, `1=news` answers it, `=news` is told by the watch.
        for (story, known) in [
            ("=a@1", "a@1"),
            ("=a@2 =a@1", "a@2"),
            ("=a@2 =b@1", "b@1"),
            ("=a@2 =-", "-"),
            ("ask 1=a@3", "a@3"),
            ("=a@5 ask 1=a@3", "a@5"),
            ("=a@5 ask 1=-", "-"),
            ("ask =- 1=a@1", "-"),
            ("ask =a@1 1=-", "a@1"),
            ("ask ask 2=a@2 1=-", "a@2"),
            ("ask ask 1=a@1 2=-", "-"),
            ("ask ask 2=- 1=a@1", "-"),
        ] {
            let mut entry = Entry::new();
            for step in story.split(' ') {
                match step.split_once('=') {
                    None => drop(entry.ask()),
                    Some(("", said)) => drop(entry.told(news(said), Wording::Singular)),
                    Some((ticket, said)) => {
                        let ticket = Ticket(ticket.parse().expect("a number"));
                        entry.answered(ticket, news(said), Wording::Singular, Instant::now());
                    }
                }
            }
            assert_eq!(shown(&entry), known, "{story}");
        }
    }

    #[test]
    fn only_what_differs_is_news() {
        let mut entry = Entry::new();
        for (said, is_news) in [
            ("-", true),
            ("-", false),
            ("a@1", true),
            ("a@1", false),
            ("a@2", true),
            ("b@2", true),
        ] {
            assert_eq!(entry.told(news(said), Wording::Plural), is_news, "{said}");
        }
    }

    #[test]
    fn each_way_to_find_changes_reads_when_it_should() {
        let (begin, ttl) = (Instant::now(), Duration::from_secs(60));
        let later = |seconds| begin + Duration::from_secs(seconds);
        let unknown = Entry::new;
        let fresh = || {
            let mut entry = Entry::new();
            entry.refer("pod");
            let ticket = entry.ask();
            entry.answered(ticket, news("a@1"), Wording::Plural, begin);
            entry
        };
        let missing = || {
            let mut entry = fresh();
            let ticket = entry.ask();
            entry.answered(ticket, news("-"), Wording::Plural, begin);
            entry
        };
        let failed = || {
            let mut entry = fresh();
            let ticket = entry.ask();
            entry.failed(ticket);
            entry
        };
        let referred = || {
            let mut entry = fresh();
            entry.refer("another");
            entry
        };
        let edited = || {
            let mut entry = fresh();
            entry.invalidate();
            entry
        };
        type Made<'a> = &'a dyn Fn() -> Entry;
        let table: [(&str, Made, u64, Option<Read>); 8] = [
            ("unknown", &unknown, 0, Some(Read::Newest)),
            ("fresh", &fresh, 59, None),
            ("of its age", &fresh, 60, Some(Read::Any)),
            ("missing", &missing, 1, Some(Read::Newest)),
            ("failed", &failed, 1, Some(Read::Newest)),
            ("newly referred to", &referred, 1, Some(Read::Newest)),
            ("of an edited pod", &edited, 1, Some(Read::Newest)),
            (
                "of a pod that was there",
                &|| {
                    let mut entry = fresh();
                    entry.refer("pod");
                    entry
                },
                1,
                None,
            ),
        ];
        for (what, entry, seconds, cached) in table {
            let due = |detection| entry().due(detection, ttl, later(seconds));
            assert_eq!(due(ChangeDetection::Watch), None, "{what}");
            assert_eq!(due(ChangeDetection::Get), Some(Read::Newest), "{what}");
            assert_eq!(due(ChangeDetection::Cache), cached, "{what}");
        }
        assert_eq!(
            fresh().due(ChangeDetection::Cache, Duration::ZERO, begin),
            Some(Read::Any)
        );
    }

    #[test]
    fn a_failed_read_leaves_what_is_held() {
        let mut entry = Entry::new();
        entry.told(news("a@1"), Wording::Singular);
        let ticket = entry.ask();
        entry.failed(ticket);
        assert_eq!(shown(&entry), "a@1");
    }

    #[test]
    fn an_answer_contradicts_only_who_stayed_silent() {
        let mut entry = Entry::new();
        let early = entry.ask();
        assert!(
            !entry.is_contradicted(early, &news("a@1")),
            "nothing is known yet"
        );
        entry.told(news("a@1"), Wording::Singular);
        let ticket = entry.ask();
        for (said, contradicts) in [
            ("a@1", false),
            ("a@0", false),
            ("a@2", true),
            ("b@1", true),
            ("-", true),
        ] {
            assert_eq!(entry.is_contradicted(ticket, &news(said)), contradicts, "{said}");
        }
        entry.told(news("a@2"), Wording::Singular);
        assert!(
            !entry.is_contradicted(ticket, &news("a@3")),
            "the watch has spoken since"
        );
        assert!(!entry.is_unsettled(ticket));
    }
}
