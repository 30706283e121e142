//! Durations as they are typed: `500ms`, `30s`, `1m30s`, `2h`.

use std::time::Duration;

/// Nothing here waits for longer than a year; what is longer is a slip of the finger.
const DURATION_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reads a duration: whole numbers or decimal fractions with `us`, `ms`, `s`, `m`, `h` or `d`, or a lone `0`. A value
/// parser for clap.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let bad = || "not a duration such as 500ms, 30s or 1m30s".to_owned();
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(bad());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(bad)?;
        let (number, tail) = rest.split_at(number_end);
        let unit_end = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit_end);
        let seconds = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(bad()),
        };
        let number: f64 = number.parse().map_err(|_| bad())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
        total = total.saturating_add(part);
        rest = after;
    }
    if total > DURATION_MAX {
        return Err("longer than a year".to_owned());
    }
    Ok(total)
}

/// A duration that is not zero.
pub(crate) fn positive(raw: &str) -> Result<Duration, String> {
    match duration(raw)? {
        Duration::ZERO => Err("it has to be more than 0".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, millis) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("1.5s", Some(1_500)),
            ("2h", Some(7_200_000)),
            ("1d", Some(86_400_000)),
            ("0", Some(0)),
            ("0s", Some(0)),
            (" 1s ", Some(1_000)),
            ("", None),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1s30", None),
            ("1.2.3s", None),
            ("1w", None),
            ("1 s", None),
            ("400d", None),
            ("99999999999999999999999d", None),
        ] {
            let parsed = duration(text).ok();
            assert_eq!(parsed, millis.map(Duration::from_millis), "{text:?}");
        }
    }
}
