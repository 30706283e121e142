//! The `Date` of answers: what time it is for this server, also right after its clock was set back.
//!
//! hyper's own stands still then until that time has come again, and agents on other machines hear by it what became of the clock
//! that judges their tokens.

use std::{
    cell::RefCell,
    time::{SystemTime, UNIX_EPOCH},
};

use hyper::header::HeaderValue;

thread_local! {
    static DATE: RefCell<Date> = RefCell::new(Date::default());
}

/// The header as it is now; written once for each second and thread.
pub(super) fn now() -> HeaderValue {
    DATE.with_borrow_mut(|date| date.at(SystemTime::now()))
}

/// The text of a second.
#[derive(Default)]
struct Date(Option<(u64, HeaderValue)>);

impl Date {
    fn at(&mut self, now: SystemTime) -> HeaderValue {
        let second = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        match &self.0 {
            Some((held, text)) if *held == second => text.clone(),
            _ => {
                let text = httpdate::fmt_http_date(now.max(UNIX_EPOCH));
                let text = HeaderValue::try_from(text).expect("a date is ASCII");
                self.0 = Some((second, text.clone()));
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_follows_the_clock_wherever_that_is_set() {
        let mut date = Date::default();
        for (millis, text) in [
            (100_000, "Thu, 01 Jan 1970 00:01:40 GMT"),
            (100_999, "Thu, 01 Jan 1970 00:01:40 GMT"),
            (101_000, "Thu, 01 Jan 1970 00:01:41 GMT"),
            (1_795_337_017_000, "Sun, 22 Nov 2026 08:43:37 GMT"),
            (100_000, "Thu, 01 Jan 1970 00:01:40 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(date.at(UNIX_EPOCH + Duration::from_millis(millis)), text);
        }
        assert_eq!(
            date.at(UNIX_EPOCH - Duration::from_secs(5)),
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
    }
}
