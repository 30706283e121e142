//! How long a request may take.
//!
//! Follows `apiserver/pkg/endpoints/filters/request_deadline.go`, Kubernetes 1.36.

use std::time::Duration;

use hotmap_object::Status;

use crate::request::Query;

/// No answer takes longer, watches and streams apart.
pub(crate) const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// The time a request has: what `?timeout=` says, if that is shorter than a minute and not zero.
///
/// # Errors
///
/// 400 if it is no duration in Go's notation.
pub(crate) fn of(query: &Query) -> Result<Duration, Status> {
    let Some(raw) = query.text("timeout") else {
        return Ok(REQUEST_TIME_MAX);
    };
    let asked = parse_duration(raw).ok_or_else(|| {
        Status::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {raw:?}"
        ))
    })?;
    Ok(if asked.is_zero() {
        REQUEST_TIME_MAX
    } else {
        asked.min(REQUEST_TIME_MAX)
    })
}

/// What the client is told when the time is over.
pub(crate) fn exceeded() -> Status {
    Status::timeout("request did not complete within the allotted timeout")
}

/// Go's notation: `1h30m`, `1.5s`, `300ms`, `0`. A negative duration counts as none.
fn parse_duration(raw: &str) -> Option<Duration> {
    let (is_negative, mut rest) = match raw.strip_prefix(['-', '+']) {
        Some(rest) => (raw.starts_with('-'), rest),
        None => (false, raw),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, unit) = rest.split_at(digits);
        let number: f64 = number.parse().ok()?;
        let end = unit
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(unit.len());
        let (unit, behind) = unit.split_at(end);
        seconds += number
            * match unit {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = behind;
    }
    Duration::try_from_secs_f64(if is_negative { 0.0 } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_only_shorten_its_time() {
        for (raw, milliseconds) in [
            ("", Some(60_000)),
            ("timeout=", Some(60_000)),
            ("timeout=0s", Some(60_000)),
            ("timeout=0", Some(60_000)),
            ("timeout=5s", Some(5_000)),
            ("timeout=1m30s", Some(60_000)),
            ("timeout=1.5s", Some(1_500)),
            ("timeout=300ms", Some(300)),
            ("timeout=-5s", Some(60_000)),
            ("timeout=5", None),
            ("timeout=s", None),
            ("timeout=abc", None),
            ("timeout=1.2.3s", None),
        ] {
            let held = of(&Query::parse(raw)).ok().map(|time| time.as_millis());
            assert_eq!(held, milliseconds, "{raw}");
        }
    }
}
