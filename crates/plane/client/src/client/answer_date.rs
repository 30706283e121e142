//! When the server answered, by its own clock.

use std::time::{Duration, SystemTime};

use hyper::{HeaderMap, header::DATE};

/// The `Date` of an answer, and what our clocks said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerDate {
    /// By the clock of the server, whole seconds.
    pub date: SystemTime,
    /// When the head of the answer was here, by the clock of this machine.
    pub received: SystemTime,
    /// How long it took from the request to then, by a clock that nobody sets.
    pub took: Duration,
}

impl AnswerDate {
    /// `None` without a date, or with one that is none.
    pub(super) fn of(headers: &HeaderMap, received: SystemTime, took: Duration) -> Option<Self> {
        let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
        Some(Self { date, received, took })
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_date_is_read_if_it_is_one() {
        let second = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        for (text, date) in [
            (Some("Thu, 01 Jan 1970 00:01:40 GMT"), Some(second(100))),
            (Some("Sun, 22 Nov 2026 08:43:37 GMT"), Some(second(1_795_337_017))),
            (Some("yesterday"), None),
            (Some("\u{e9}"), None),
            (None, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(text.map(|text| (DATE, HeaderValue::from_str(text).expect("a header"))));
            let (received, took) = (second(200), Duration::from_millis(3));
            let read = AnswerDate::of(&headers, received, took);
            let expected = date.map(|date| AnswerDate { date, received, took });
            assert_eq!(read, expected, "{text:?}");
        }
    }
}
