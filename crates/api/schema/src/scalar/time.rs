//! `metav1.Time` and `metav1.MicroTime`: RFC 3339 in the one form that Kubernetes prints, always UTC.
//!
//! Reads what Go's `time.Parse` reads with the layouts of apimachinery `pkg/apis/meta/v1/{time,micro_time}.go`, and
//! refuses the rest in Go's words.

/// Seconds since 1970 and nanoseconds within the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// Go's zero time, the first second of year 1: printed as `null`.
pub(crate) const ZERO: Instant = Instant {
    seconds: -62_135_596_800,
    nanoseconds: 0,
};
/// The first second that the four digits of the format can show, and the first they no longer can.
const SHOWN: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

const DAY: i64 = 86_400;

/// The two precisions Kubernetes uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// `2006-01-02T15:04:05Z`; fractions are read and dropped.
    Seconds,
    /// `2006-01-02T15:04:05.000000Z`; the six digits are required.
    Micros,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Reads a time; the error is Go's text.
pub(crate) fn parse(text: &str, precision: Precision) -> Result<Instant, String> {
    let mut reader = Reader {
        text,
        rest: text,
        layout: precision.layout(),
    };
    let year = reader.digits(4, "2006")?;
    reader.literal("-")?;
    let month = reader.digits(2, "01")?;
    reader.check((1..=12).contains(&month), "month")?;
    reader.literal("-")?;
    let day = reader.digits(2, "02")?;
    reader.literal("T")?;
    let hour = reader.digits(2, "15")?;
    reader.check(hour < 24, "hour")?;
    reader.literal(":")?;
    let minute = reader.digits(2, "04")?;
    reader.check(minute < 60, "minute")?;
    reader.literal(":")?;
    let second = reader.digits(2, "05")?;
    reader.check(second < 60, "second")?;
    let nanoseconds = reader.fraction(precision)?;
    let offset = reader.offset()?;
    if !reader.rest.is_empty() {
        return Err(format!("parsing time {text:?}: extra text: {:?}", reader.rest));
    }
    reader.check(day >= 1 && day <= days_in(year, month), "day")?;
    let seconds = days_from_civil(year, month, day) * DAY + hour * 3_600 + minute * 60 + second - offset;
    let nanoseconds = if precision == Precision::Micros {
        nanoseconds
    } else {
        0
    };
    Ok(Instant { seconds, nanoseconds })
}

/// The canonical text; `None` if the year has no four digits.
pub(crate) fn format(instant: Instant, precision: Precision) -> Option<String> {
    if !SHOWN.contains(&instant.seconds) {
        return None;
    }
    let (year, month, day) = civil_from_days(instant.seconds.div_euclid(DAY));
    let second = instant.seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let mut text = String::with_capacity(27);
    push_padded(&mut text, year, 4);
    for (separator, value) in [
        ('-', month),
        ('-', day),
        ('T', hour),
        (':', minute),
        (':', second),
    ] {
        text.push(separator);
        push_padded(&mut text, value, 2);
    }
    if precision == Precision::Micros {
        text.push('.');
        push_padded(&mut text, i64::from(instant.nanoseconds / 1_000), 6);
    }
    text.push('Z');
    Some(text)
}

fn push_padded(text: &mut String, value: i64, width: u32) {
    for place in (0..width).rev() {
        let digit = (value / 10_i64.pow(place) % 10) as u8;
        text.push(char::from(b'0' + digit));
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl Reader<'_> {
    fn cannot(&self, element: &str) -> String {
        format!(
            "parsing time {:?} as {:?}: cannot parse {:?} as {element:?}",
            self.text, self.layout, self.rest
        )
    }

    fn check(&self, in_range: bool, what: &str) -> Result<(), String> {
        if in_range {
            Ok(())
        } else {
            Err(format!("parsing time {:?}: {what} out of range", self.text))
        }
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<i64, String> {
        let digits = self
            .rest
            .get(..count)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let value = digits
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| self.cannot(element))?;
        self.rest = &self.rest[count..];
        Ok(value)
    }

    fn literal(&mut self, literal: &str) -> Result<(), String> {
        self.rest = self
            .rest
            .strip_prefix(literal)
            .ok_or_else(|| self.cannot(literal))?;
        Ok(())
    }

    /// Nanoseconds.
    fn fraction(&mut self, precision: Precision) -> Result<u32, String> {
        let digits = self.rest.strip_prefix(['.', ',']).unwrap_or("");
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if precision == Precision::Micros && length != 6 {
            return Err(self.cannot(".000000"));
        }
        if length == 0 {
            return Ok(0);
        }
        self.rest = &digits[length..];
        let kept = &digits[..length.min(9)];
        let value: u32 = kept.parse().map_err(|_| self.cannot(".000000"))?;
        Ok(value * 10_u32.pow(9 - kept.len() as u32))
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let zone = self.rest.as_bytes();
        let is_digit = |at: usize| zone.get(at).is_some_and(u8::is_ascii_digit);
        let shape = matches!(zone.first(), Some(b'+' | b'-')) && zone.get(3) == Some(&b':');
        if !shape || ![1, 2, 4, 5].into_iter().all(is_digit) {
            return Err(self.cannot("Z07:00"));
        }
        let number = |at: usize| i64::from(zone[at] - b'0') * 10 + i64::from(zone[at + 1] - b'0');
        let (hours, minutes) = (number(1), number(4));
        self.check(hours <= 24, "time zone offset hour")?;
        self.check(minutes <= 60, "time zone offset minute")?;
        let seconds = hours * 3_600 + minutes * 60;
        let offset = if zone[0] == b'-' { -seconds } else { seconds };
        self.rest = &self.rest[6..];
        Ok(offset)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar; years begin in March so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_kept_in_utc_with_whole_seconds() {
        for (text, expected) in [
            ("2008-01-01T01:01:01Z", "2008-01-01T01:01:01Z"),
            ("2008-01-01T01:01:01.999Z", "2008-01-01T01:01:01Z"),
            ("2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ] {
            let parsed = parse(text, Precision::Seconds).expect(text);
            assert_eq!(format(parsed, Precision::Seconds).as_deref(), Some(expected));
        }
    }

    #[test]
    fn bad_times_are_refused_in_go_words() {
        for (text, precision, expected) in [
            (
                "x",
                Precision::Seconds,
                r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
            ),
            (
                "2020-01-01",
                Precision::Seconds,
                r#"parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
            (
                "2020-13-01T00:00:00Z",
                Precision::Seconds,
                r#"parsing time "2020-13-01T00:00:00Z": month out of range"#,
            ),
            (
                "2021-02-29T00:00:00Z",
                Precision::Seconds,
                r#"parsing time "2021-02-29T00:00:00Z": day out of range"#,
            ),
            (
                "2021-02-20T00:00:00Z",
                Precision::Micros,
                r#"parsing time "2021-02-20T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
            ),
        ] {
            assert_eq!(parse(text, precision), Err(expected.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn every_shown_second_survives(seconds in SHOWN, micros in 0_u32..1_000_000) {
            let instant = Instant { seconds, nanoseconds: micros * 1_000 };
            let text = format(instant, Precision::Micros).expect("shown");
            prop_assert_eq!(parse(&text, Precision::Micros), Ok(instant));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = parse(&text, Precision::Seconds);
        }
    }
}
